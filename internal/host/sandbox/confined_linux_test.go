package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// escapes are scripts that change something outside, in the repository or in
// the program's own directory. Run bare they must succeed in that, or else they
// prove nothing; those that need root are tried bare only as root, and those that
// would change the machine's mounts never are.
var escapes = []struct {
	name, script string
	git          bool // it changes what is protected rather than what is outside
	meta         bool // it changes no contents, which is beyond Landlock
	root, never  bool
}{
	{name: "write a new file", script: `echo x > $O/new`},
	{name: "append to a file", script: `echo x >> $O/file`},
	{name: "truncate a file", script: `: > $O/file`},
	{name: "truncate by length", script: `truncate -s 3 $O/file`},
	{name: "remove a file", script: `rm -f $O/file`},
	{name: "make a directory", script: `mkdir $O/new`},
	{name: "remove a directory", script: `rm -rf $O/dir`},
	{name: "change a mode", script: `chmod 777 $O/file`, meta: true},
	{name: "change the time", script: `touch -d 2001-01-01 $O/file`, meta: true},
	{name: "change the owner", script: `chown 12345 $O/file`, root: true, meta: true},
	{name: "move out", script: `mv dir $O/dir2`},
	{name: "move in", script: `mv $O/dir d2`},
	{name: "link to the outside", script: `ln -s $O out; echo x > out/new`},
	{name: "dangling link to the outside", script: `ln -s $O/new out; echo x > out`},
	{name: "hard link to the outside", script: `ln $O/file hard && echo x >> hard`},
	{name: "copy with a link on the way", script: `ln -s $O out; cp -r dir out/dir3`},
	{name: "go there first", script: `cd $O && echo x > new`},
	{name: "through our own root", script: `echo x > /proc/self/root$O/new`},
	{name: "through our parent's root", script: `echo x > /proc/$PPID/root$O/new`},
	{name: "through the root of another process", script: `echo x > /proc/$1/root$O/new`},
	{name: "through the working directory of another process", script: `echo x > /proc/$1/cwd$O/new`},
	{name: "from another program", script: `sh -c 'setsid sh -c "echo x > $O/new"'`},
	{name: "remount", script: `mount -o remount,rw / ; mount -o remount,rw,bind $O; echo x > $O/new`, never: true},
	{name: "take off read-only", script: `$SELF __attack thaw /; $SELF __attack thaw $O; echo x > $O/new`, never: true},
	{name: "mount over", script: `mount --bind $O dir; echo x > dir/new`, never: true},
	{name: "unmount", script: `umount -l $W; umount -l $T; umount -l /dev; umount -l /; echo x > $O/new`, never: true},
	{name: "namespaces of its own", script: `unshare -Urm sh -c 'mount -o remount,rw,bind /; echo x > $O/new' || unshare -m sh -c 'mount -o remount,rw /; echo x > $O/new'`, never: true},
	{name: "namespace of another process", script: `nsenter -t $1 -m sh -c 'echo x > $O/new'`, root: true},
	{name: "change root", script: `chroot /proc/$1/root sh -c "echo x > $O/new"`, root: true},
	{name: "by file handle", script: `$SELF __attack handle $W $O/file`, root: true},
	{name: "configure git", script: `echo x >> .git/config`, git: true},
	{name: "plant a hook", script: `cp main.go .git/hooks/pre-commit`, git: true},
	{name: "remove the repository", script: `rm -rf .git`, git: true},
	{name: "move the repository away", script: `mv .git git && mkdir .git && echo x > .git/config`, git: true},
	{name: "swap the repository", script: `mkdir x && echo x > x/config && mv -T --exchange x .git || { mv .git y; mv x .git; }`, git: true},
	{name: "replace a file by renaming", script: `echo x > x && mv x .git/config`, git: true},
	{name: "link into the repository", script: `ln .git/config hard && echo x >> hard`, git: true},
	{name: "by a link to the repository", script: `ln -s .git g && echo x > g/config`, git: true},
	{name: "configure the program", script: `mkdir .coder; echo x > .coder/config.json`, git: true},
	{name: "put a link in the program's place", script: `rmdir .coder; ln -s $T .coder`, git: true},
	{name: "put a file in the program's place", script: `rmdir .coder; echo x > .coder`, git: true},
	{name: "mode of the repository", script: `chmod 777 .git`, git: true},
}

func TestConfinedCommandsCannotWriteOutside(t *testing.T) {
	other := otherProcess(t)
	eachBackend(t, func(t *testing.T, s *Sandbox) {
		for _, e := range escapes {
			t.Run(e.name, func(t *testing.T) {
				w := newWorld(t)
				protected := []string{w.outside}
				if s.Backend() != Landlock {
					protected = append(protected, filepath.Join(w.work, ".git"), filepath.Join(w.work, ".coder"))
				} else if e.git || e.meta {
					t.Skip("Landlock alone does not prevent that, and says so")
				}
				through := wrap(t, s, w.limits())
				before := state(t, protected...)
				got := w.run(t, through, e.script, other)
				if why, failed := SetupFailed(got.code, got.stderr); failed {
					t.Fatalf("not set up: %s", why)
				}
				if after := state(t, protected...); after != before {
					t.Errorf("it got out: %+v\nbefore:\n%safter:\n%s", got, before, after)
				}
			})
		}
	})
}

// An attempt that fails anyway proves nothing.
func TestConfinedCommandsWouldWriteOutsideIfRunBare(t *testing.T) {
	other := otherProcess(t)
	for _, e := range escapes {
		if e.never || e.root && os.Getuid() != 0 {
			continue
		}
		t.Run(e.name, func(t *testing.T) {
			w := newWorld(t)
			protected := []string{w.outside, filepath.Join(w.work, ".git"), filepath.Join(w.work, ".coder")}
			before := state(t, protected...)
			got := w.run(t, Wrapper{}, e.script, other)
			if state(t, protected...) == before {
				t.Errorf("it does not work unconfined either: %+v", got)
			}
		})
	}
}

// otherProcess is the number of a process of the same user outside.
func otherProcess(t *testing.T) string {
	t.Helper()
	cmd := exec.Command("/bin/sleep", "600")
	cmd.Dir = "/"
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return fmt.Sprint(cmd.Process.Pid)
}

// work is what must go on working.
var work = []struct{ name, script, want string }{
	{"write in the workspace", `echo x > new && mkdir -p a/b && mv new a/b/ && cat a/b/new`, "x"},
	{"move directories", `mv dir dir2 && mkdir other && mv dir2 other/ && cat other/dir2/file`, "file"},
	{"remove", `rm -r dir main.go && ls`, ""},
	{"hard links inside", `ln main.go hard && ln dir/file hard2 && rm main.go && cat hard2`, "file"},
	{"write temporary files", `echo x > $T/new && cat $T/new $T/old`, "x\nold"},
	{"move between the two", `mv $T/old . && cat old`, "old"},
	{"change modes and times", `chmod 755 main.go && touch -d 2001-01-01 main.go && stat -c %a main.go`, "755"},
	{"read outside", `cat $O/file .git/HEAD`, "precious\nref: refs/heads/main"},
	{"devices", `echo x > /dev/null && head -c 3 /dev/zero | wc -c && head -c 5 /dev/urandom | wc -c`, "3\n5"},
	{"standard streams by name", `echo out > /dev/stdout; echo err 2>/dev/null > /dev/stderr; cat < /dev/stdin`, "out"},
	{"here documents", "cat <<X\nhere\nX", "here"},
	{"shared memory", `echo x > /dev/shm/sandbox-test.$$ && cat /dev/shm/sandbox-test.$$ && rm /dev/shm/sandbox-test.$$`, "x"},
	{"processes", `test -r /proc/self/status && test -d /proc/$PPID && sleep 0 & wait && echo ok`, "ok"},
	{"pipes and fifos", `mkfifo p && (echo x > p &) && cat p`, "x"},
	{"a reader that leaves ends its writer", `(yes; echo $? > end) | head -n 1; cat end`, "y\n141"},
	{"who we are", `id -u`, fmt.Sprint(os.Getuid())},
	{"where we are", `cd dir; basename "$PWD"; cd ..; test -d dir && echo back`, "dir\nback"},
}

func TestConfinedCommandsWork(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Sandbox) {
		for _, c := range work {
			t.Run(c.name, func(t *testing.T) {
				w := newWorld(t)
				got := w.run(t, wrap(t, s, w.limits()), c.script)
				if got.code != 0 || strings.TrimSpace(got.stdout) != c.want {
					t.Errorf("%+v, want %q", got, c.want)
				}
			})
		}
	})
}

// A terminal of its own is what tests of terminal programs need.
func TestConfinedCommandsHaveTerminalsOfTheirOwn(t *testing.T) {
	if _, err := exec.LookPath("script"); err != nil {
		t.Skip("script is not installed")
	}
	eachBackend(t, func(t *testing.T, s *Sandbox) {
		if s.Backend() == Landlock {
			t.Skip("terminals would be the machine's")
		}
		w := newWorld(t)
		got := w.run(t, wrap(t, s, w.limits()), `script -qec 'test -t 1 && tty' /dev/null`)
		if got.code != 0 || !strings.Contains(got.stdout, "/dev/pts/0") {
			t.Errorf("%+v", got)
		}
	})
}

func TestConfinedCommandsEndAsTheyWouldBare(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Sandbox) {
		for _, c := range []struct {
			script string
			code   int
			signal syscall.Signal
		}{
			{"true", 0, 0},
			{"exit 3", 3, 0},
			{"exit 126", 126, 0},
			{"no-such-command", 127, 0},
			{"kill -TERM $$", 143, syscall.SIGTERM},
			{"kill -KILL $$", 137, syscall.SIGKILL},
			{"kill -SEGV $$", 139, syscall.SIGSEGV},
			{"kill -ABRT $$", 134, syscall.SIGABRT},
			{"kill -INT $$", 130, syscall.SIGINT},
			{"kill -PIPE $$", 141, syscall.SIGPIPE},
			{"trap 'exit 7' TERM; kill -TERM 0; sleep 5", 7, 0}, // to the whole group
			{"kill -KILL 0", 137, syscall.SIGKILL},
		} {
			w := newWorld(t)
			got := w.run(t, wrap(t, s, w.limits()), c.script)
			if s.Backend() == Bubblewrap {
				c.signal, got.signal = 0, 0
			}
			if got.code != c.code || got.signal != c.signal {
				t.Errorf("%q: %+v, want %d %v", c.script, got, c.code, c.signal)
			}
			if _, failed := SetupFailed(got.code, got.stderr); failed {
				t.Errorf("%q is taken for a failure of ours", c.script)
			}
		}
	})
}

// Whoever stops a command signals the process that was started. The command
// decides how to end.
func TestConfinedCommandsAreAskedToEnd(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Sandbox) {
		if s.Backend() == Bubblewrap {
			t.Skip("bwrap ends at once, and the command with it")
		}
		w := newWorld(t)
		cmd := w.command(t, wrap(t, s, w.limits()), `trap 'exit 7' TERM; touch ready; while :; do sleep 0.01; done`)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var stopper sync.WaitGroup
		stopper.Go(func() {
			for t.Context().Err() == nil {
				if exists(filepath.Join(w.work, "ready")) {
					_ = cmd.Process.Signal(syscall.SIGTERM)
					return
				}
				time.Sleep(time.Millisecond)
			}
		})
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 7 {
			t.Error(err)
		}
		stopper.Wait()
	})
}

func TestConfinedEnvironmentIsPassedOn(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Sandbox) {
		w := newWorld(t)
		cmd := exec.Command("/usr/bin/env")
		wrap(t, s, w.limits()).Apply(cmd)
		cmd.Env = []string{"A=1", "ODD=\xff x\ny"}
		cmd.Dir = w.work
		got := finish(t, cmd)
		want := "A=1\nODD=\xff x\ny\n"
		if s.Backend() == Bubblewrap {
			want += "PWD=" + w.work + "\n"
		}
		if got.stdout != want {
			t.Errorf("%+v, want %q", got, want)
		}
	})
}

func TestConfinedRootHasNoPowers(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Sandbox) {
		w := newWorld(t)
		through := wrap(t, s, w.limits())
		for _, script := range []string{
			"mknod disk b 254 0", "mknod null c 1 3", "$SELF __attack write /dev/mem", "$SELF __attack write /dev/vda", "$SELF __attack write /dev/sda",
			"echo x > /proc/sys/kernel/core_pattern", "$SELF __attack write /proc/sysrq-trigger", "$SELF __attack write /sys/power/state", "hostname other",
			"mount -t tmpfs x dir", "chroot / true",
		} {
			if got := w.run(t, through, script); got.code == 0 {
				t.Errorf("%s: %+v", script, got)
			}
		}
		got := w.run(t, through, "grep -E '^(CapEff|CapPrm|NoNewPrivs)' /proc/self/status")
		want := "0000000000000000"
		if os.Getuid() == 0 {
			want = fmt.Sprintf("%016x", uint64(rootCaps))
		}
		if strings.Count(got.stdout, want) != 2 || !strings.Contains(got.stdout, "NoNewPrivs:\t1") {
			t.Errorf("%s, want %s", got.stdout, want)
		}
	})
}

func TestConfinedRootWritesFilesOfOthers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("not root")
	}
	eachBackend(t, func(t *testing.T, s *Sandbox) {
		w := newWorld(t)
		for _, path := range []string{"", "main.go"} {
			if err := os.Chown(filepath.Join(w.work, path), 12345, 12345); err != nil {
				t.Fatal(err)
			}
		}
		got := w.run(t, wrap(t, s, w.limits()), "echo x >> main.go && echo x > new && chown 12345 new && chmod 600 main.go")
		if got.code != 0 {
			t.Errorf("%+v", got)
		}
	})
}

func TestConfinedGitAddsAndCommitsButPlantsNothing(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	const commit = `git -c user.name=a -c user.email=a@b commit -qm "a change" && git log --oneline | wc -l`
	eachBackend(t, func(t *testing.T, s *Sandbox) {
		if s.Backend() == Landlock {
			t.Skip("Landlock alone does not protect inside the workspace, and says so")
		}
		w := newWorld(t)
		if got := w.run(t, Wrapper{}, `rm -rf .git && git init -q . && git add main.go && `+commit); got.code != 0 {
			t.Fatalf("%+v", got)
		}
		through := wrap(t, s, Limits{Write: []string{w.work, w.temp}, Protect: ProtectedInForGit(w.work)})
		if got := w.run(t, through, `git add . && `+commit+` && git checkout -qb other && git stash list && git gc -q`); got.code != 0 || strings.TrimSpace(got.stdout) != "2" {
			t.Errorf("%+v", got)
		}
		before := state(t, filepath.Join(w.work, ".git", "config"), filepath.Join(w.work, ".git", "hooks"), filepath.Join(w.work, ".git", "info"))
		for _, script := range []string{
			"git config core.fsmonitor ./evil", "echo x > .git/hooks/pre-commit", "echo '* filter=x' > .git/info/attributes", "mv .git g && cp -r g .git && echo x > .git/config",
			"mv .git/hooks .git/h", "rm -f .git/config", "rm -rf .git",
		} {
			if got := w.run(t, through, script); got.code == 0 {
				t.Errorf("%s: %+v", script, got)
			}
		}
		after := state(t, filepath.Join(w.work, ".git", "config"), filepath.Join(w.work, ".git", "hooks"), filepath.Join(w.work, ".git", "info"))
		if after != before {
			t.Errorf("before:\n%safter:\n%s", before, after)
		}
	})
}

// What is a link is protected as well as what it leads to.
func TestConfinedLinksAreProtected(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Sandbox) {
		if s.Backend() == Landlock {
			t.Skip("Landlock alone does not protect inside the workspace, and says so")
		}
		w := newWorld(t)
		got := w.run(t, Wrapper{}, `mkdir dots conf && echo x > dots/bashrc && ln -s dots/bashrc .bashrc && ln -s $O .ssh && ln -s conf .config && mkdir conf/fish && ln -s nowhere .zshrc`)
		if got.code != 0 {
			t.Fatalf("%+v", got)
		}
		through, err := s.Wrap(Limits{Write: []string{w.work, w.temp}, Protect: ProtectedIn(w.work, w.work)})
		if s.Backend() == Bubblewrap {
			if err == nil {
				t.Error("bwrap cannot put anything over a link")
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, script := range []string{
			"echo y > .bashrc", "echo y > dots/bashrc", "rm -f .bashrc", "mv .bashrc x", "ln -sfn $T .ssh", "mv dots d", "rm -rf dots",
			"echo y > .config/fish/config.fish", "rm .config", "mv conf c", "mv conf/fish conf/f", "echo y > nowhere", "echo y > .zshrc", "ln -sf main.go .zshrc",
		} {
			if got := w.run(t, through, script); got.code == 0 {
				t.Errorf("%s: %+v", script, got)
			}
		}
		if got := w.run(t, through, "cat .bashrc && echo y > conf/other && ls .ssh/ >/dev/null"); got.code != 0 {
			t.Errorf("%+v", got)
		}
	})
}

// The helper never runs a command that it could not confine.
func TestConfinedOrNotRunAtAll(t *testing.T) {
	w := newWorld(t)
	for _, args := range [][]string{
		{}, {"--"}, {"/bin/sh"}, {"--stage=other", "--"}, {"--", "x"}, {"--stage=landlock", "--limit=3", "--"},
		{"--stage=namespaces", "--write=relative", "--"}, {"--stage=namespaces", "--write=/", "--"},
		{"--stage=namespaces", "--write=" + w.root + "/missing", "--"}, {"--stage=namespaces", "--write=" + w.work, "--protect=" + w.work + "/missing", "--"},
		{"--stage=inside", "--"}, {"--stage=bwrap", "--"}, {"--stage=landlock", "--write=/proc/self/root/tmp", "--"},
	} {
		got := w.run(t, Wrapper{Argv: append([]string{self(t), HelperName}, args...)}, "echo ran")
		if got.code != SetupCode || !strings.HasPrefix(got.stderr, SetupPrefix) || got.stdout != "" {
			t.Errorf("%q: %+v", args, got)
		}
		if why, failed := SetupFailed(got.code, got.stderr); !failed || why == "" {
			t.Errorf("%q is not told: %+v", args, got)
		}
	}
}

func TestConfinedByAPathThatWasSwappedForALink(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Sandbox) {
		w := newWorld(t)
		wrap(t, s, w.limits())
		if got := w.run(t, Wrapper{}, "mv $W $W.old && ln -s $O $W"); got.code != 0 {
			t.Fatalf("%+v", got)
		}
		before := state(t, w.outside)
		through, err := s.Wrap(w.limits())
		if err == nil {
			got := w.run(t, through, "echo x > $O/new; echo x > new")
			if got.code == 0 {
				t.Errorf("it ran: %+v", got)
			}
		}
		os.Remove(filepath.Join(w.outside, ".coder"))
		os.Remove(filepath.Join(w.outside, ".git"))
		if state(t, w.outside) != before {
			t.Error("a link had a later command write elsewhere")
		}
	})
}

func TestConfinedStandInsAreRemoved(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Sandbox) {
		w := newWorld(t)
		before := state(t, w.work)
		l := Limits{Write: []string{w.work}, Protect: []string{w.work + "/.coder/", w.work + "/.bashrc", w.work + "/.config/fish/"}}
		wrap(t, s, l)
		wrap(t, s, l)
		if made := state(t, w.work) != before; made != (s.Backend() != Landlock) {
			t.Errorf("stand-ins were made: %v", made)
		}
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Fatal(err)
		}
		// Link counts are part of the state, times of directories are not.
		if after := state(t, w.work); after != before {
			t.Errorf("before:\n%safter:\n%s", before, after)
		}
		wrap(t, s, l)
		if s.Backend() != Landlock {
			if err := os.WriteFile(filepath.Join(w.work, ".coder", "kept"), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			s.Close()
			if !exists(filepath.Join(w.work, ".coder", "kept")) {
				t.Error("what was put there meanwhile is gone")
			}
		}
	})
}

func TestConfinedInsideAnother(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Sandbox) {
		w := newWorld(t)
		inner := findOnly(t, Landlock)
		l := Limits{Write: []string{w.temp}}
		through := wrap(t, s, w.limits())
		through.Argv = append(through.Argv, must(inner.Wrap(l)).Argv...)
		if got := w.run(t, through, "echo x > new"); got.code == 0 {
			t.Errorf("%+v", got)
		}
		if got := w.run(t, through, "echo x > $T/new"); got.code != 0 {
			t.Errorf("%+v", got)
		}
	})
}

func TestConfinedFindTellsWhyNot(t *testing.T) {
	s := Find(context.Background(), Options{Exe: "/nonexistent/coder"})
	if s.Backend() != None || len(s.Limitations()) != 2 {
		t.Errorf("%s %q", s.Backend(), s.Limitations())
	}
	if _, err := s.Wrap(Limits{}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("%v", err)
	}
}

func BenchmarkTrue(b *testing.B) {
	bench := func(b *testing.B, through Wrapper) {
		dir := b.TempDir()
		for b.Loop() {
			cmd := exec.Command("/bin/true")
			cmd.Dir = dir
			through.Apply(cmd)
			finish(b, cmd)
		}
	}
	b.Run("bare", func(b *testing.B) { bench(b, Wrapper{}) })
	for _, name := range []string{Namespaces, Bubblewrap, Landlock} {
		b.Run(name, func(b *testing.B) {
			w := newWorld(b)
			bench(b, wrap(b, findOnly(b, name), w.limits()))
		})
	}
}

func must(l Wrapper, err error) Wrapper {
	if err != nil {
		panic(err)
	}
	return l
}

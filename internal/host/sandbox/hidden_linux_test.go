package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// secrets adds to a world what is to be hidden: files of the workspace, a home
// with known places, and a socket somebody listens on.
func (w world) secrets(t *testing.T) Limits {
	t.Helper()
	for name, text := range map[string]string{
		"work/.env": "KEY=hush\n", "work/sub/.env": "KEY=hush\n", "work/plain": "TODO here\n", "work/sub/plain": "TODO there\n",
		"home/.ssh/id_rsa": "hush\n", "home/.ssh/config": "Host *\n", "home/.coder/key": "hush\n", "home/.coder/skills/s/run": "skill\n",
		"home/.bash_history": "hush\n", "home/notes": "note\n",
	} {
		path := filepath.Join(w.root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(".env", filepath.Join(w.work, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(w.root, "home/.ssh"), filepath.Join(w.work, "keys")); err != nil {
		t.Fatal(err)
	}
	l := w.limits()
	for _, name := range []string{"work/.env", "work/sub/.env", "home/.ssh", "home/.coder", "home/.bash_history", "home/.nothing"} {
		l.Hide = append(l.Hide, filepath.Join(w.root, name))
	}
	return l
}

// tricks are ways to read what is hidden. Run bare each of them shows it.
var tricks = []struct {
	name, script string
	inTree       bool // Landlock alone does not hide that, and says so
}{
	{"by name", `cat .env`, true},
	{"by a link", `cat link`, true},
	{"by a variable", `x=.e; cat ${x}nv`, true},
	{"by a pattern", `for f in .e*; do cat $f; done`, true},
	{"by a search", `grep -rh KEY .`, true},
	{"by awk", `awk 'BEGIN { ARGV[1] = ".e" "nv"; ARGC = 2 } { print }'`, true},
	{"by the root of a process", `cat /proc/self/root$PWD/.env`, true},
	{"by the directory of a process", `cat /proc/self/cwd/.env`, true},
	{"by git", `git grep --no-index -h KEY`, true},
	{"by a hard link", `ln .env hard && cat hard`, true},
	{"by moving it", `mv .env other && cat other`, true},
	{"by copying", `cp -r . $T/copy && cat $T/copy/.env`, true},
	{"by moving its folder", `mv sub sub2 && cat sub2/.env`, true},
	{"by an archive", `tar cf - . | tr -d '\0' | grep -a hush`, true},
	{"by unmounting", `umount .env; umount -l .env; cat .env`, true},
	{"by another namespace", `unshare -Urm cat .env || cat .env`, true},
	{"in a known folder", `cat $H/.ssh/id_rsa`, false},
	{"in a known folder by patterns", `cat $H/.s*/id*`, false},
	{"in a known folder by a link", `cat keys/id_rsa`, false},
	{"in a known folder by searching", `grep -rh hush $H`, false},
	{"the program's key", `cat $H/.coder/key`, false},
	{"what was typed", `tail $H/.bash*`, false},
}

func TestConfinedCommandsDoNotSeeWhatIsHidden(t *testing.T) {
	for _, trick := range tricks {
		w := newWorld(t)
		w.secrets(t)
		if got := w.run(t, Wrapper{}, "H=$W/../home; "+trick.script); !strings.Contains(got.stdout, "hush") {
			t.Errorf("%s: it does not work bare either: %+v", trick.name, got)
		}
	}
	eachBackend(t, func(t *testing.T, s *Sandbox) {
		for _, trick := range tricks {
			w := newWorld(t)
			l := w.secrets(t)
			if trick.inTree && !s.CanHide(l) {
				l.Write = []string{w.temp} // a command that only reads
			}
			if trick.inTree && !s.CanHide(l) {
				t.Errorf("%s: nothing hides it", trick.name)
			}
			if got := w.run(t, wrap(t, s, l), "H=$W/../home; "+trick.script); strings.Contains(got.stdout+got.stderr, "hush") {
				t.Errorf("%s: %+v", trick.name, got)
			}
		}
	})
}

func TestConfinedCommandsSeeTheRest(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Sandbox) {
		w := newWorld(t)
		l := w.secrets(t)
		l.Show = []string{filepath.Join(w.root, "home/.coder/skills"), filepath.Join(w.root, "home/.ssh/config"), filepath.Join(w.root, "home/.ssh/linked/file")}
		if err := os.Symlink(filepath.Join(w.work, "dir"), filepath.Join(w.root, "home/.ssh/linked")); err != nil {
			t.Fatal(err)
		}
		through := wrap(t, s, l)
		for script, want := range map[string]string{
			"grep -rn TODO . | sort":     "./plain:1:TODO here\n./sub/plain:1:TODO there\n",
			"cat $H/notes":               "note\n",
			"cat $H/.coder/skills/s/run": "skill\n",
			"cat $H/.ssh/config":         "Host *\n",
			"cat $H/.ssh/linked/file":    "file\n",
			"echo x > new; cat new":      "x\n",
			"echo x > .env.example; mkdir d; echo y > d/.e; cat d/.e": "y\n",
		} {
			if got := w.run(t, through, "H=$W/../home; "+script); got.stdout != want || got.code != 0 {
				t.Errorf("%s: %+v", script, got)
			}
		}
		if got := w.run(t, through, "echo x > $W/../home/.coder/skills/s/run"); got.code == 0 {
			t.Errorf("what is shown can be written: %+v", got)
		}
	})
}

func TestConfinedSocketsOutsideAreOutOfReach(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "tmux-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	agents := filepath.Join(dir, "default")
	listen(t, "unix", agents)
	w := newWorld(t)
	named := filepath.Join(w.outside, "agent.sock")
	listen(t, "unix", named)
	eachBackend(t, func(t *testing.T, s *Sandbox) {
		for _, network := range []bool{true, false} {
			l := w.limits()
			l.Network, l.Hide = network, []string{named}
			for _, path := range []string{agents, named} {
				if got := w.run(t, wrap(t, s, l), "$SELF __attack dial unix "+path); got.code == 0 {
					t.Errorf("%s: %+v", path, got)
				}
			}
			if s.Backend() == Landlock {
				continue
			}
			l.Write = append(l.Write, named)
			if got := w.run(t, wrap(t, s, l), "$SELF __attack dial unix "+named); got.code != 0 {
				t.Errorf("though allowed: %+v", got)
			}
		}
	})
}

// Where names are looked up must stay, and nothing else of where services
// listen.
func TestConfinedServicesAreNotSeen(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Sandbox) {
		if s.Backend() == Landlock {
			t.Skip("Landlock alone hides no folder; Unix sockets cannot be made")
		}
		w := newWorld(t)
		got := w.run(t, wrap(t, s, w.limits()), `find /run/ -type s; cat /etc/resolv.conf >/dev/null; echo $?`)
		bare := w.run(t, Wrapper{}, `cat /etc/resolv.conf >/dev/null; echo $?`)
		if got.stdout != bare.stdout {
			t.Errorf("%+v", got)
		}
	})
}

package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFindGroup looks for a place for groups in made-up machines.
func TestFindGroup(t *testing.T) {
	const (
		second = "31 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
		first  = "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n39 31 0:36 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
		both   = first + "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
		unit   = "sys/fs/cgroup/user/unit/"
		user   = "sys/fs/cgroup/user/"
	)
	delegable := map[string]string{
		user + "cgroup.procs": "", user + "cgroup.subtree_control": "cpu memory pids\n",
		unit + "cgroup.procs": "", unit + "cgroup.subtree_control": "", unit + limitV2: "max\n", unit + "cpu.max": "max 100000\n",
	}
	with := func(file, text string) map[string]string {
		files := map[string]string{file: text}
		for name, text := range delegable {
			if name != file {
				files[name] = text
			}
		}
		return files
	}
	oldGroups := map[string]string{
		"sys/fs/cgroup/memory/me/" + limitV1: "", "sys/fs/cgroup/memory/me/memory.use_hierarchy": "1\n",
		"sys/fs/cgroup/pids/tasks": "", "sys/fs/cgroup/unified/cgroup.subtree_control": "hugetlb\n", "sys/fs/cgroup/unified/cgroup.procs": "",
	}
	for _, c := range []struct {
		what, groups, mounts string
		files                map[string]string
		delegated            string
		memory, tasks        string
	}{
		{"version 2, ours is the root", "0::/\n", second,
			map[string]string{"sys/fs/cgroup/cgroup.procs": "", "sys/fs/cgroup/cgroup.subtree_control": "memory\n"}, "", "sys/fs/cgroup", "sys/fs/cgroup"},
		{"version 2, the parent is delegated", "0::/user/unit\n", second, delegable, user, user, user},
		{"version 2, ours is delegated", "0::/user/unit\n", second, delegable, unit, user, user},
		{"version 2, not delegated", "0::/user/unit\n", second, delegable, "", "", ""},
		{"version 2, without the controller", "0::/user/unit\n", second, with(user+"cgroup.subtree_control", "cpu pids\n"), user, "", ""},
		{"version 2, with memory bounded by a person", "0::/user/unit\n", second, with(unit+limitV2, "1073741824\n"), user, "", ""},
		{"version 2, with time bounded by a person", "0::/user/unit\n", second, with(unit+"cpu.max", "50000 100000\n"), user, "", ""},
		{"version 2, only a part is seen", "0::/user/unit\n", strings.Replace(second, " / ", " /user ", 1),
			map[string]string{"sys/fs/cgroup/cgroup.procs": "", "sys/fs/cgroup/cgroup.subtree_control": "memory\n", "sys/fs/cgroup/unit/cgroup.procs": ""},
			"sys/fs/cgroup/", "sys/fs/cgroup", "sys/fs/cgroup"},
		{"version 2, ours is not seen", "0::/../unit\n", second, delegable, user, "", ""},
		{"version 2, there is nothing above", "0::/\n", second,
			map[string]string{"sys/fs/cgroup/cgroup.procs": "", "sys/fs/cgroup.subtree_control": "memory\n"}, "sys/fs", "", ""},
		{"version 1", "8:pids:/\n4:memory:/me\n0::/\n", both, oldGroups, "", "sys/fs/cgroup/memory/me", "sys/fs/cgroup/pids"},
		{"version 1, without pids", "4:memory:/me\n0::/\n", both, oldGroups, "", "sys/fs/cgroup/memory/me", ""},
		{"version 1, without hierarchy", "4:memory:/me\n", both,
			map[string]string{"sys/fs/cgroup/memory/me/" + limitV1: "", "sys/fs/cgroup/memory/me/memory.use_hierarchy": "0\n"}, "", "", ""},
		{"none mounted", "0::/\n", "", nil, "", "", ""},
		{"no groups", "", second, nil, "", "", ""},
	} {
		root := t.TempDir()
		files := map[string]string{"proc/self/cgroup": c.groups, "proc/self/mountinfo": c.mounts}
		for name, text := range c.files {
			files[name] = text
		}
		for name, text := range files {
			path := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		at := func(path string) string {
			if path == "" {
				return ""
			}
			return filepath.Join(root, path)
		}
		got := groupFinder{root, func(dir string) bool { return dir == at(c.delegated) }}.find()
		if want := (groupParents{at(c.memory), at(c.tasks)}); got != want {
			t.Errorf("%s: %+v, want %+v", c.what, got, want)
		}
		if _, ok := got.acquire(Bounds{Memory: 1 << 30}); ok { // no kernel is behind it
			t.Errorf("%s: a group whose limit could not be set", c.what)
		}
	}
}

// TestDelegatedGroup reads the mark of a delegated group.
func TestDelegatedGroup(t *testing.T) {
	dir := t.TempDir()
	if isDelegated(dir) {
		t.Error("a folder without the mark")
	}
	for value, want := range map[string]bool{"1": true, "0": false, "": false} {
		if err := unix.Setxattr(dir, "user.delegate", []byte(value), 0); err != nil {
			t.Skipf("no attribute can be set here: %v", err)
		}
		if isDelegated(dir) != want {
			t.Errorf("%q: delegated is not %v", value, want)
		}
	}
}

// TestGroupsOfTheDead: a coder that was killed leaves its groups to the next one.
func TestGroupsOfTheDead(t *testing.T) {
	dir, own := t.TempDir(), ownNumber()
	ours := groupPrefix + own + "-" + startTime(own) + "-1"
	for _, name := range []string{ours, groupPrefix + own + "-1-1", groupPrefix + "4194305-77-2", "another", groupPrefix + "x"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	removeStaleGroups(dir)
	entries, err := os.ReadDir(dir)
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if want := "another " + ours + " " + groupPrefix + "x"; err != nil || strings.Join(left, " ") != want {
		t.Errorf("left are %q, want %q: %v", left, want, err)
	}
}

// grouped is a line whose command gets a group, and the folders of that.
func grouped(t *testing.T, l Wrapper) (held Wrapper, dirs []string, release func()) {
	t.Helper()
	if ownGroupParents().memory == "" {
		t.Skip("no control group can be made here")
	}
	l.Argv, release = l.UseGroup()
	for _, arg := range l.Argv {
		if dir, is := strings.CutPrefix(arg, "--group="); is {
			dirs = append(dirs, dir)
		}
	}
	if len(dirs) == 0 {
		t.Fatal("the command gets no group")
	}
	t.Cleanup(removeUnusedGroups)
	t.Cleanup(release)
	return l, dirs, release
}

// TestConfinedGroup has the kernel hold commands within their bounds.
func TestConfinedGroup(t *testing.T) {
	run := func(t *testing.T, w world, line func() Wrapper) {
		for _, script := range []string{
			`exec $SELF __attack fill 300`,
			`$SELF __attack fill 300; exit 0`,
			`setsid $SELF __attack fill 300 & wait`,
			`$SELF __attack memfd 300 & sleep 30`,
		} {
			held, dirs, release := grouped(t, line())
			got := w.run(t, held, script)
			if got.signal != syscall.SIGKILL || strings.Count(got.stderr, "coder stopped the command: its processes used more than 100 MB of memory (safety.memory_limit_mb)") != 1 {
				t.Errorf("%s: %+v", script, got)
			}
			if m := openGroup(helperSpec{groups: dirs}); m.startOOMs == 0 {
				t.Errorf("%s: it was not the kernel", script)
			}
			release()
			_ = (*Sandbox)(nil).Close() // as at the end of a session
			for _, dir := range dirs {
				if _, err := os.Stat(dir); !os.IsNotExist(err) {
					t.Errorf("%s is left: %v", dir, err)
				}
			}
		}
	}
	eachBackend(t, func(t *testing.T, s *Sandbox) {
		w := newWorld(t)
		run(t, w, func() Wrapper {
			l := w.limits()
			l.Bounds = Bounds{Memory: 100 << 20}
			return wrap(t, s, l)
		})
	})
	t.Run("unconfined", func(t *testing.T) {
		run(t, newWorld(t), func() Wrapper { return Supervised(self(t), Bounds{Memory: 100 << 20}).WithReport() })
	})
}

// TestConfinedGroupIsNotLeft: a command is in its group, cannot leave or change it, and
// has nothing of it open.
func TestConfinedGroupIsNotLeft(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Sandbox) {
		w := newWorld(t)
		l := w.limits()
		l.Bounds = Bounds{Memory: 200 << 20, Processes: 50}
		held, dirs, _ := grouped(t, wrap(t, s, l))
		got := w.run(t, held, `cat /proc/self/cgroup; ls -l /proc/self/fd/ | grep -c cgroup
			for g in "$@"; do for f in tasks cgroup.procs memory.limit_in_bytes memory.max pids.max; do
				(echo 0 >$(dirname $g)/$f) 2>/dev/null && echo left by $f; (echo 1000000000 >$g/$f) 2>/dev/null && echo changed $f
			done; mkdir $g/more 2>/dev/null && echo made; done`, dirs...)
		if want := filepath.Base(dirs[0]); strings.Count(got.stdout, want) != len(dirs) || !strings.Contains(got.stdout, "\n0\n") {
			t.Errorf("%+v, want %d times %s", got, len(dirs), want)
		}
		for _, word := range []string{"left", "changed", "made"} {
			if strings.Contains(got.stdout, word) {
				t.Errorf("%+v", got)
			}
		}
	})
}

// TestConfinedGroupsSideBySide: what one command uses counts for no other.
func TestConfinedGroupsSideBySide(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Sandbox) {
		w := newWorld(t)
		l := w.limits()
		l.Bounds = Bounds{Memory: 100 << 20}
		scripts := []string{`$SELF __attack some 60`, `$SELF __attack some 60`, `$SELF __attack fill 300`}
		ends := make([]ended, len(scripts))
		var all sync.WaitGroup
		for i, script := range scripts {
			held, _, _ := grouped(t, wrap(t, s, l))
			all.Go(func() { ends[i] = w.run(t, held, script) })
		}
		all.Wait()
		for i, got := range ends {
			if killed := i == 2; killed != (got.signal == syscall.SIGKILL) || !killed && (got.code != 0 || got.stderr != "") {
				t.Errorf("%s: %+v", scripts[i], got)
			}
		}
	})
}

// TestConfinedGroupGone: a group that vanished does not keep a command from running,
// and the helper still watches.
func TestConfinedGroupGone(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Sandbox) {
		w := newWorld(t)
		l := w.limits()
		l.Bounds = Bounds{Memory: 100 << 20}
		for script, fine := range map[string]bool{"true": true, `$SELF __attack fill 300`: false} {
			held, _, release := grouped(t, wrap(t, s, l))
			release()
			removeUnusedGroups()
			if got := w.run(t, held, script); fine != (got.code == 0) || fine != (got.stderr == "") {
				t.Errorf("%s: %+v", script, got)
			}
		}
	})
}

// TestGroupIsUsedAgain, unless a command left something in it.
func TestGroupIsUsedAgain(t *testing.T) {
	w := newWorld(t)
	file := "/dev/shm/coder-test-" + strconv.Itoa(os.Getpid())
	t.Cleanup(func() { os.Remove(file) })
	line := func() Wrapper { return Supervised(self(t), Bounds{Memory: 100 << 20}).WithReport() }
	var before []string
	for _, c := range []struct {
		script string
		killed bool
		again  bool // the group of the command before
	}{
		{"true", false, false},
		{"$SELF __attack fill 300", true, true},
		{"$SELF __attack some 60", false, true}, // that the kernel killed in it before is no matter
		{"head -c 40000000 /dev/zero >" + file, false, true},
		{"true", false, false},
	} {
		held, dirs, release := grouped(t, line())
		if again := slices.Equal(dirs, before); again != c.again {
			t.Errorf("%s: in %q after %q", c.script, dirs, before)
		}
		before = dirs
		if got := w.run(t, held, c.script); c.killed != (got.signal == syscall.SIGKILL) || !c.killed && (got.code != 0 || got.stderr != "") {
			t.Errorf("%s: %+v", c.script, got)
		}
		release()
	}
}

// TestGroupOfVersion2 starts a command in a group of version 2, whatever that can bound.
func TestGroupOfVersion2(t *testing.T) {
	own := make(map[string]string)
	text, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(text)) {
		if path, is := strings.CutPrefix(line, "0::"); is {
			own[""] = strings.TrimSpace(path)
		}
	}
	parent := groupFinder{}.ownGroupDir(own, "")
	dir := filepath.Join(parent, groupPrefix+"test-"+strconv.Itoa(os.Getpid()))
	if err := unix.Mkdir(dir, 0o755); parent == "" || err != nil {
		t.Skipf("no group of version 2 can be made here: %v", err)
	}
	t.Cleanup(func() { group{dirs: []string{dir}}.remove() })
	eachBackend(t, func(t *testing.T, s *Sandbox) {
		w := newWorld(t)
		l := wrap(t, s, w.limits())
		l.Argv = append(l.Argv[:2:2], append([]string{"--group=" + dir}, l.Argv[2:]...)...)
		if got := w.run(t, l, `grep ^0:: /proc/self/cgroup`); !strings.HasSuffix(strings.TrimSpace(got.stdout), filepath.Base(dir)) {
			t.Errorf("%+v", got)
		}
	})
}

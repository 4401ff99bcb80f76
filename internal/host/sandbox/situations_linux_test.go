package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"coder/internal/host/program"
)

// inSituation says, in the environment of the test program, which backend must
// be found.
const inSituation = "SANDBOX_TEST_FINDS"

// TestSituation runs in a situation that another test makes: the best way there
// must be the one that is said, and it must do its work.
func TestSituation(t *testing.T) {
	want := os.Getenv(inSituation)
	if want == "" {
		t.Skip("no situation is given")
	}
	o := Options{Exe: self(t), Launcher: program.NewOutside(os.Environ(), "/nowhere")}
	switch want {
	case Landlock:
		o.Launcher = program.Launcher{} // there is no bwrap
	case Bubblewrap:
		o.Backend = Bubblewrap // it alone may make namespaces
	}
	s := Find(t.Context(), o)
	if s.Backend() != want {
		t.Fatalf("found %s, want %s: %v", s.Backend(), want, s.Limitations())
	}
	if LooksIncomplete() != (want == Landlock) {
		t.Errorf("there are signs that %s is missing: %v", Namespaces, LooksIncomplete())
	}
	w := newWorld(t)
	l := w.secrets(t)
	for _, name := range []string{".coder/undo", "sub/.coder/log"} {
		put(t, filepath.Join(w.work, name, "kept"), "KEPT\n")
		l.Hide = append(l.Hide, filepath.Join(w.work, name))
	}
	reading := l
	reading.Write = []string{w.temp}
	for _, c := range []struct {
		l          Limits
		script     string
		works      bool
		everywhere bool // also with Landlock alone
	}{
		{l, "echo x > new && cat plain", true, true},
		{l, "echo x > $O/new", false, true},
		{l, "cat $W/../home/.ssh/id_rsa", false, true},
		{l, "cat .env", false, false},
		{reading, "cat .env", false, true},
		{reading, "grep -rq TODO .", true, true},
		{l, "cat .coder/undo/kept || cat sub/.coder/log/kept", false, false},
		{reading, "cat .coder/undo/kept || cat sub/.coder/log/kept", false, true},
		{l, "tar cf $T/all.tar . && cp -r .coder $T/copy && find . >/dev/null && du -s . && grep -rq TODO .", true, false},
		{l, "echo x >> .git/config", false, false},
		{l, "$SELF __attack dial tcp 127.0.0.1:1", false, true},
	} {
		if !c.everywhere && want == Landlock {
			if s.Report(c.l).Complete {
				t.Errorf("%s: what is not enforced is not said", c.script)
			}
			continue
		}
		if got := w.run(t, wrap(t, s, c.l), c.script); (got.code == 0) != c.works {
			t.Errorf("%s: %+v", c.script, got)
		}
	}
}

// TestTheSituationsOfThisMachine makes, as root, what other machines are like:
// an ordinary user with namespaces, one who may not make any, and one who has
// only bubblewrap for that.
func TestTheSituationsOfThisMachine(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("not root: situations cannot be made")
	}
	run := func(t *testing.T, want string, uid int, script string) {
		t.Helper()
		dir, err := os.MkdirTemp("/tmp", "sandbox-test-*")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		exe, tmp := filepath.Join(dir, "sandbox.test"), filepath.Join(dir, "tmp")
		copyFile(t, self(t), exe)
		for _, err := range []error{os.Chmod(dir, 0o755), os.Mkdir(tmp, 0o700), os.Chown(tmp, uid, uid)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command("/bin/sh", "-c", script, "sh", exe, "-test.run=^TestSituation$", "-test.v")
		cmd.Dir, cmd.Env = tmp, append(os.Environ(), "TMPDIR="+tmp, "HOME="+tmp, inSituation+"="+want)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
		out, err := cmd.CombinedOutput()
		if strings.Contains(string(out), "cannot be made") {
			t.Skipf("the situation cannot be made here: %s", out)
		}
		if err != nil || !strings.Contains(string(out), "--- PASS: TestSituation") {
			t.Errorf("%v\n%s", err, out)
		}
	}
	// Namespaces within one that allows no more: as where the system forbids them.
	const forbidden = `unshare -Ur true 2>/dev/null || { echo "cannot be made"; exit 1; }
exec unshare -U --map-user=%d --map-group=%d --keep-caps sh -c 'echo 0 > /proc/sys/user/max_user_namespaces || { echo "cannot be made"; exit 1; }; exec setpriv --bounding-set -all --inh-caps -all --ambient-caps -all "$@"' sh "$@"`
	t.Run("root", func(t *testing.T) { run(t, Namespaces, 0, `exec "$@"`) })
	t.Run("a user with namespaces", func(t *testing.T) {
		if !possible(Namespaces) {
			t.Skip("users cannot make namespaces here")
		}
		run(t, Namespaces, nobody, `exec "$@"`)
	})
	t.Run("a user without", func(t *testing.T) {
		if landlockVersion() == 0 {
			t.Skip("the kernel does not support Landlock")
		}
		run(t, Landlock, nobody, fmt.Sprintf(forbidden, nobody, nobody))
	})
	t.Run("bubblewrap", func(t *testing.T) {
		if !possible(Bubblewrap) {
			t.Skip("bwrap does not work here")
		}
		run(t, Bubblewrap, nobody, `exec "$@"`)
	})
}

// A machine that is too busy to answer in time is not taken for one that cannot confine.
func TestASlowMachineIsNoneThatCannot(t *testing.T) {
	exe := filepath.Join(t.TempDir(), "slow")
	if err := os.WriteFile(exe, []byte("#!/bin/sh\nexec sleep 60\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	got := Find(t.Context(), Options{Exe: exe, ProbeTimeout: 50 * time.Millisecond})
	if got.Backend() == None {
		t.Fatalf("nothing confines: %v", got.Limitations())
	}
	if line, err := got.Wrap(Limits{Write: []string{t.TempDir()}}); err != nil || !slices.Contains(line.Argv, exe) {
		t.Errorf("%q does not run %s: %v", line.Argv, exe, err)
	}
}

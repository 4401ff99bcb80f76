package sandbox

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"coder/internal/host/program"
)

// The test program is also the helper, and the attacker.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == attackName {
		syscall.Exit(attack(os.Args[2:])) // at once: the race detector would wait a second
	}
	if len(os.Args) > 1 && os.Args[1] == starterName {
		syscall.Exit(startAndGo(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == runnerName {
		syscall.Exit(startAndWait(os.Args[2:]))
	}
	os.Exit(m.Run())
}

const nobody = 65534

// TestAsAnOrdinaryUser runs the tests of this package that confine commands
// again as somebody else than root.
func TestAsAnOrdinaryUser(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	if os.Getuid() != 0 {
		t.Skip("not root: the other tests ran as an ordinary user already")
	}
	dir, err := os.MkdirTemp("/tmp", "c*") // names of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	exe := filepath.Join(dir, "sandbox.test")
	copyFile(t, self(t), exe)
	tmp := filepath.Join(dir, "t")
	for _, err := range []error{os.Chmod(dir, 0o755), os.Mkdir(tmp, 0o700), os.Chown(tmp, nobody, nobody)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(exe, "-test.run=^TestConfined", "-test.timeout=25m", "-test.v="+fmt.Sprint(testing.Verbose()))
	cmd.Dir, cmd.Env = tmp, append(os.Environ(), "TMPDIR="+tmp, "HOME="+tmp)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) {
		t.Skip("the user cannot be changed here")
	}
	if err != nil {
		t.Fatalf("as user %d: %v\n%s", nobody, err, out)
	}
	if testing.Verbose() {
		t.Logf("as user %d:\n%s", nobody, out)
	}
}

func self(t testing.TB) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// eachBackend runs a test once for every backend that works here.
func eachBackend(t *testing.T, test func(*testing.T, *Sandbox)) {
	for _, name := range []string{Namespaces, Bubblewrap, Landlock} {
		t.Run(name, func(t *testing.T) {
			test(t, findOnly(t, name))
		})
	}
}

func findOnly(t testing.TB, name string) *Sandbox {
	t.Helper()
	s := Find(t.Context(), Options{Exe: self(t), Launcher: program.NewOutside(os.Environ(), "/nowhere"), Backend: name})
	if s.Backend() != name && !possible(name) {
		t.Skipf("there is no %s here: %v", name, s.Limitations())
	}
	if s.Backend() != name {
		t.Fatalf("%s does not work: %v", name, s.Limitations())
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// possible reports whether a backend should work, found out without it.
func possible(name string) bool {
	switch name {
	case Landlock:
		return landlockVersion() > 0
	case Bubblewrap:
		return (os.Getuid() != 0 || landlockVersion() > 0) && exec.Command("bwrap", "--ro-bind", "/", "/", "--unshare-net", "true").Run() == nil
	}
	var kernel syscall.Utsname
	var major, minor int
	_ = syscall.Uname(&kernel)
	release := make([]byte, 0, len(kernel.Release))
	for _, c := range kernel.Release {
		release = append(release, byte(c))
	}
	_, _ = fmt.Sscanf(string(release), "%d.%d", &major, &minor)
	return (major > 5 || major == 5 && minor >= 12) && exec.Command("unshare", "-Urmn", "mount", "-t", "tmpfs", "x", "/tmp").Run() == nil
}

// world is a workspace with a repository, a place for temporary files, and what
// lies outside of both.
type world struct {
	root, work, temp, outside string
}

func newWorld(t testing.TB) world {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := world{root, filepath.Join(root, "work"), filepath.Join(root, "temp"), filepath.Join(root, "outside")}
	for name, text := range map[string]string{
		"work/main.go": "package main\n", "work/dir/file": "file\n",
		"work/.git/config": "[core]\n", "work/.git/HEAD": "ref: refs/heads/main\n", "work/.git/hooks/pre-commit.sample": "#!/bin/sh\n",
		"temp/old": "old\n", "outside/file": "precious\n", "outside/dir/file": "precious\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func (w world) limits() Limits {
	return Limits{Write: []string{w.work, w.temp}, Protect: ProtectedIn(w.work, "")}
}

// ended is how a command ended.
type ended struct {
	code           int
	signal         syscall.Signal
	stdout, stderr string
}

// run runs a shell script in the workspace, through what is given.
func (w world) run(t testing.TB, through Wrapper, script string, args ...string) ended {
	t.Helper()
	return finish(t, w.command(t, through, script, args...))
}

// command is a shell script that was not started yet.
func (w world) command(t testing.TB, through Wrapper, script string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/bin/sh", append([]string{"-c", script, "sh"}, args...)...)
	cmd.Dir = w.work
	cmd.Env = append(os.Environ(), "W="+w.work, "T="+w.temp, "O="+w.outside, "SELF="+self(t))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	through.Apply(cmd)
	return cmd
}

func finish(t testing.TB, cmd *exec.Cmd, more ...*os.File) ended {
	t.Helper()
	runtime.LockOSThread() // the command dies with the thread that started it
	defer runtime.UnlockOSThread()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	}
	cmd.WaitDelay = 5 * time.Second
	told, tell, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer told.Close()
	cmd.ExtraFiles = append([]*os.File{tell}, more...)
	err = cmd.Start()
	for _, f := range cmd.ExtraFiles {
		f.Close()
	}
	if err == nil {
		err = cmd.Wait()
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	ws := cmd.ProcessState.Sys().(syscall.WaitStatus)
	e := ended{code: ws.ExitStatus(), stdout: stdout.String(), stderr: stderr.String()}
	var end ExitStatus
	if text, _ := io.ReadAll(told); len(text) > 0 {
		if _, err := fmt.Sscanf(string(text), "%d %d %t", &end.Code, &end.Signal, &end.Stopped); err != nil {
			t.Fatalf("told %q: %v", text, err)
		}
	}
	if end.Signal != 0 {
		e.signal = end.Signal
	}
	if ws.Signaled() {
		e.code, e.signal = 128+int(ws.Signal()), ws.Signal()
	}
	return e
}

func wrap(t testing.TB, s *Sandbox, l Limits) Wrapper {
	t.Helper()
	through, err := s.Wrap(l)
	if err != nil {
		t.Fatal(err)
	}
	return through.WithReport()
}

// state tells what is below paths: names, modes, owners and contents.
func state(t testing.TB, paths ...string) string {
	t.Helper()
	var b strings.Builder
	for _, root := range paths {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				fmt.Fprintf(&b, "%s is not there\n", path)
				return nil
			}
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			st := info.Sys().(*syscall.Stat_t)
			fmt.Fprintf(&b, "%s %v %d:%d %d", path, info.Mode(), st.Uid, st.Gid, st.Nlink)
			if info.Mode().IsRegular() {
				data, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				fmt.Fprintf(&b, " %x %v", sha256.Sum256(data), info.ModTime())
			}
			b.WriteByte('\n')
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

package workspace_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"coder/internal/host/workspace"
)

// Nothing can be put into a directory that may not be written, and nothing is
// done to it to change that.
func TestReadOnlyDirectory(t *testing.T) {
	const place = "WORKSPACE_READONLY"
	if dir := os.Getenv(place); dir != "" {
		writeWhereWeMayNot(t, dir)
		return
	}
	dir, err := os.MkdirTemp("", "readonly") // unlike that of the test, others can be let into it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		os.Chmod(dir+"/sub", 0o755)
		os.RemoveAll(dir)
	})
	put(t, dir+"/sub/f", "old")
	for name, mode := range map[string]fs.FileMode{dir: 0o755, dir + "/sub/f": 0o666, dir + "/sub": 0o555} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	if os.Getuid() != 0 {
		writeWhereWeMayNot(t, dir)
		return
	}
	program, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(dir+"/test", program, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(dir+"/test", "-test.run=^TestReadOnlyDirectory$")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), place+"="+dir)
	const nobody = 65534
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Skipf("this test cannot be run as somebody who is not root: %v", err)
	}
	if err != nil || !strings.Contains(string(out), "PASS") {
		t.Errorf("%v\n%s", err, out)
	}
}

func writeWhereWeMayNot(t *testing.T, dir string) {
	t.Helper()
	ws, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	for name, do := range map[string]func() error{
		"overwrite": func() error { return ws.WriteFile("sub/f", []byte("new")) },
		"create":    func() error { return ws.WriteFile("sub/g", []byte("new")) },
		"below":     func() error { return ws.WriteFile("sub/d/g", []byte("new")) },
		"delete":    func() error { return ws.Delete("sub/f") },
	} {
		if err := do(); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "sub") {
			t.Errorf("%s: %v", name, err)
		}
	}
	info, err := os.Stat(dir + "/sub")
	if err != nil || info.Mode().Perm() != 0o555 || get(t, dir+"/sub/f") != "old" {
		t.Errorf("the directory is %v, %v", info, err)
	}
	if names := list(t, dir+"/sub"); len(names) != 1 {
		t.Errorf("left behind: %q", names)
	}
}

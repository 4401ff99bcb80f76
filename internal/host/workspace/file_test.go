package workspace_test

import (
	"bytes"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"coder/internal/host/workspace"
)

func TestReadFileIsBounded(t *testing.T) {
	ws, dir, _ := open(t)
	put(t, dir+"/f", strings.Repeat("x", 100))
	if b, info, err := ws.ReadFile("f", 100); len(b) != 100 || err != nil || info.Size() != 100 {
		t.Errorf("ReadFile = %d bytes, %v", len(b), err)
	}
	if _, _, err := ws.ReadFile("f", 99); !errors.Is(err, workspace.ErrTooLarge) {
		t.Errorf("ReadFile beyond the limit: %v", err)
	}
	put(t, dir+"/empty", "")
	if b, _, err := ws.ReadFile("empty", 0); len(b) != 0 || err != nil {
		t.Errorf("ReadFile(empty) = %q, %v", b, err)
	}
}

func TestOpenRefusesSpecialFiles(t *testing.T) {
	ws, dir, _ := open(t)
	if err := syscall.Mkfifo(dir+"/fifo", 0o666); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", dir+"/socket")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	kinds := map[string]string{"fifo": "a named pipe", "socket": "a socket", ".": "a directory"}
	if err := syscall.Mknod(dir+"/zero", syscall.S_IFCHR|0o666, 1<<8|5); err == nil {
		kinds["zero"] = "a device"
	}
	for name, kind := range kinds {
		_, _, err := ws.Open(name)
		if !errors.Is(err, workspace.ErrNotRegular) || !strings.Contains(err.Error(), kind) {
			t.Errorf("Open(%q) error = %v, want %s", name, err, kind)
		}
		if err := ws.WriteFile(name, nil); !errors.Is(err, workspace.ErrNotRegular) {
			t.Errorf("WriteFile(%q) error = %v", name, err)
		}
	}
}

func TestReadDir(t *testing.T) {
	ws, dir, _ := open(t)
	for _, n := range []string{"c", "a", "b"} {
		put(t, filepath.Join(dir, "d", n), n)
	}
	got, more, err := ws.ReadDir("d", 10)
	if err != nil || more || len(got) != 3 || got[0].Name() != "a" || got[2].Name() != "c" {
		t.Errorf("ReadDir = %v, %v, %v", got, more, err)
	}
	if got, more, err = ws.ReadDir("d", 2); len(got) != 2 || !more || err != nil {
		t.Errorf("ReadDir of 2 = %v, %v, %v", got, more, err)
	}
	if _, _, err = ws.ReadDir("d/a", 2); err == nil {
		t.Error("ReadDir of a file succeeded")
	}
}

func TestWriteFileKeepsMode(t *testing.T) {
	ws, dir, _ := open(t)
	put(t, dir+"/run.sh", "old")
	if err := os.Chmod(dir+"/run.sh", 0o751); err != nil {
		t.Fatal(err)
	}
	if err := ws.WriteFile("run.sh", []byte("new")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(dir + "/run.sh")
	if err != nil || info.Mode().Perm() != 0o751 || get(t, dir+"/run.sh") != "new" {
		t.Errorf("mode = %v, %v", info.Mode(), err)
	}
}

func TestWriteFileMakesParents(t *testing.T) {
	ws, dir, _ := open(t)
	if err := ws.WriteFile("a/b/c.txt", []byte("x")); err != nil || get(t, dir+"/a/b/c.txt") != "x" {
		t.Fatal(err)
	}
	if err := ws.WriteFile("a/b/c.txt/d", nil); err == nil {
		t.Error("a file served as a directory")
	}
	if err := ws.WriteFile(strings.Repeat("n", 300), nil); !errors.Is(err, syscall.ENAMETOOLONG) {
		t.Errorf("name of 300 bytes: %v", err)
	}
	if err := ws.WriteFile(strings.Repeat("n", 255), []byte("x")); err != nil {
		t.Errorf("name of 255 bytes: %v", err)
	}
}

func TestWriteFileRefusesReadOnly(t *testing.T) {
	ws, dir, _ := open(t)
	put(t, dir+"/f", "old")
	if err := os.Chmod(dir+"/f", 0o444); err != nil {
		t.Fatal(err)
	}
	before, _ := os.Stat(dir + "/f")
	if err := ws.WriteFile("f", []byte("new")); !errors.Is(err, workspace.ErrReadOnly) {
		t.Errorf("WriteFile error = %v", err)
	}
	after, _ := os.Stat(dir + "/f")
	if !os.SameFile(before, after) || after.Mode() != before.Mode() || get(t, dir+"/f") != "old" {
		t.Error("the read-only file was touched")
	}
	if names := list(t, dir); len(names) != 1 {
		t.Errorf("left behind: %q", names)
	}
}

func TestCreateFile(t *testing.T) {
	ws, dir, _ := open(t)
	if err := ws.CreateFile("logs/1", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(dir + "/logs/1"); info.Mode().Perm() != 0o600 {
		t.Errorf("mode = %v", info.Mode())
	}
	if err := ws.CreateFile("logs/1", []byte("y"), 0o600); !errors.Is(err, fs.ErrExist) || get(t, dir+"/logs/1") != "x" {
		t.Errorf("second CreateFile: %v", err)
	}
}

// helper runs this test binary again to act out one of the roles below.
func helper(t *testing.T, role, dir string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^TestHelper$")
	cmd.Env = append(os.Environ(), "WORKSPACE_ROLE="+role, "WORKSPACE_DIR="+dir)
	cmd.Stderr = os.Stderr
	t.Cleanup(func() {
		if cmd.Process != nil {
			cmd.Process.Kill()
		}
	})
	return cmd
}

func TestHelper(t *testing.T) {
	role, dir := os.Getenv("WORKSPACE_ROLE"), os.Getenv("WORKSPACE_DIR")
	if role == "" {
		t.Skip("only useful when run by other tests")
	}
	ws, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	switch role {
	case "write":
		for {
			for _, c := range []byte("ab") {
				if err := ws.WriteFile("f", bytes.Repeat([]byte{c}, 1<<20)); err != nil {
					t.Fatal(err)
				}
			}
			os.Stdout.WriteString("x")
		}
	case "full":
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 1 << 16, Max: 1 << 16}); err != nil {
			t.Fatal(err)
		}
		if err := ws.WriteFile("f", make([]byte, 1<<20)); !errors.Is(err, syscall.EFBIG) {
			t.Fatalf("WriteFile error = %v", err)
		}
	}
}

func TestKilledWriterLeavesOldOrNew(t *testing.T) {
	_, dir, _ := open(t)
	for range 8 {
		cmd := helper(t, "write", dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		cmd.Process.Kill()
		cmd.Wait()
		got := get(t, dir+"/f")
		if len(got) != 1<<20 || strings.Count(got, got[:1]) != len(got) {
			t.Fatalf("half a file: %d bytes, %d of the first", len(got), strings.Count(got, got[:1]))
		}
	}
}

func TestFailedWriteLeavesOld(t *testing.T) {
	_, dir, _ := open(t)
	put(t, dir+"/f", "old")
	if err := helper(t, "full", dir).Run(); err != nil {
		t.Fatal(err)
	}
	if names := list(t, dir); get(t, dir+"/f") != "old" || len(names) != 1 {
		t.Errorf("file holds %q, directory %q", get(t, dir+"/f"), names)
	}
}

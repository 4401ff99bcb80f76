package atomicfile_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"coder/internal/host/atomicfile"
)

func TestAFileIsReplacedWholeAndNothingIsLeftBeside(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.json")
	for _, text := range []string{"first", "the second, longer one", ""} {
		if err := atomicfile.Write(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		info, _ := os.Stat(path)
		if err != nil || string(got) != text || info.Mode().Perm() != 0o600 {
			t.Errorf("%q, %v, %v; want %q", got, info.Mode(), err, text)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
	if err := atomicfile.Write(filepath.Join(dir, "none", "a"), nil, 0o600); err == nil {
		t.Error("a file was written into a folder that is not there")
	}
}

// TestKilledWhileWritingElsewhere leaves the old file, nothing beside it, and
// what there is of the new one where it is swept.
func TestKilledWhileWritingElsewhere(t *testing.T) {
	if dir := os.Getenv("WRITE_UNTIL_KILLED"); dir != "" {
		for {
			if err := atomicfile.WriteFrom(dir+"/own", dir+"/theirs/a", make([]byte, 1<<20), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(dir+"/own", 0o700), os.Mkdir(dir+"/theirs", 0o700)); err != nil {
		t.Fatal(err)
	}
	names := func(sub string) (names []string) {
		entries, _ := os.ReadDir(filepath.Join(dir, sub))
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	for left := 0; left < 3; { // some kills come when nothing is being written
		child := exec.Command(os.Args[0], "-test.run", t.Name())
		child.Env = append(os.Environ(), "WRITE_UNTIL_KILLED="+dir)
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		for len(names("theirs")) == 0 || len(names("own")) == 0 {
			time.Sleep(100 * time.Microsecond)
		}
		_ = child.Process.Kill()
		_ = child.Wait()
		for _, name := range names("own") {
			if left++; !strings.HasPrefix(name, atomicfile.TempPrefix) {
				t.Errorf("%s is left", name)
			}
		}
		info, err := os.Stat(dir + "/theirs/a")
		if err != nil || info.Size() != 1<<20 || len(names("theirs")) != 1 {
			t.Errorf("there is %v of %v, %v", names("theirs"), info, err)
		}
		if atomicfile.Sweep(dir, "own"); len(names("own")) > 0 {
			t.Errorf("after sweeping there is %v", names("own"))
		}
	}
}

// TestWhatKilledProcessesLeftIsSwept, but nothing that is being written, and
// nothing that only looks like it.
func TestWhatKilledProcessesLeftIsSwept(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	touch := func(names ...string) {
		t.Helper()
		for _, name := range names {
			if err := os.WriteFile(name, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	busy, idle := filepath.Join(root, "busy"), filepath.Join(root, "idle")
	if err := errors.Join(os.Mkdir(busy, 0o700), os.Mkdir(idle, 0o700), os.Mkdir(idle+"/.new-folder", 0o700),
		os.Symlink(outside, root+"/out"), os.Symlink("/etc/passwd", idle+"/.new-link"), syscall.Mkfifo(root+"/pipe", 0o600)); err != nil {
		t.Fatal(err)
	}
	touch(root+"/.new-1", busy+"/.new-1", idle+"/.new-1", idle+"/.new-2", idle+"/a.new-1", outside+"/.new-1")
	release, err := atomicfile.HoldDir(busy)
	if err != nil {
		t.Fatal(err)
	}
	sweep := func() { atomicfile.Sweep(root, ".", "busy", "idle", "out", "pipe", "none") }
	left := func(want ...string) {
		t.Helper()
		for _, dir := range []string{root, busy, idle, outside} {
			found, _ := filepath.Glob(dir + "/*.new-*")
			for _, name := range found {
				if !slices.Contains(want, name) {
					t.Errorf("%s is left", name)
				}
			}
		}
		for _, name := range want {
			if _, err := os.Lstat(name); err != nil {
				t.Errorf("%v", err)
			}
		}
	}
	sweep()
	left(busy+"/.new-1", idle+"/.new-folder", idle+"/.new-link", idle+"/a.new-1", outside+"/.new-1")
	release()
	sweep()
	left(idle+"/.new-folder", idle+"/.new-link", idle+"/a.new-1", outside+"/.new-1")
	atomicfile.Sweep(filepath.Join(root, "none"), ".") // nothing to do is no trouble
}

// TestOneHasADirectoryAlone while others wait, or see that they may not sweep it.
func TestOneHasADirectoryAlone(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/.new-1", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	release, err := atomicfile.Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	atomicfile.Sweep(dir, ".")
	if _, err := os.Stat(dir + "/.new-1"); err != nil {
		t.Error("it was swept")
	}
	second := make(chan error)
	go func() {
		release, err := atomicfile.Lock(dir)
		if err == nil {
			release()
		}
		second <- err
	}()
	select {
	case err := <-second:
		t.Fatalf("two have it: %v", err)
	default:
	}
	release()
	if err := <-second; err != nil {
		t.Error(err)
	}
	if _, err := atomicfile.Lock(dir + "/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
}

// TestUpdatesOfOneFileAllCount lets many change a file at the same time: none loses the change of another.
func TestUpdatesOfOneFileAllCount(t *testing.T) {
	const writers, each = 8, 5
	path := filepath.Join(t.TempDir(), "new", "a")
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range each {
				err := atomicfile.Update(path, 0o600, func() ([]byte, error) {
					text, err := os.ReadFile(path)
					if errors.Is(err, fs.ErrNotExist) {
						err = nil
					}
					return append(text, "line\n"...), err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	text, err := os.ReadFile(path)
	if n := strings.Count(string(text), "line\n"); err != nil || n != writers*each {
		t.Errorf("%d lines, %v; want %d", n, err, writers*each)
	}
	none := filepath.Join(t.TempDir(), "none", "a")
	if err := atomicfile.Update(none, 0o600, func() ([]byte, error) { return nil, fs.ErrInvalid }); !errors.Is(err, fs.ErrInvalid) {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Dir(none)); err == nil {
		t.Error("an update that changed nothing left a folder")
	}
}

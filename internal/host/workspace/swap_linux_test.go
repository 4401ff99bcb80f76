package workspace_test

import (
	"strconv"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// swapping exchanges two names as fast as it can while do runs.
func swapping(t *testing.T, a, b string, do func()) {
	t.Helper()
	stop := make(chan struct{})
	var swapper sync.WaitGroup
	swapper.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
					t.Errorf("exchange: %v", err)
					return
				}
			}
		}
	})
	do()
	close(stop)
	swapper.Wait()
}

// A directory that keeps turning into a link outwards never lets a byte out.
func TestSwappedDirectoryNeverLeadsOutside(t *testing.T) {
	ws, dir, evil := open(t)
	put(t, dir+"/d/f", "in")
	put(t, evil+"/f", "out")
	linkUnnamed(t, evil, dir+"/trap")
	written := 0
	swapping(t, dir+"/d", dir+"/trap", func() {
		for i := range 3000 {
			if ws.WriteFile("d/f", []byte("in")) == nil {
				written++
			}
			ws.CreateFile("d/"+strconv.Itoa(i)+"/g", []byte("in"), 0o600)
			if b, _, err := ws.ReadFile("d/f", 100); err == nil && string(b) != "in" {
				t.Errorf("read %q", b)
				return
			}
		}
	})
	if names := list(t, evil); len(names) != 1 || get(t, evil+"/f") != "out" {
		t.Errorf("outside now holds %q, f is %q", names, get(t, evil+"/f"))
	}
	if written == 0 {
		t.Error("nothing was ever written, so nothing was tested")
	}
}

// A file that turns into a pipe while it is opened does not make us wait.
func TestSwappedFileNeverBlocks(t *testing.T) {
	ws, dir, _ := open(t)
	put(t, dir+"/f", "text")
	if err := syscall.Mkfifo(dir+"/p", 0o666); err != nil {
		t.Fatal(err)
	}
	swapping(t, dir+"/f", dir+"/p", func() {
		for range 5000 {
			if b, _, err := ws.ReadFile("f", 100); err == nil && string(b) != "text" {
				t.Errorf("read %q", b)
				return
			}
		}
	})
}

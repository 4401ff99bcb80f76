package sandbox

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A socket is found under the name it has now, whatever it was bound to.
func TestListeningFindsSocketsByTheirNamesOfNow(t *testing.T) {
	dir := socketDir(t)
	in := func(name string) string { return filepath.Join(dir, name) }
	do := func(errs ...error) {
		for _, err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	listen := func(name string) {
		l, err := net.Listen("unix", in(name))
		do(err)
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		t.Cleanup(func() { l.Close() })
	}
	do(os.Mkdir(in("a"), 0o700), os.Mkdir(in("d"), 0o700), os.MkdirAll(in("e/f"), 0o700))
	listen("plain")
	listen("a/bound")
	do(os.Link(in("a/bound"), in("a/control")), os.Remove(in("a/bound"))) // as ssh makes a ControlPath
	listen("twice")
	do(os.Rename(in("twice"), in("first")))
	listen("twice")
	listen("linked")
	do(os.Link(in("linked"), in("other")))
	listen("d/s")
	do(os.Rename(in("d"), in("moved")))
	listen("e/f/s")
	do(os.Rename(in("e"), in("g")))
	listen("replaced")
	do(os.Rename(in("replaced"), in("away")), os.WriteFile(in("replaced"), nil, 0o600))
	got := ListeningSockets("/nowhere")
	for _, name := range []string{"plain", "a/control", "first", "twice", "linked", "other", "moved/s", "g/f/s", "away"} {
		if !slices.Contains(got, in(name)) {
			t.Errorf("%s is not among %q", name, got)
		}
	}
	if slices.Contains(got, in("replaced")) {
		t.Error("a file is taken for a socket")
	}
}

func TestListeningLeavesOutSocketsOfEndedPrograms(t *testing.T) {
	dir := socketDir(t)
	for _, name := range []string{"here", "stale"} {
		l, err := net.Listen("unix", filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if l.(*net.UnixListener).SetUnlinkOnClose(false); name == "stale" {
			l.Close()
		}
	}
	got := ListeningSockets("/nowhere")
	if slices.Contains(got, filepath.Join(dir, "stale")) || !slices.Contains(got, filepath.Join(dir, "here")) {
		t.Errorf("nobody listens on stale: %q", got)
	}
}

// socketDir is a folder with a path short enough for sockets.
func socketDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "c-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

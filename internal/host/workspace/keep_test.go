package workspace_test

import (
	"io/fs"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestWritingKeepsOwnerModeAndAttributes(t *testing.T) {
	ws, dir, _ := open(t)
	put(t, dir+"/f", "old")
	if err := os.Chmod(dir+"/f", 0o751|fs.ModeSticky); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		if err := os.Chown(dir+"/f", 1234, 2345); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.Stat(dir + "/f")
	if err != nil {
		t.Fatal(err)
	}
	attrs := unix.Setxattr(dir+"/f", "user.note", []byte("kept"), 0) == nil
	if err := os.Link(dir+"/f", dir+"/hard"); err != nil {
		t.Fatal(err)
	}
	if err := ws.WriteFile("f", []byte("new")); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(dir + "/f")
	if err != nil {
		t.Fatal(err)
	}
	a, b := before.Sys().(*syscall.Stat_t), after.Sys().(*syscall.Stat_t)
	if after.Mode() != before.Mode() || a.Uid != b.Uid || a.Gid != b.Gid {
		t.Errorf("mode %v, owner %d:%d, want %v, %d:%d", after.Mode(), b.Uid, b.Gid, before.Mode(), a.Uid, a.Gid)
	}
	if get(t, dir+"/hard") != "old" {
		t.Error("the hard link follows, which is not what is documented")
	}
	if !attrs {
		t.Log("the file system has no extended attributes")
		return
	}
	buf := make([]byte, 100)
	if n, err := unix.Getxattr(dir+"/f", "user.note", buf); err != nil || string(buf[:n]) != "kept" {
		t.Errorf("attribute %q, %v", buf[:max(n, 0)], err)
	}
}

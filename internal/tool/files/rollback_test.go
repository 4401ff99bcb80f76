package files

import (
	"io/fs"
	"os"
	"testing"

	"coder/internal/host/patch"
	"coder/internal/host/workspace"
)

// If the disk refuses the last change, those before it are taken back.
func TestPatchTakesBackWhatItWrote(t *testing.T) {
	dir := t.TempDir()
	ws, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	for name, text := range map[string]string{"a": "a\n", "gone": "g\n", "from": "f\n"} {
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("a", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir+"/wall", 0o755); err != nil {
		t.Fatal(err)
	}
	s := &changeSet{ws: ws, modes: map[string]fs.FileMode{"a": 0o600, "gone": 0o600, "from": 0o600, "link": fs.ModeSymlink}, changes: []patch.Change{
		{Path: "a", Old: []byte("a\n"), New: []byte("b\n"), Mode: patch.Executable},
		{Path: "x/y/new", New: []byte("n\n")},
		{Path: "gone", Old: []byte("g\n")},
		{Path: "link", Old: []byte("a")},
		{Path: "link", New: []byte("in its place\n")},
		{Path: "to/here", From: "from", Old: []byte("f\n"), New: []byte("F\n")},
		{Path: "wall", New: []byte("a directory cannot be written\n")},
	}}
	if err := s.applyChanges(); err == nil {
		t.Fatal("it worked")
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 5 {
		t.Errorf("left are %v, %v", left, err)
	}
	if to, err := os.Readlink(dir + "/link"); err != nil || to != "a" {
		t.Errorf("link leads to %q, %v", to, err)
	}
	for name, want := range map[string]string{"a": "a\n", "gone": "g\n", "from": "f\n"} {
		b, err := os.ReadFile(dir + "/" + name)
		info, _ := os.Stat(dir + "/" + name)
		if err != nil || string(b) != want || info.Mode().Perm() != 0o600 {
			t.Errorf("%s is %q, %v, %v", name, b, info, err)
		}
	}
}

package codeindex

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"coder/internal/host/disk"
	"coder/internal/host/workspace"
)

// tree is a workspace of some files.
func tree(t testing.TB, files map[string]string) (*workspace.Workspace, string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		write(t, filepath.Join(dir, name), text)
	}
	ws, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ws.Close() })
	return ws, dir
}

func write(t testing.TB, name, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func zoo(n int) map[string]string {
	files := make(map[string]string)
	for i := range n {
		files[fmt.Sprintf("d%d/animal%d.go", i%7, i)] = fmt.Sprintf("package zoo\n\n// Feed%d feeds animal %d.\nfunc Feed%d(a *Animal%d) {}\n\ntype Animal%d struct{ legs int }\n", i, i, i, i, i)
	}
	files["notes.md"] = "# Zoo\n\nOpen at nine.\n\n## Tickets\n\nAt the gate.\n"
	files["binary.dat"] = "\x00\x01"
	return files
}

// Whatever has become of the tree meanwhile, the index is that of one who looks
// for the first time.
func TestTheIndexFollowsEveryChange(t *testing.T) {
	ws, dir := tree(t, zoo(200))
	x := New(ws, Options{})
	if err := x.update(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(t *testing.T){
		"nothing": func(*testing.T) {},
		"content": func(t *testing.T) { write(t, dir+"/d1/animal1.go", "package zoo\n\nfunc Sleep() {}\n") },
		"new":     func(t *testing.T) { write(t, dir+"/new/pony.go", "package zoo\n\nfunc Pony() {}\n") },
		"gone":    func(t *testing.T) { os.Remove(dir + "/d2/animal2.go") },
		"moved":   func(t *testing.T) { os.Rename(dir+"/d3", dir+"/e3") },
		"ignored": func(t *testing.T) { write(t, dir+"/.gitignore", "d4/\n") },
		"replaced": func(t *testing.T) {
			name := dir + "/d5/animal5.go"
			info, err := os.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			data, _ := os.ReadFile(name)
			write(t, name+"x", strings.Replace(string(data), "Feed", "Milk", 1))
			if err := errors.Join(os.Chtimes(name+"x", time.Time{}, info.ModTime()), os.Rename(name+"x", name)); err != nil {
				t.Fatal(err)
			}
		},
		"rewritten in place, its time put back": func(t *testing.T) { rewrite(t, dir+"/d6/animal6.go", "Feed", "Milk") },
		"rewritten in place, in its first line": func(t *testing.T) { rewrite(t, dir+"/d0/animal7.go", "package zoo", "package zap") },
		"much": func(t *testing.T) {
			for i := range 50 {
				write(t, fmt.Sprintf("%s/many/f%d.go", dir, i), "package many\n")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			change(t)
			afresh := New(ws, Options{})
			if err := errors.Join(x.update(t.Context(), false), afresh.update(t.Context(), false)); err != nil {
				t.Fatal(err)
			}
			if got, want := x.current.Load(), afresh.current.Load(); !reflect.DeepEqual(got, want) {
				t.Errorf("%d files, want %d, or they differ", len(got.files), len(want.files))
			}
		})
	}
}

// rewrite puts a word of the same length in the place of another and the time of
// the file back to what it was, as soon as the file system can tell.
func rewrite(t *testing.T, name, from, to string) {
	t.Helper()
	old, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	data, _ := os.ReadFile(name)
	if !strings.Contains(string(data), from) {
		t.Fatalf("no %s in %s", from, data)
	}
	for now := old; disk.StampOf(now) == disk.StampOf(old); {
		err := errors.Join(os.WriteFile(name, []byte(strings.Replace(string(data), from, to, 1)), 0o600), os.Chtimes(name, time.Time{}, old.ModTime()))
		if now, _ = os.Stat(name); err != nil || now.Size() != old.Size() || !now.ModTime().Equal(old.ModTime()) {
			t.Fatal(err, now)
		}
	}
}

package codeindex

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"coder/internal/host/disk"
	"coder/internal/host/workspace"
)

const cacheFile = ".coder/cache/" + cacheName

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

// process opens an index as a new process would, and brings it up to date. It
// returns what the index then holds and how many files were read for it.
func process(t testing.TB, ws *workspace.Workspace) (s *snapshot, read int) {
	t.Helper()
	x := New(ws, Options{CacheDir: filepath.Dir(cacheFile)})
	kept := len(x.load())
	if err := x.update(t.Context(), soon); err != nil {
		t.Fatal(err)
	}
	x.background.Wait()
	x.Close()
	s = x.current.Load()
	return s, len(s.files) - kept
}

func TestTheIndexIsKept(t *testing.T) {
	ws, dir := tree(t, zoo(300))
	first, read := process(t, ws)
	if read != 302 {
		t.Fatalf("%d files were read", read)
	}
	info, err := os.Stat(filepath.Join(dir, cacheFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("kept as %v, %v", info, err)
	}
	second, read := process(t, ws)
	if read != 0 {
		t.Errorf("%d files were read again", read)
	}
	if !reflect.DeepEqual(first, second) {
		t.Error("the index is not what it was")
	}
	if names, _ := filepath.Glob(filepath.Join(dir, ".coder/cache/*")); len(names) != 1 {
		t.Errorf("left behind: %q", names)
	}
}

// Whatever has become of the tree meanwhile, the index is that of one who never
// kept anything.
func TestTheKeptIndexFollowsChanges(t *testing.T) {
	ws, dir := tree(t, zoo(200))
	process(t, ws)
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
			got, _ := process(t, ws)
			x := New(ws, Options{})
			if err := x.update(t.Context(), soon); err != nil {
				t.Fatal(err)
			}
			if want := x.current.Load(); !reflect.DeepEqual(got, want) {
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
		t.Fatalf("there is no %s in %s", from, data)
	}
	for now := old; disk.StampOf(now) == disk.StampOf(old); {
		err := errors.Join(os.WriteFile(name, []byte(strings.Replace(string(data), from, to, 1)), 0o600), os.Chtimes(name, time.Time{}, old.ModTime()))
		if now, _ = os.Stat(name); err != nil || now.Size() != old.Size() || !now.ModTime().Equal(old.ModTime()) {
			t.Fatal(err, now)
		}
	}
}

func TestADamagedIndexIsMadeAgain(t *testing.T) {
	ws, dir := tree(t, zoo(50))
	want, _ := process(t, ws)
	name := filepath.Join(dir, cacheFile)
	good, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(good)
	flipped[len(good)/2] ^= 0x10
	for what, bad := range map[string][]byte{
		"empty": nil, "short": good[:len(cacheHeader)], "cut": good[:len(good)/2], "flipped": flipped, "foreign": []byte("#!/bin/sh\n"),
		"old": bytes.Replace(good, []byte("index 2\n"), []byte("index 0\n"), 1), "long": append(bytes.Clone(good), "more"...),
		"lying": append(bytes.Clone(good), 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0),
	} {
		if err := os.WriteFile(name, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		got, read := process(t, ws)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the index is another", what)
		}
		if what != "long" && what != "lying" && read == 0 {
			t.Errorf("%s: nothing was read again", what)
		}
	}
}

// A place that cannot be written to, or leads elsewhere, is done without.
func TestTheIndexGoesNowhereElse(t *testing.T) {
	ws, dir := tree(t, zoo(5))
	outside := t.TempDir()
	if err := os.Symlink(outside, dir+"/.coder"); err != nil {
		t.Skip("no symbolic links here")
	}
	if s, _ := process(t, ws); s.indexed != 6 {
		t.Errorf("%d files are indexed", s.indexed)
	}
	if names, _ := os.ReadDir(outside); len(names) > 0 {
		t.Errorf("written outside: %v", names)
	}
}

// A first look that is cut short does not lose what was kept.
func TestACancelledLookKeepsWhatWasKept(t *testing.T) {
	ws, _ := tree(t, zoo(100))
	process(t, ws)
	x := New(ws, Options{CacheDir: filepath.Dir(cacheFile)})
	defer x.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := x.refresh(ctx, now); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if changed := compare(x.list(t.Context(), maxWalk).files, x.known()); len(changed) != 0 {
		t.Errorf("%d files would be read again", len(changed))
	}
}

// A file that could not be read may be readable for the next process.
func TestWhatCouldNotBeReadIsNotKept(t *testing.T) {
	ws, dir := tree(t, zoo(5))
	name := dir + "/d1/animal1.go"
	if err := os.Chmod(name, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadFile(name); err == nil {
		t.Skip("this user may read everything")
	}
	process(t, ws)
	if err := os.Chmod(name, 0o644); err != nil {
		t.Fatal(err)
	}
	if s, _ := process(t, ws); s.indexed != 6 {
		t.Errorf("%d files are indexed", s.indexed)
	}
}

func TestSavingStops(t *testing.T) {
	ws, dir := tree(t, zoo(20))
	x := New(ws, Options{CacheDir: filepath.Dir(cacheFile)})
	defer x.Close()
	if err := x.update(t.Context(), soon); err != nil {
		t.Fatal(err)
	}
	x.background.Wait()
	if err := os.Remove(filepath.Join(dir, cacheFile)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := x.save(ctx, x.current.Load()); !errors.Is(err, context.Canceled) {
		t.Errorf("save: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, cacheFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("half an index is there: %v", err)
	}
}

func FuzzParseFile(f *testing.F) {
	r := newReader()
	for name, text := range map[string]string{"a/b.go": "package b\n\n// F does.\nfunc (x *T) F() {}\n\ntype T int\n", "x.md": "# H\n\ntext\n", "e": "\x00"} {
		file := &file{path: "tree/" + name, name: name, was: disk.Stamp{Size: 1, Written: -2, Changed: -5, Device: 3, Inode: 4}}
		r.index(file, []byte(text))
		f.Add(appendFile(nil, file))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		parsed := parseFile(body)
		if parsed == nil {
			return
		}
		again := parseFile(appendFile(nil, parsed))
		if !reflect.DeepEqual(parsed, again) {
			t.Fatalf("%+v became %+v", parsed, again)
		}
		s := newSnapshot([]*file{parsed}, false)
		for _, m := range s.rank(newQuestion("parse the file T"), "", 10) {
			newQuestion("parse").snippet([][]byte{[]byte("one"), []byte("two")}, m.file.chunks[m.chunk])
		}
	})
}

// zooEntries is how many files and directories there are of zoo(8).
const zooEntries = 8 + 2 + 7

// Very many files are indexed when somebody asks, not before.
func TestVeryManyFilesAreIndexedWhenAskedFor(t *testing.T) {
	for name, unasked := range map[string]int{"by files": 5, "by one": zooEntries - 1, "just few enough": zooEntries} {
		t.Run(name, func(t *testing.T) {
			ws, _ := tree(t, zoo(8))
			x := New(ws, Options{Unasked: unasked})
			x.Start(t.Context())
			x.background.Wait()
			if want := unasked >= zooEntries; x.built.Load() != want {
				t.Errorf("built before anybody asked: %v, want %v", x.built.Load(), want)
			}
			if a, err := x.Search(t.Context(), Query{Text: "Feed3"}); err != nil || len(a.Hits) == 0 {
				t.Errorf("%v, %v", a, err)
			}
		})
	}
}

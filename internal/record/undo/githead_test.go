package undo_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"coder/internal/tool"
)

// populate writes files, a program, a link and directories.
func (w *world) populate(files int) {
	w.t.Helper()
	for i := range files {
		w.put(fmt.Sprintf("d%d/e/f%d", i%50, i), fmt.Sprintf("content %d\nof lines\n", i))
	}
	w.put("run.sh", "#!/bin/sh\n", 0o755)
	w.must(os.Symlink("d0/e", w.path("link")))
	w.put("-odd name", "odd\n")
}

// wreck does all kinds of things to what populate made.
func (w *world) wreck() {
	w.t.Helper()
	w.put("d0/e/f0", "changed")
	w.remove("d1")
	w.remove("link")
	w.must(os.Symlink("elsewhere", w.path("link")))
	w.must(os.Chmod(w.path("run.sh"), 0o600))
	w.put("new/file", "new")
	w.remove("-odd name")
}

// Where HEAD has all files, nothing is written before a command, and what it
// does can be undone all the same, even if it never finished.
func TestCleanWorkTreeCostsNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	needGit(t)
	for name, tc := range map[string]struct {
		files int
		setup func(w *world)
	}{
		"few":        {3, func(w *world) {}},
		"many":       {manyFiles, func(w *world) {}},
		"sha256":     {manyFiles, func(w *world) { w.git("init", "-q", "--object-format=sha256") }},
		"attributes": {manyFiles, func(w *world) { w.put(".gitattributes", "* text=auto\n") }},
		"filter":     {5, func(w *world) { w.put(".gitattributes", "*.x filter=none\n") }},
		"modes": {manyFiles, func(w *world) {
			w.must(filepath.WalkDir(w.dir, func(p string, d os.DirEntry, err error) error {
				if err == nil && d.Type().IsRegular() && filepath.Base(p) != "run.sh" {
					err = os.Chmod(p, 0o640)
				} else if err == nil && d.IsDir() && p != w.dir {
					err = os.Chmod(p, 0o750)
				}
				return err
			}))
		}},
		"ignored": {manyFiles, func(w *world) { w.put(".gitignore", "*.log\n"); w.put("a.log", "log") }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.populate(tc.files)
			tc.setup(w)
			w.commit()
			w.restart()
			start := w.tree()
			if c := w.shell("t0", func() {}); len(c) > 0 {
				t.Errorf("changes = %+v", c)
			}
			w.restart()
			w.shell("t0", func() {})
			if _, err := os.Stat(w.data); err == nil {
				t.Fatalf("written: %q", w.blobs())
			}

			w.shell("t1", w.wreck)
			w.restart()
			if r := w.undo("all"); len(r.Unchanged)+len(r.Lost)+len(r.Failed) > 0 {
				t.Errorf("report = %+v", r)
			}
			w.wantTree(start)

			w.begin("t2", "main", tool.Effect{Kind: tool.Exec, Target: "make"})
			w.wreck()
			w.git("add", "-A")
			w.git("commit", "-qm", "wreck")
			end := w.tree()
			w.restart()
			if r := w.undo("all"); len(r.Unchanged) == 0 || len(r.Lost)+len(r.Failed) > 0 {
				t.Errorf("report = %+v", r)
			}
			w.wantTree(end)
			w.undo("all", "force")
			w.wantTree(start)
			w.redo()
			w.wantTree(end)
		})
	}
}

// What is different from HEAD is kept, and no more, and not again.
func TestDirtyWorkTreeCostsWhatIsDirty(t *testing.T) {
	needGit(t)
	w := newWorld(t)
	w.populate(manyFiles)
	w.commit()
	w.put("d0/e/f0", "mine")
	w.put("untracked", "mine too")
	w.remove("d0/e/f50")
	w.must(os.Mkdir(w.path("empty"), 0o755))
	w.must(os.Chmod(w.path("d0/e/f100"), 0o600))
	time.Sleep(200 * time.Millisecond) // no longer fresh
	w.restart()
	start := w.tree()
	w.shell("t0", func() {})
	blobs := w.blobs()
	if len(blobs) != 3 { // two files and what is different
		t.Errorf("%d blobs", len(blobs))
	}
	for _, b := range blobs {
		if info, err := os.Stat(filepath.Join(w.data, "objects", b[:2], b[2:])); err != nil || info.Size() > 1000 {
			t.Errorf("blob of %d bytes, %v", info.Size(), err)
		}
	}
	w.restart()
	w.shell("t0", func() {})
	if again := w.blobs(); !slices.Equal(again, blobs) {
		t.Errorf("blobs %q, then %q", blobs, again)
	}
	w.begin("t1", "main", tool.Effect{Kind: tool.Exec, Target: "make"})
	w.wreck()
	w.remove("untracked")
	w.remove("empty")
	w.restart()
	w.undo("all", "force")
	w.wantTree(start)
}

// Lines that end otherwise in the work tree than in git come back as they were.
func TestLineEndsOfAWorkTree(t *testing.T) {
	needGit(t)
	for name, setup := range map[string]func(w *world){
		"attribute": func(w *world) { w.put(".gitattributes", "* text=auto\n") },
		"setting":   func(w *world) { w.git("init", "-q"); w.git("config", "core.autocrlf", "true") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for i := range manyFiles {
				w.put(fmt.Sprint("f", i), fmt.Sprintf("content %d\r\nof lines\r\n", i))
			}
			setup(w)
			w.commit()
			w.restart()
			start := w.tree()
			w.begin("t", "main", tool.Effect{Kind: tool.Exec, Target: "make"})
			for i := range manyFiles {
				w.put(fmt.Sprint("f", i), "gone")
			}
			w.restart()
			w.undo("all", "force")
			w.wantTree(start)
		})
	}
}

// Added trees are looked after too, those in git and those that are not.
func TestCommandsInAddedTrees(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	needGit(t)
	w := newWorld(t)
	main := w.dir
	at := func(dir string, do func()) {
		w.dir = dir
		do()
		w.dir = main
	}
	inGit, plain, empty := t.TempDir(), t.TempDir(), t.TempDir()
	at(inGit, func() { w.populate(manyFiles); w.commit() })
	w.populate(manyFiles)
	w.commit()
	w.added = []string{plain, inGit, filepath.Join(inGit, "d0"), filepath.Join(main, "d0"), inGit, empty}
	w.restart()
	w.shell("t0", func() {})
	if n := len(w.blobs()); n > 1 { // that there is an empty tree, and one more
		t.Errorf("%d blobs", n)
	}
	at(plain, func() { w.populate(3) })
	trees := func() (list []map[string]string) {
		for _, dir := range []string{main, inGit, plain, empty} {
			at(dir, func() { list = append(list, w.tree()) })
		}
		return list
	}
	wantTrees := func(want []map[string]string) {
		t.Helper()
		for i, dir := range []string{main, inGit, plain, empty} {
			at(dir, func() { w.wantTree(want[i]) })
		}
	}
	start := trees()
	wreckAll := func() {
		w.wreck()
		at(inGit, w.wreck)
		at(plain, w.wreck)
		at(empty, func() { w.put("a/b", "b") })
	}
	c := w.shell("t1", wreckAll)
	seen := make(map[string]bool)
	for _, x := range c {
		if seen[x.Before.Path] {
			t.Errorf("%s is there twice", x.Before.Path)
		}
		seen[x.Before.Path] = true
	}
	end := trees()
	w.restart()
	if r := w.undo("all"); len(r.Unchanged)+len(r.Lost)+len(r.Failed) > 0 {
		t.Errorf("report = %+v", r)
	}
	wantTrees(start)
	w.redo()
	wantTrees(end)
	w.undo("all")

	w.begin("t2", "main", tool.Effect{Kind: tool.Exec, Target: "make"})
	wreckAll()
	w.restart()
	w.undo("all", "force")
	wantTrees(start)
	if len(w.warned) > 0 {
		t.Errorf("warned %q", w.warned)
	}
}

// A workspace inside a tree that was added to it is looked at once.
func TestAddedTreeAroundTheWorkspace(t *testing.T) {
	w := newWorld(t)
	outer := filepath.Dir(w.dir)
	w.added = []string{outer}
	w.put("a", "a0")
	w.must(os.WriteFile(filepath.Join(outer, "b"), []byte("b0"), 0o644))
	w.data = t.TempDir()
	w.restart()
	c := w.shell("t", func() {
		w.put("a", "a1")
		w.must(os.WriteFile(filepath.Join(outer, "b"), []byte("b1"), 0o644))
	})
	if len(c) != 2 || c[0].Before.Path != "a" || c[1].Before.Path != filepath.Join(outer, "b") {
		t.Errorf("changes = %+v", c)
	}
	w.undo("all")
	w.wantTree(map[string]string{"a": `-rw-r--r-- "a0"`})
	if got, _ := describe(filepath.Join(outer, "b")); !strings.Contains(got, "b0") {
		t.Errorf("b = %s", got)
	}
}

// A tree that is no longer added is out of sight, not gone.
func TestTreeThatIsNoLongerAdded(t *testing.T) {
	w := newWorld(t)
	other := t.TempDir()
	w.added = []string{other}
	w.must(os.WriteFile(filepath.Join(other, "f"), []byte("f0"), 0o644))
	w.put("a", "a0")
	w.restart()
	w.shell("t0", func() {})
	w.begin("t1", "main", tool.Effect{Kind: tool.Exec, Target: "make"})
	w.put("a", "a1")
	w.added = nil
	w.restart()
	if r := w.undo("all"); len(r.Unchanged) != 1 || len(r.Lost) > 0 {
		t.Errorf("report = %+v", r)
	}
	w.begin("t2", "main", tool.Effect{Kind: tool.Exec, Target: "make"})
	w.put("a", "a2")
	w.restart() // what was kept without the tree can be read back
	w.undo("all", "force")
	w.wantTree(map[string]string{"a": `-rw-r--r-- "a1"`})
}

package undo_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"coder/internal/host/program"
)

// manyFiles is more files than are read one by one rather than asked about.
const manyFiles = 250

// isInGit describes every file of the repository itself.
func (w *world) inGit() map[string]string {
	w.t.Helper()
	all := make(map[string]string)
	w.must(filepath.WalkDir(w.path(".git"), func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(p)
		all[p] = fmt.Sprintf("%x", sha256.Sum256(data))
		return err
	}))
	return all
}

func TestWhatGitHasIsNotKeptAgain(t *testing.T) {
	needGit(t)
	for name, tc := range map[string]struct {
		files int
		init  []string
	}{
		"few":      {3, nil},
		"many":     {manyFiles, nil},
		"sha256":   {manyFiles, []string{"--object-format=sha256"}},
		"version4": {manyFiles, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.git(append([]string{"init", "-q"}, tc.init...)...)
			for i := range tc.files {
				w.put(fmt.Sprintf("d%d/f%d", i%5, i), fmt.Sprint("content ", i))
			}
			if name == "version4" {
				w.git("update-index", "--index-version", "4")
			}
			w.commit()
			w.put("d0/f0", "changed, not committed")
			w.put("untracked", "u0")
			w.restart() // it is a repository now
			start, repository := w.tree(), w.inGit()
			w.shell("t", func() {})
			if n := len(w.blobs()); n != 3 { // two files and the tree
				t.Errorf("%d blobs", n)
			}
			c := w.shell("t", func() {
				w.put("d0/f0", "f0 changed")
				w.put("d1/f1", "f1 changed")
				w.remove("d2")
				w.put("untracked", "u1")
			})
			if len(c) < 4 {
				t.Errorf("changes = %+v", c)
			}
			end := w.tree()
			w.restart()
			r := w.undo("all")
			if len(r.Unchanged)+len(r.Lost)+len(r.Failed) > 0 {
				t.Errorf("report = %+v", r)
			}
			w.wantTree(start)
			w.redo()
			w.wantTree(end)
			if !maps.Equal(repository, w.inGit()) {
				t.Error("the repository was written to")
			}
		})
	}
}

// Neither times nor git's own doings count as changes.
func TestWhatOnlyLooksChanged(t *testing.T) {
	needGit(t)
	w := newWorld(t)
	for i := range manyFiles {
		w.put(fmt.Sprint("f", i), fmt.Sprint("content ", i))
	}
	w.commit()
	w.put("new", "n0")
	w.restart()
	touch := func(name string) { now := time.Now(); w.must(os.Chtimes(w.path(name), now, now)) }
	for _, tc := range []struct {
		what string
		do   func()
	}{
		{"touch", func() { touch("f1") }},
		{"add", func() { w.git("add", "-A"); touch("new") }},
		{"commit", func() { w.git("commit", "-qm", "more"); touch("new") }},
		{"rewrite", func() { w.put("f2", "content 2"); w.put("new", "n0") }},
		{"away and back", func() {
			w.put("f4", "f4")
			w.git("stash", "-q")
			w.git("stash", "pop", "-q")
			w.git("checkout", "-q", "f4")
		}},
		{"forget", func() { w.git("rm", "-q", "--cached", "f3"); touch("f3") }},
	} {
		if c := w.shell("t", tc.do); len(c) != 0 {
			t.Errorf("%s: changes = %+v", tc.what, c)
		}
	}
}

func TestCheckoutIsUndone(t *testing.T) {
	needGit(t)
	w := newWorld(t)
	for i := range 2 * manyFiles {
		w.put(fmt.Sprint("d/f", i), fmt.Sprint("content ", i))
	}
	w.commit()
	w.git("checkout", "-qb", "other")
	for i := range manyFiles + 50 {
		w.put(fmt.Sprint("d/f", i), fmt.Sprint("other ", i))
	}
	w.remove("d/f499")
	w.put("only/other", "x")
	w.git("add", "-A")
	w.git("commit", "-qm", "other")
	w.git("checkout", "-q", "-")
	w.restart()
	start := w.tree()
	w.shell("t", func() { time.Sleep(20 * time.Millisecond); w.git("checkout", "-q", "other") })
	if n := len(w.blobs()); n > 60 { // git has them all; some may be too fresh to tell by their stamps
		t.Errorf("%d blobs", n)
	}
	end := w.tree()
	w.restart()
	w.undo("all")
	w.wantTree(start)
	w.redo()
	w.wantTree(end)
}

// Files that git stores in another form come back as they were.
func TestConvertedFiles(t *testing.T) {
	needGit(t)
	w := newWorld(t)
	w.git("init", "-q")
	ran := filepath.Join(t.TempDir(), "ran")
	w.git("config", "filter.evil.clean", "touch "+ran+"; tr a b")
	w.git("config", "filter.evil.smudge", "touch "+ran+"; tr b a")
	w.git("config", "core.fsmonitor", "touch "+ran)
	for i := range manyFiles {
		w.put(fmt.Sprintf("%d.txt", i), fmt.Sprintf("line %d\r\nline\r\n", i))
		w.put(fmt.Sprintf("%d.evil", i), fmt.Sprintf("aaa %d", i))
		w.put(fmt.Sprintf("%d.plain", i), fmt.Sprintf("a\nb %d\r\n", i))
	}
	w.put("id.c", "$Id$ \n")
	w.put(".gitattributes", "*.txt text eol=crlf\n*.evil filter=evil\n*.c ident\n")
	w.commit()
	w.must(os.RemoveAll(ran))
	w.restart()
	start := w.tree()
	w.shell("t", func() {
		for i := range 20 {
			for _, kind := range []string{"txt", "evil", "plain"} {
				w.put(fmt.Sprintf("%d.%s", i, kind), "changed")
			}
		}
		w.put("id.c", "changed")
	})
	w.restart()
	if r := w.undo("all"); len(r.Unchanged)+len(r.Lost)+len(r.Failed) > 0 {
		t.Errorf("report = %+v", r)
	}
	w.wantTree(start)
	if _, err := os.Lstat(ran); err == nil {
		t.Error("a program of the repository was run")
	}
}

func TestWorkspaceInsideARepository(t *testing.T) {
	needGit(t)
	w := newWorld(t)
	for i := range manyFiles {
		w.put(fmt.Sprintf("sub/dir/f%d", i), fmt.Sprint("content ", i))
		w.put(fmt.Sprintf("f%d", i), fmt.Sprint("other ", i))
	}
	w.commit()
	w.dir = w.path("sub/dir")
	w.restart()
	start := w.tree()
	w.shell("t", func() { w.put("f1", "changed"); w.remove("f2") })
	if n := len(w.blobs()); n > 2 { // what it became, and the tree
		t.Errorf("%d blobs", n)
	}
	w.undo("all")
	w.wantTree(start)
}

func TestLinkedWorktree(t *testing.T) {
	needGit(t)
	w := newWorld(t)
	for i := range manyFiles {
		w.put(fmt.Sprintf("f%d", i), fmt.Sprint("content ", i))
	}
	w.commit()
	side := filepath.Join(t.TempDir(), "side")
	w.git("worktree", "add", "-q", side)
	w.dir = side
	w.restart()
	time.Sleep(20 * time.Millisecond)
	w.git("status") // the index was written with the files; now they are older than it
	start := w.tree()
	w.shell("t", func() { w.put("f1", "changed"); w.remove("f2") })
	w.undo("all")
	w.wantTree(start)
}

func TestWithoutGitItself(t *testing.T) {
	needGit(t)
	w := newWorld(t)
	for i := range manyFiles {
		w.put(fmt.Sprintf("f%d", i), fmt.Sprint("content ", i))
	}
	w.commit()
	w.o.Launcher = program.NewOutside(nil, w.ws.Root())
	w.restart()
	start := w.tree()
	w.shell("t", func() { w.put("f1", "changed"); w.remove("f2") })
	w.undo("all")
	w.wantTree(start)
}

func TestObjectsThatGitLost(t *testing.T) {
	needGit(t)
	w := newWorld(t)
	for i := range manyFiles {
		w.put(fmt.Sprintf("f%d", i), fmt.Sprint("content ", i))
	}
	w.commit()
	w.restart()
	w.shell("t", func() {
		w.put("f1", "changed")
		w.remove(".git/objects")
		w.must(os.Mkdir(w.path(".git/objects"), 0o755))
	})
	after := w.tree()
	r := w.undo("all")
	w.wantTree(after)
	if len(r.Lost) != 1 || r.Lost[0].Path != "f1" {
		t.Errorf("report = %+v", r)
	}
	w.remove(".git")
	w.restart()
	c := w.asked([]string{"all"})
	c.Turns = []string{"t"}
	if r = w.undoThis(c); len(r.Lost) != 1 {
		t.Errorf("report = %+v", r)
	}
}

// A broken index is no index.
func TestBrokenIndex(t *testing.T) {
	needGit(t)
	w := newWorld(t)
	w.put("a", "a0")
	w.commit()
	w.restart()
	start := w.tree()
	for _, text := range []string{"", "DIRC", "DIRC\x00\x00\x00\x02\xff\xff\xff\xff", strings.Repeat("x", 100)} {
		w.put(".git/index", text)
		w.shell("t"+text, func() { w.put("a", "a1"+text) })
		w.undo("all")
		w.wantTree(start)
	}
}

func TestTurnedRepositoryOnTheWay(t *testing.T) {
	needGit(t)
	w := newWorld(t)
	w.put("a", "a0")
	w.put("b", "b0")
	start := w.tree()
	w.shell("t1", func() { w.put("a", "a1") })
	w.shell("t2", func() { w.commit() })
	w.shell("t3", func() { w.put("b", "b1") })
	w.restart()
	w.shell("t4", func() { w.put("a", "a2") })
	w.restart()
	var turns []string
	for range 3 {
		turns = append(turns, w.undo("all").Turn.ID)
	}
	if !slices.Equal(turns, []string{"t4", "t3", "t1"}) {
		t.Errorf("undid %q", turns)
	}
	w.wantTree(start)
}

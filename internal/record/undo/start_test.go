package undo_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"coder/internal/core/event"
	"coder/internal/host/disk"
	"coder/internal/record/undo"
	"coder/internal/tool"
)

// start saves what a session begins with, and returns the names of it.
func (w *world) start(last bool) (name string) {
	w.t.Helper()
	w.ids++
	name = undo.StartName(fmt.Sprint("s", w.ids))
	if err := w.keeper.SaveStart(w.ctx, name, last, stateText); err != nil {
		w.t.Fatal(err)
	}
	return name
}

func stateText([]event.FileState, func() map[string]bool) ([]byte, error) {
	return []byte("state"), nil
}

// startFiles are the files of all starts.
func (w *world) startFiles() (names []string) {
	entries, err := os.ReadDir(filepath.Join(w.so.Private, "starts"))
	w.must(err)
	for _, e := range entries {
		names = append(names, filepath.Join(w.so.Private, "starts", e.Name()))
	}
	return names
}

// The start of a session that only reads can be read back, though the disk was not
// waited for.
func TestStartOfASessionThatReads(t *testing.T) {
	w := newWorld(t)
	w.so.NoSync = false
	w.restart()
	w.put("a", "a0")
	w.put("d/b", "b0")
	synced := 0
	disk.Tracer = func(op, _ string) {
		if op == "sync" {
			synced++
		}
	}
	name := w.start(false)
	disk.Tracer = nil
	if all := w.startFiles(); synced != 0 || len(all) != 1 {
		t.Errorf("the disk was waited for %d times, and there are the files %v", synced, all)
	}
	w.put("a", "a1")
	w.remove("d")
	w.restart()
	files, err := w.keeper.Files(w.ctx, name)
	if err != nil || len(files) != 3 {
		t.Fatalf("Tree = %v, %v", files, err)
	}
	for _, f := range files {
		if f.Hash == "dir" {
			continue
		}
		if text, err := w.keeper.Content(w.ctx, f, 100); string(text) != filepath.Base(f.Path)+"0" || err != nil {
			t.Errorf("%s held %q, %v", f.Path, text, err)
		}
	}
	if text, err := w.keeper.LoadState(name); string(text) != "state" || err != nil {
		t.Errorf("State = %q, %v", text, err)
	}
}

// Undo does not count on what was saved for a session that reads.
func TestStartOfASessionThatReadsAndThenWrites(t *testing.T) {
	w := newWorld(t)
	w.put("a", "a0")
	w.put("d/b", "b0")
	start := w.tree()
	w.keeper.ScanAhead(w.ctx)
	w.start(false)
	w.shell("t", func() { w.put("a", "a1"); w.remove("d") })
	w.must(os.RemoveAll(filepath.Join(w.so.Private, "starts")))
	w.restart()
	w.undo("all")
	w.wantTree(start)
}

// What a look ahead gathered is saved with the start, also of a file that has changed since,
// and of two that follow each other.
func TestStartAfterALook(t *testing.T) {
	w := newWorld(t)
	w.put("a", "a0")
	w.put("d/b", "b0")
	w.keeper.ScanAhead(w.ctx)
	w.put("d/c", "c0")
	w.put("a", "a1")
	for range 2 {
		name := w.start(false)
		files, err := w.keeper.Files(w.ctx, name)
		if err != nil || len(files) != 4 {
			t.Fatalf("files %v, %v", files, err)
		}
		want := map[string]string{"a": "a1", "d/b": "b0", "d/c": "c0"}
		for _, f := range files {
			if text, err := w.keeper.Content(w.ctx, f, 100); f.Hash != "dir" && (string(text) != want[f.Path] || err != nil) {
				t.Errorf("%s held %q, %v", f.Path, text, err)
			}
		}
	}
}

// Undo does not count on what a look ahead gathered, where many files came since.
func TestStartWithManyFilesAfterALook(t *testing.T) {
	w := newWorld(t)
	w.put("a", "a0")
	w.put("d/b", "b0")
	w.keeper.ScanAhead(w.ctx)
	for i := range 300 {
		w.put(fmt.Sprint("e/f", i), fmt.Sprint(i))
	}
	w.put("d/c", "c0")
	start := w.tree()
	w.start(false)
	w.must(os.RemoveAll(filepath.Join(w.so.Private, "starts")))
	w.shell("t", func() { w.put("a", "a1"); w.remove("d"); w.remove("e") })
	w.restart()
	w.undo("all")
	w.wantTree(start)
}

// A session that only reads does not follow changes: the kernel takes long to end that.
func TestASessionThatReadsDoesNotFollowChanges(t *testing.T) {
	follows := func() (n int) {
		fds, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("open files are not listed here")
		}
		for _, fd := range fds {
			if to, _ := os.Readlink("/proc/self/fd/" + fd.Name()); strings.Contains(to, "inotify") {
				n++
			}
		}
		return n
	}
	w := newWorld(t)
	w.put("a", "a0")
	before := follows()
	w.keeper.ScanAhead(w.ctx)
	w.start(false)
	if n := follows(); n != before {
		t.Errorf("%d were %d before", n, before)
	}
	w.shell("t", func() { w.put("a", "a1") })
	if n := follows(); n == before {
		t.Error("changes by commands are not followed")
	}
}

// Where there is much to read it is read once, and kept for undo.
func TestStartWithManyFiles(t *testing.T) {
	w := newWorld(t)
	for i := range 300 {
		w.put(fmt.Sprint("f", i), fmt.Sprint(i))
	}
	start := w.tree()
	name := w.start(false)
	all, err := w.keeper.Files(w.ctx, name)
	if err != nil || len(all) != 300 {
		t.Errorf("%d files, %v", len(all), err)
	}
	w.must(os.RemoveAll(filepath.Join(w.so.Private, "starts")))
	blobs := len(w.blobs())
	b := w.begin("t", "main", tool.Effect{Kind: tool.Exec, Target: "rm f7"})
	if now := len(w.blobs()); now != blobs {
		t.Errorf("%d blobs were %d before", now, blobs)
	}
	w.remove("f7")
	b.end()
	w.undo("all")
	w.wantTree(start)
}

// A process that holds the state of very many files is told so, also where that was read back.
func TestManyFilesAreAnnounced(t *testing.T) {
	w := newWorld(t)
	told := 0
	w.o.OnManyFiles = func() { told++ }
	w.restart()
	w.put("a", "a0")
	w.shell("t", func() { w.put("a", "a1") })
	if told != 0 {
		t.Error("one file counts as many")
	}
	undo.SetMany(t, 5)
	for i := range 6 {
		w.put(fmt.Sprint("f", i), "")
	}
	w.restart()
	w.shell("t", func() {})
	if told == 0 {
		t.Error("nobody was told of many new files")
	}
	told = 0
	w.restart()
	w.shell("t", func() {})
	if told == 0 {
		t.Error("nobody was told of many known files")
	}
}

// Whoever makes the state of the repository is told what HEAD has of it, whether or not
// that was asked for before.
func TestStartTellsWhatIsCommitted(t *testing.T) {
	w := newWorld(t)
	w.git("init", "-q")
	w.restart()
	w.put("a", "a0")
	w.git("add", "-A")
	w.git("commit", "-qm", "first")
	w.put("b", "b0")
	w.git("add", "-A")
	a, b := strings.TrimSpace(w.git("rev-parse", ":a")), strings.TrimSpace(w.git("rev-parse", ":b"))
	for range 2 { // at first the state of the files is compared with HEAD, then with that of before
		w.must(w.keeper.SaveStart(w.ctx, undo.StartName("s"), false, func(_ []event.FileState, committed func() map[string]bool) ([]byte, error) {
			if has := committed(); !has[a] || has[b] {
				t.Errorf("committed are %v, not %s alone", has, a)
			}
			return nil, nil
		}))
	}
}

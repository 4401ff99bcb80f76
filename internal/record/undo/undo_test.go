package undo_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"coder/internal/core/event"
	"coder/internal/record/undo"
	"coder/internal/tool"
	"coder/testkit/faultdisk"
)

func TestUndoOfATurn(t *testing.T) {
	w := newWorld(t)
	w.put("a", "a0", 0o755)
	w.put("c", "c0\r\n\x00bin", 0o600)
	w.put("mine", "m0")
	start := w.tree()
	w.edit("t1", func() { w.put("a", "a1", 0o755) }, "a")
	w.edit("t1", func() { w.put("new/deep/b", "b1") }, "new/deep/b")
	w.edit("t1", func() { w.put("c", "c1", 0o644) }, "c")
	w.edit("t1", func() { w.put("a", "a2", 0o755) }, "a")
	w.put("mine", "m1")
	start["mine"] = w.tree()["mine"]
	end := w.tree()

	w.restart()
	r := w.undo()
	w.wantTree(start)
	if want := []string{"a", "c"}; !slices.Equal(r.Restored, want) {
		t.Errorf("Restored = %q, want %q", r.Restored, want)
	}
	if want := []string{"new/", "new/deep/", "new/deep/b"}; !slices.Equal(r.Removed, want) {
		t.Errorf("Removed = %q, want %q", r.Removed, want)
	}
	if _, err := undo.Undo(w.ctx, w.keeper, w.history, w.call()); !errors.Is(err, undo.ErrNothingToUndo) {
		t.Errorf("second Undo: %v", err)
	}

	w.restart()
	w.redo()
	w.wantTree(end)
	if _, err := undo.Redo(w.ctx, w.keeper, w.history, w.call()); !errors.Is(err, undo.ErrNothingToRedo) {
		t.Errorf("second Redo: %v", err)
	}
	w.restart()
	w.undo()
	w.wantTree(start)
}

func TestUndoWalksBackTurnByTurn(t *testing.T) {
	w := newWorld(t)
	var states []map[string]string
	for i := range 4 {
		states = append(states, w.tree())
		task := fmt.Sprint("t", i)
		w.record("user", event.TaskCreated{TaskID: task, Title: "turn " + task, Author: "user"})
		w.record("main", event.TaskCreated{TaskID: task + "sub", Title: "sub", ParentID: task})
		w.edit(task, func() { w.put("a", fmt.Sprint("a", i)) }, "a")
		w.edit(task+"sub", func() { w.put(fmt.Sprint("f", i), "x") }, fmt.Sprint("f", i))
		w.edit("silent"+task, func() {}, "a")
	}
	end := w.tree()
	for i := 3; i >= 0; i-- {
		if r := w.undo(); r.Turn.Title != fmt.Sprint("turn t", i) {
			t.Errorf("undid %q", r.Turn.Title)
		}
		w.wantTree(states[i])
	}
	for i := range 4 {
		w.wantTree(states[i])
		w.redo()
	}
	w.wantTree(end)
}

func TestTurnsAreLimited(t *testing.T) {
	w := newWorld(t)
	for i := range undo.MaxTurns + 3 {
		w.edit(fmt.Sprint("t", i), func() { w.put("a", fmt.Sprint("a", i)) }, "a")
	}
	if n := len(w.history.Turns()); n != undo.MaxTurns {
		t.Errorf("%d turns", n)
	}
	for range undo.MaxTurns {
		w.undo()
	}
	_, err := undo.Undo(w.ctx, w.keeper, w.history, w.call())
	if !errors.Is(err, undo.ErrNothingToUndo) || !strings.Contains(err.Error(), fmt.Sprint(undo.MaxTurns)) {
		t.Errorf("Undo beyond the limit: %v", err)
	}
	if got, _ := os.ReadFile(w.path("a")); string(got) != "a2" {
		t.Errorf("a = %q", got)
	}
}

func TestFreshSessionHasNothingToUndo(t *testing.T) {
	w := newWorld(t)
	w.put("a", "mine")
	if _, err := undo.Undo(w.ctx, w.keeper, w.history, w.call()); !errors.Is(err, undo.ErrNothingToUndo) {
		t.Errorf("Undo: %v", err)
	}
	if len(w.log) != 0 {
		t.Errorf("%d records", len(w.log))
	}
}

func TestWhatTheUserChangedSinceIsKept(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"content":    func(w *world) { w.put("a", "mine") },
		"mode":       func(w *world) { w.must(os.Chmod(w.path("a"), 0o600)) },
		"removed":    func(w *world) { w.remove("a") },
		"link":       func(w *world) { w.remove("a"); w.must(os.Symlink("b", w.path("a"))) },
		"directory":  func(w *world) { w.remove("a"); w.put("a/x", "mine") },
		"same bytes": func(w *world) { w.put("a", "a1 ") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.put("a", "a0")
			w.put("b", "b0")
			start := w.tree()
			w.edit("t", func() { w.put("a", "a1"); w.put("b", "b1") }, "a", "b")
			change(w)
			mine := w.tree()
			r := w.undo()
			mine["b"] = start["b"]
			w.wantTree(mine)
			if len(r.Unchanged) != 1 || strings.TrimSuffix(r.Unchanged[0].Path, "/") != "a" || !slices.Equal(r.Restored, []string{"b"}) {
				t.Errorf("report = %+v", r)
			}
			r = w.undo("force")
			if name == "directory" { // other files are never swept away
				if len(r.Failed)+len(r.Unchanged) != 1 {
					t.Errorf("forced = %+v", r)
				}
				w.wantTree(mine)
				return
			}
			w.wantTree(start)
			w.redo()
			w.wantTree(mine)
		})
	}
}

// A turn that edits, meets a change of the user's, and edits on, goes back to
// what the user made, no further.
func TestChangeInTheMiddleOfATurnSurvives(t *testing.T) {
	w := newWorld(t)
	w.put("a", "a0")
	w.edit("t", func() { w.put("a", "a1") }, "a")
	w.put("a", "a1 and mine")
	mine := w.tree()
	w.edit("t", func() { w.put("a", "a2 and mine") }, "a")
	r := w.undo()
	w.wantTree(mine)
	if !slices.Equal(r.PartlyRestored, []string{"a"}) {
		t.Errorf("report = %+v", r)
	}
	w.undo("force")
	if got, _ := os.ReadFile(w.path("a")); string(got) != "a0" {
		t.Errorf("forced: a = %q", got)
	}
	w.redo()
	w.wantTree(mine)
}

func TestCommandsAreUndoneWhenAsked(t *testing.T) {
	w := newWorld(t)
	w.put("tool", "t0")
	w.put("both", "b0", 0o755)
	w.put("gone/x", "x0")
	w.put("gone/y", "y0", 0o444)
	w.must(os.Chmod(w.path("gone"), 0o750))
	w.must(os.Symlink("tool", w.path("link")))
	w.must(os.Mkdir(w.path("empty"), 0o700))
	start := w.tree()
	w.edit("t", func() { w.put("tool", "t1"); w.put("both", "b1", 0o755) }, "tool", "both")
	w.shell("t", func() {
		w.put("both", "b2")
		w.remove("gone")
		w.remove("empty")
		w.put("made/z", "z1")
		w.put("was.ignored", "")
		w.remove("link")
		w.must(os.Symlink("both", w.path("link")))
	})
	end := w.tree()

	r := w.undo()
	if want := []string{"both", "tool"}; !slices.Equal(r.Restored, want) || len(r.Unchanged) > 0 {
		t.Errorf("report = %+v", r)
	}
	for _, p := range []string{"empty/", "gone/", "gone/x", "gone/y", "link", "made/", "made/z"} {
		if !slices.Contains(r.NotUndone, p) {
			t.Errorf("NotUndone = %q lacks %s", r.NotUndone, p)
		}
	}
	half := w.tree()
	w.restart()
	r = w.undo("all")
	w.wantTree(start)
	if !slices.Equal(r.Commands, []string{"some command"}) {
		t.Errorf("Commands = %q", r.Commands)
	}
	w.redo()
	w.wantTree(half)
	w.redo()
	w.wantTree(end)
	w.undo("all")
	w.wantTree(start)
}

// The person's own commands are theirs: only when asked for are they undone.
func TestOwnCommands(t *testing.T) {
	w := newWorld(t)
	w.put("a", "a0")
	w.edit("t1", func() { w.put("a", "a1") }, "a")
	b := w.begin("t2", "user", tool.Effect{Kind: tool.Exec, Target: "touch b"})
	w.put("b", "")
	b.end()
	dry := w.undo("all", "dry")
	if dry.Turn.ID != "t2" || !slices.Equal(dry.Removed, []string{"b"}) {
		t.Errorf("dry run = %+v", dry)
	}
	if r := w.undo(); r.Turn.ID != "t1" || !slices.Equal(r.Restored, []string{"a"}) {
		t.Errorf("undo = %+v", r)
	}
	if r := w.undo("all"); r.Turn.ID != "t2" || !slices.Equal(r.Removed, []string{"b"}) {
		t.Errorf("undo all = %+v", r)
	}
}

func TestTurnOfCommandsIsPassedOverOnlyKnowingly(t *testing.T) {
	w := newWorld(t)
	w.put("a", "a0")
	start := w.tree()
	w.edit("t1", func() { w.put("a", "a1") }, "a")
	edited := w.tree()
	w.shell("t2", func() { w.put("b", "b") })
	both := w.tree()
	r := w.undo()
	w.wantTree(both)
	if r.Turn.ID != "t2" || !slices.Equal(r.NotUndone, []string{"b"}) {
		t.Errorf("first = %+v", r)
	}
	w.undo("all")
	w.wantTree(edited)
	w.undo()
	w.wantTree(start)
}

func TestDryRunDoesNothing(t *testing.T) {
	w := newWorld(t)
	w.put("a", "a0")
	w.edit("t", func() { w.put("a", "a1"); w.put("b", "b1") }, "a", "b")
	before, records := w.tree(), len(w.log)
	r := w.undo("dry")
	w.wantTree(before)
	if !r.DryRun || !slices.Equal(r.Restored, []string{"a"}) || !slices.Equal(r.Removed, []string{"b"}) || len(w.log) != records {
		t.Errorf("report = %+v", r)
	}
}

func TestChosenTurn(t *testing.T) {
	w := newWorld(t)
	w.put("a", "a0")
	w.put("b", "b0")
	w.edit("t1", func() { w.put("a", "a1") }, "a")
	w.edit("t2", func() { w.put("b", "b1") }, "b")
	want := w.tree()
	c := w.call()
	c.Turns = []string{"t1"}
	if _, err := undo.Undo(w.ctx, w.keeper, w.history, c); err != nil {
		t.Fatal(err)
	}
	want["a"] = `-rw-r--r-- "a0"`
	w.wantTree(want)
	c.Turns = []string{"t3"}
	if _, err := undo.Undo(w.ctx, w.keeper, w.history, c); !errors.Is(err, undo.ErrNothingToUndo) {
		t.Errorf("Undo of an unknown turn: %v", err)
	}
}

func TestNewChangesEndRedo(t *testing.T) {
	w := newWorld(t)
	w.edit("t1", func() { w.put("a", "a1") }, "a")
	w.undo()
	w.edit("t2", func() { w.put("b", "b1") }, "b")
	if _, err := undo.Redo(w.ctx, w.keeper, w.history, w.call()); !errors.Is(err, undo.ErrNothingToRedo) {
		t.Errorf("Redo: %v", err)
	}
	w.undo()
	w.wantTree(map[string]string{})
}

func TestWriteThroughALink(t *testing.T) {
	w := newWorld(t)
	w.put("real/f", "f0")
	w.must(os.Symlink("real/f", w.path("link")))
	w.must(os.Symlink("real", w.path("dir")))
	start := w.tree()
	w.edit("t", func() { w.must(w.ws.WriteFile("link", []byte("f1"))) }, "link")
	w.edit("t", func() { w.must(w.ws.WriteFile("dir/g", []byte("g1"))) }, "dir/g")
	w.undo()
	w.wantTree(start)
	w.edit("t2", func() { w.remove("link") }, "link")
	w.undo()
	w.wantTree(start)
}

// A directory that has become a link since is not written through.
func TestNothingIsRestoredThroughALink(t *testing.T) {
	w := newWorld(t)
	outside := t.TempDir()
	w.put("d/f", "f0")
	w.put("e/f", "f1")
	w.edit("t", func() { w.put("d/f", "f1") }, "d/f")
	w.remove("d")
	w.must(os.Symlink("e", w.path("d")))
	if r := w.undo(); len(r.Unchanged) != 1 {
		t.Errorf("report = %+v", r)
	}
	if r := w.undo("force"); len(r.Failed) != 1 {
		t.Errorf("report = %+v", r)
	}
	w.remove("d")
	w.must(os.Symlink(outside, w.path("d")))
	w.must(os.WriteFile(filepath.Join(outside, "f"), []byte("f1"), 0o644))
	c := w.asked([]string{"force"})
	c.Turns = []string{"t"}
	if r, err := undo.Undo(w.ctx, w.keeper, w.history, c); err != nil || len(r.Failed) != 1 {
		t.Errorf("report = %+v, %v", r, err)
	}
	if got, _ := os.ReadFile(filepath.Join(outside, "f")); string(got) != "f1" {
		t.Errorf("outside = %q", got)
	}
	if got, _ := os.ReadFile(w.path("e/f")); string(got) != "f1" {
		t.Errorf("e/f = %q", got)
	}
}

func TestTargetsOutsideAreBeyondReach(t *testing.T) {
	w := newWorld(t)
	outside := filepath.Join(t.TempDir(), "f")
	w.must(os.WriteFile(outside, []byte("0"), 0o644))
	w.edit("t", func() { w.must(os.WriteFile(outside, []byte("1"), 0o644)) }, outside)
	if r := w.undo(); len(r.Lost) != 1 || r.Lost[0].Path != outside {
		t.Errorf("report = %+v", r)
	}
	if got, _ := os.ReadFile(outside); string(got) != "1" {
		t.Errorf("outside = %q", got)
	}
}

func TestLargeFilesAreToldNotKept(t *testing.T) {
	w := newWorld(t)
	w.o.MaxFile = 10
	w.restart()
	w.put("big", strings.Repeat("0", 11))
	w.put("small", "0")
	end := func() {
		w.put("big", strings.Repeat("1", 11))
		w.put("small", strings.Repeat("1", 11))
		w.put("made", strings.Repeat("1", 11))
	}
	w.edit("t", end, "big", "small", "made")
	after := w.tree()
	r := w.undo()
	w.wantTree(after) // what cannot be brought back is not destroyed either
	if len(r.Lost) != 1 || r.Lost[0].Path != "big" || len(r.Unchanged) != 2 {
		t.Errorf("report = %+v", r)
	}
	r = w.undo("force")
	if got := w.tree(); got["small"] != `-rw-r--r-- "0"` || got["made"] != "" || got["big"] != after["big"] {
		t.Errorf("forced: %q, %+v", got, r)
	}
}

func TestPrunedContentIsTold(t *testing.T) {
	w := newWorld(t)
	w.put("a", "a0")
	w.edit("t", func() { w.put("a", "a1") }, "a")
	w.must(os.RemoveAll(filepath.Join(w.data, "objects")))
	w.restart()
	after := w.tree()
	if r := w.undo(); len(r.Lost) != 1 || r.Lost[0].Path != "a" {
		t.Errorf("report = %+v", r)
	}
	w.wantTree(after)
}

func TestDamagedContentIsNotRestored(t *testing.T) {
	w := newWorld(t)
	w.put("a", "a0")
	w.edit("t", func() { w.put("a", "a1") }, "a")
	for _, b := range w.blobs() {
		w.must(os.WriteFile(filepath.Join(w.data, "objects", b[:2], b[2:]), []byte("rbad"), 0o600))
	}
	after := w.tree()
	if r := w.undo("force"); len(r.Lost) != 1 {
		t.Errorf("report = %+v", r)
	}
	w.wantTree(after)
}

// A call that changes nothing leaves nothing in the store, and one that changes
// one file of many adds little.
func TestKeepingCostsWhatChanged(t *testing.T) {
	w := newWorld(t)
	for i := range 300 {
		w.put(fmt.Sprintf("d%d/f%d", i%7, i), fmt.Sprint("content ", i))
	}
	w.put("a", "a0")
	w.shell("t0", func() {})
	first := len(w.blobs())
	w.shell("t0", func() {})
	w.shell("t1", func() {})
	w.edit("t1", func() {}, "new")
	if n := len(w.blobs()); n != first {
		t.Errorf("%d blobs, then %d, though nothing changed", first, n)
	}
	if n := len(w.history.Turns()); n != 0 {
		t.Errorf("%d turns can be undone", n)
	}
	c := w.shell("t2", func() { w.put("a", "a1") })
	w.shell("t2", func() {})
	if n := len(w.blobs()); n > first+2 {
		t.Errorf("one file added %d blobs", n-first)
	}
	if len(c) != 1 || c[0].Before.Path != "a" {
		t.Errorf("changes = %+v", c)
	}
}

func TestIgnoredFilesAreLeftOut(t *testing.T) {
	w := newWorld(t)
	w.put(".gitignore", "*.log\n/secret\n")
	w.put("x.log", "0")
	w.put("secret/s", "0")
	w.put("node_modules/m/i.js", "0")
	w.put(".coder/undo/x", "0")
	c := w.shell("t", func() {
		for _, p := range []string{"x.log", "secret/s", "secret/new", "node_modules/m/i.js", ".coder/undo/x", ".git/x"} {
			w.put(p, "1")
		}
	})
	if len(c) != 0 {
		t.Errorf("changes = %+v", c)
	}
}

// What comes into view because an ignore file changed was not made by the
// command, and undoing does not remove it.
func TestRevealedFilesAreNotRemoved(t *testing.T) {
	for name, ignore := range map[string]func(w *world){
		"rule removed": func(w *world) { w.put(".gitignore", "other\n") },
		"file removed": func(w *world) { w.remove(".gitignore") },
		"taken back":   func(w *world) { w.put("d/.gitignore", "x\n!*.log\n") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.put(".gitignore", "*.log\n")
			w.put("d/old.log", "precious")
			w.put("d/f", "f0")
			start := w.tree()
			time.Sleep(20 * time.Millisecond) // let the file system's clock tick
			w.shell("t", func() {
				ignore(w)
				w.put("d/f", "f1")
				w.put("d/old2.log", "new")
			})
			r := w.undo("all")
			start["d/old2.log"] = w.tree()["d/old2.log"]
			w.wantTree(start)
			for _, n := range r.Lost {
				if n.Path != "d/old2.log" {
					t.Errorf("lost %+v", n)
				}
			}
		})
	}
	w := newWorld(t)
	w.put("a.log", "mine")
	c := w.shell("t", func() { w.put(".gitignore", "*.log\n") })
	if len(c) != 1 {
		t.Errorf("a file out of sight counts as removed: %+v", c)
	}
}

// What a command moved out of an ignored place can be brought back by redoing.
func TestNothingIsDestroyedForGood(t *testing.T) {
	w := newWorld(t)
	w.put(".gitignore", ".env\n")
	w.put(".env", "SECRET=1")
	w.shell("t", func() { w.must(os.Rename(w.path(".env"), w.path("env.txt"))) })
	end := w.tree()
	w.undo("all")
	w.redo()
	w.wantTree(end)
}

func TestFilesBecomeDirectoriesAndBack(t *testing.T) {
	w := newWorld(t)
	w.put("f", "file")
	w.put("d/x", "x0")
	w.put("l", "l0")
	start := w.tree()
	w.shell("t", func() {
		w.remove("f")
		w.put("f/in/side", "1")
		w.remove("d")
		w.put("d", "now a file")
		w.remove("l")
		w.must(os.Symlink("d", w.path("l")))
	})
	end := w.tree()
	w.undo("all")
	w.wantTree(start)
	w.redo()
	w.wantTree(end)
}

func TestDirectoriesWithoutPermission(t *testing.T) {
	w := newWorld(t)
	w.put("d/f", "f0")
	w.must(os.Chmod(w.path("d"), 0o711))
	start := w.tree()
	w.shell("t", func() {
		w.put("d/f", "f1", 0o400)
		w.put("new/x", "x")
		w.must(os.Chmod(w.path("d"), 0o555))
		w.must(os.Chmod(w.path("new"), 0o500))
	})
	end := w.tree()
	w.undo("all")
	w.wantTree(start)
	w.redo()
	w.wantTree(end)
	w.must(os.Chmod(w.path("d"), 0o755))
	w.must(os.Chmod(w.path("new"), 0o755))
}

func TestDirectoryWithOtherFilesStays(t *testing.T) {
	w := newWorld(t)
	w.edit("t", func() { w.put("d/f", "f1") }, "d/f")
	w.put("d/mine", "mine")
	r := w.undo()
	w.wantTree(map[string]string{"d": "dir -rwxr-xr-x", "d/mine": `-rw-r--r-- "mine"`})
	if len(r.Unchanged) != 1 || r.Unchanged[0].Path != "d/" || !slices.Equal(r.Removed, []string{"d/f"}) {
		t.Errorf("report = %+v", r)
	}
}

func TestCommandThatChangesVeryMuch(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	w := newWorld(t)
	for i := range 1200 {
		w.put(fmt.Sprintf("d%d/f%d", i%9, i), fmt.Sprint("content ", i))
	}
	start := w.tree()
	c := w.shell("t", func() {
		for i := range 1100 {
			w.put(fmt.Sprintf("d%d/f%d", i%9, i), "changed")
		}
		w.remove("d0/f0")
		w.put("d0/new", "new")
	})
	if len(c) != 1 || c[0].Before.Path != "." {
		t.Fatalf("%d changes", len(c))
	}
	end := w.tree()
	w.restart()
	if r := w.undo(); len(r.NotUndone) < 1100 {
		t.Errorf("NotUndone has %d paths", len(r.NotUndone))
	}
	w.undo("all")
	w.wantTree(start)
	w.restart()
	w.redo()
	w.wantTree(end)
}

func TestBoundsOfATree(t *testing.T) {
	w := newWorld(t)
	w.o.TreeFiles, w.o.TreeBytes = 2, 1000
	w.restart()
	for _, n := range []string{"1", "22", "333"} {
		w.put(n, n)
	}
	w.shell("t", func() {
		for _, n := range []string{"1", "22", "333"} {
			w.put(n, "changed "+n)
		}
	})
	if len(w.warned) != 1 || !strings.Contains(w.warned[0], "333 is too large") {
		t.Errorf("warned %q", w.warned)
	}
	r := w.undo("all")
	if !slices.Equal(r.Restored, []string{"1", "22"}) || len(r.Lost) != 1 || r.Lost[0].Path != "333" {
		t.Errorf("report = %+v", r)
	}
	w.o.MaxEntries = 1
	w.restart()
	w.put("d/e/f/g", "0")
	w.shell("t2", func() { w.put("d/e/f/h", "1") })
	if !strings.Contains(strings.Join(w.warned, "\n"), "more than 1 files") {
		t.Errorf("warned %q", w.warned)
	}
}

// When the store is full the newest turns are what can be undone.
func TestQuota(t *testing.T) {
	w := newWorld(t)
	w.so.Quota = 20_000
	w.restart()
	content := func(i int) string { return strings.Repeat(fmt.Sprintf("%08x", i*2654435761), 128) }
	for i := range 100 {
		w.put("a", content(i))
		w.edit(fmt.Sprint("t", i), func() { w.put("a", content(i+1)) }, "a")
		info, err := os.Stat(w.path("a"))
		w.must(err)
		for _, b := range w.blobs()[:1] { // age what is there
			at := info.ModTime().Add(-time.Duration(100-i) * time.Hour)
			_ = os.Chtimes(filepath.Join(w.data, "objects", b[:2], b[2:]), at, at)
		}
	}
	var size int64
	for _, b := range w.blobs() {
		info, err := os.Stat(filepath.Join(w.data, "objects", b[:2], b[2:]))
		w.must(err)
		size += info.Size()
	}
	if size > w.so.Quota {
		t.Errorf("the store has %d bytes", size)
	}
	for i := range 5 {
		if r := w.undo(); !slices.Equal(r.Restored, []string{"a"}) {
			t.Errorf("undo %d: %+v", i, r)
		}
	}
}

func TestContentBeyondTheQuotaIsTold(t *testing.T) {
	w := newWorld(t)
	w.so.Quota = 100
	w.restart()
	w.put("a", strings.Repeat("x", 1000))
	w.edit("t", func() { w.put("a", "a1") }, "a")
	if len(w.warned) != 1 {
		t.Errorf("warned %q", w.warned)
	}
	if r := w.undo(); len(r.Lost) != 1 {
		t.Errorf("report = %+v", r)
	}
}

func TestCancelledUndoClosesItsRecord(t *testing.T) {
	w := newWorld(t)
	w.put("a", "a0")
	w.edit("t", func() { w.put("a", "a1") }, "a")
	ctx, cancel := context.WithCancel(t.Context())
	c := w.call()
	emit := c.Emit
	c.Emit = func(ctx context.Context, e event.Event) error {
		cancel()
		return emit(ctx, e)
	}
	if _, err := undo.Undo(ctx, w.keeper, w.history, c); !errors.Is(err, context.Canceled) {
		t.Errorf("Undo: %v", err)
	}
	done, ok := w.log[len(w.log)-1].Event.(event.ToolCallCompleted)
	if !ok || !done.IsError || len(done.Changes) != 0 {
		t.Errorf("last record = %+v", w.log[len(w.log)-1])
	}
	w.undo("force")
	w.wantTree(map[string]string{"a": `-rw-r--r-- "a0"`})
}

func TestSpecialFilesAreLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.put("a", "a0")
	w.shell("t", func() {
		w.must(syscall.Mkfifo(w.path("pipe"), 0o644))
		w.remove("a")
		w.must(syscall.Mkfifo(w.path("a"), 0o644))
	})
	w.undo("all", "force")
	for _, p := range []string{"pipe", "a"} {
		if info, err := os.Lstat(w.path(p)); err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
			t.Errorf("%s = %v, %v", p, info, err)
		}
	}
}

func TestCallsThatTouchNoFilesCostNothing(t *testing.T) {
	w := newWorld(t)
	kept, err := w.keeper.SaveOriginals(w.ctx, []tool.Effect{{Kind: tool.Net, Target: "https://example.org"}})
	if err != nil || kept.Tree != "" || kept.Before != nil {
		t.Errorf("Keep = %+v, %v", kept, err)
	}
	if _, err := os.Stat(w.data); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the store was made: %v", err)
	}
	if kept, err = w.keeper.SaveOriginals(w.ctx, nil); err != nil || kept.Tree == "" {
		t.Errorf("a call without effects may do anything: %+v, %v", kept, err)
	}
}

// The store cannot be written: nothing runs that could not be undone. Once it
// can, what is kept is all there, whatever was thought to be before.
func TestStoreThatCannotBeWritten(t *testing.T) {
	w := newWorld(t)
	w.put("a", "a0")
	was := w.tree()
	w.must(os.WriteFile(w.data, nil, 0o644))
	for _, effects := range [][]tool.Effect{{{Kind: tool.Write, Target: "a"}}, {{Kind: tool.Exec, Target: "sh"}}, nil} {
		if _, err := w.keeper.SaveOriginals(w.ctx, effects); err == nil {
			t.Errorf("Keep of %v succeeded", effects)
		}
	}
	w.must(os.Remove(w.data))
	c := w.shell("t", func() { w.put("a", "a1") })
	if len(c) != 1 || c[0].Before.ContentLost {
		t.Errorf("changes = %+v, warned %q", c, w.warned)
	}
	w.undo("all")
	w.wantTree(was)
}

// Whatever fails while a store is written to, and however, what the call would
// overwrite is not taken for kept, now or later.
func TestStoreOnADiskThatFails(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	for _, effects := range [][]tool.Effect{{{Kind: tool.Write, Target: "a"}}, {{Kind: tool.Exec, Target: "sh"}}} {
		for _, how := range []error{syscall.EIO, syscall.ENOSPC, syscall.EMFILE, syscall.EROFS} {
			for at, refused := 1, 0; ; at++ {
				disk := &faultdisk.Disk{At: at, Err: how, Short: at%2 == 0}
				w := newWorld(t)
				w.so.WrapDisk, w.so.NoSync = disk.InRoot, false
				w.restart()
				w.put("a", "a0")
				was := w.tree()
				_, err := w.keeper.SaveOriginals(w.ctx, effects)
				if err == nil && refused < 5 {
					t.Fatalf("only %d operations can fail: %q", refused, disk.Log())
				}
				if err == nil {
					break
				}
				if refused++; !errors.Is(err, how) {
					t.Errorf("operation %d fails with %v, want %v", at, err, how)
				}
				w.shell("t", func() { w.put("a", "a1") })
				w.undo("all")
				w.wantTree(was)
			}
		}
	}
}

// Files in a tree that the user added come back too.
func TestAddedTree(t *testing.T) {
	w := newWorld(t)
	other := t.TempDir()
	w.added = []string{other}
	w.restart()
	f, g := filepath.Join(other, "f"), filepath.Join(other, "new/deep/g")
	w.must(os.WriteFile(f, []byte("f0"), 0o640))
	w.edit("t", func() {
		w.must(w.ws.WriteFile(f, []byte("f1")))
		w.must(w.ws.WriteFile(g, []byte("g1")))
	}, f, g)
	w.restart()
	r := w.undo()
	if len(r.Unchanged)+len(r.Lost)+len(r.Failed) > 0 {
		t.Errorf("report = %+v", r)
	}
	if got, err := describe(f); got != `-rw-r----- "f0"` || err != nil {
		t.Errorf("f = %s, %v", got, err)
	}
	if _, err := os.Lstat(filepath.Join(other, "new")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("new: %v", err)
	}
	w.redo()
	if got, err := describe(g); got != `-rw-r--r-- "g1"` || err != nil {
		t.Errorf("g = %s, %v", got, err)
	}
}

// Someone changes a file after the undo was planned and before it is carried out.
func TestChangeBetweenPlanAndDeed(t *testing.T) {
	w := newWorld(t)
	for _, p := range []string{"a", "d/b"} {
		w.put(p, "0")
	}
	w.edit("t", func() {
		w.put("a", "1")
		w.put("made", "1")
		w.remove("d/b")
	}, "a", "made", "d/b")
	c := w.call()
	emit := c.Emit
	c.Emit = func(ctx context.Context, e event.Event) error {
		if _, ok := e.(event.ToolCallRequested); ok {
			w.put("a", "mine")
			w.put("made", "mine")
			w.put("d/b", "mine")
		}
		return emit(ctx, e)
	}
	r := w.undoThis(c)
	mine := `-rw-r--r-- "mine"`
	w.wantTree(map[string]string{"a": mine, "made": mine, "d": "dir -rwxr-xr-x", "d/b": mine})
	if len(r.Unchanged) != 3 || len(r.Restored)+len(r.Removed) != 0 {
		t.Errorf("report = %+v", r)
	}
}

// Who takes a file back by hand owns it.
func TestFileTakenBackByHandIsTheUsers(t *testing.T) {
	w := newWorld(t)
	w.shell("t", func() { w.put("a", "a1") })
	w.edit("t", func() { w.put("a", "a2") }, "a")
	w.put("a", "a1")
	mine := w.tree()
	w.undo()
	w.wantTree(mine)
	if r := w.undoTurn("t", "all"); len(r.Unchanged) != 1 {
		t.Errorf("report = %+v", r)
	}
	w.wantTree(mine)
}

// What a tool changed lies beneath what the user made of it, and a command has
// gone over that.
func TestChangeBeneathTheUsers(t *testing.T) {
	w := newWorld(t)
	w.put("a", "a0")
	w.edit("t", func() { w.put("a", "a1") }, "a")
	w.put("a", "mine")
	mine := w.tree()
	w.shell("t", func() { w.put("a", "mine, formatted") })
	formatted := w.tree()
	if r := w.undo(); len(r.Unchanged) != 1 {
		t.Errorf("report = %+v", r)
	}
	w.wantTree(formatted)
	if r := w.undo("all"); !slices.Equal(r.PartlyRestored, []string{"a"}) {
		t.Errorf("report = %+v", r)
	}
	w.wantTree(mine)
}

// A turn that goes on after it was undone can be undone again.
func TestTurnThatGoesOn(t *testing.T) {
	w := newWorld(t)
	start := w.tree()
	w.edit("t1", func() { w.put("a", "a1") }, "a")
	w.edit("t2", func() { w.put("b", "b1") }, "b")
	w.undo()
	w.undo()
	w.edit("t1", func() { w.put("c", "c1") }, "c")
	w.restart()
	if r := w.undo(); r.Turn.ID != "t1" {
		t.Errorf("report = %+v", r)
	}
	w.wantTree(start)
}

// A content that has gone from the store by the time a command overwrites the
// file is said to be lost at once.
func TestContentThatIsGoneIsLost(t *testing.T) {
	w := newWorld(t)
	w.put("a", "a0")
	c := w.shell("t", func() {
		w.must(os.RemoveAll(filepath.Join(w.data, "objects")))
		w.put("a", "a1")
	})
	if len(c) != 1 || !c[0].Before.ContentLost {
		t.Errorf("changes = %+v", c)
	}
}

func TestDirectoryThatStaysKeepsItsMode(t *testing.T) {
	w := newWorld(t)
	w.shell("t", func() {
		w.put("new/x", "x")
		w.must(os.Chmod(w.path("new"), 0o500))
	})
	w.must(os.Chmod(w.path("new"), 0o700))
	w.put("new/mine", "mine")
	w.must(os.Chmod(w.path("new"), 0o500))
	w.undo("all")
	w.wantTree(map[string]string{"new": "dir -r-x------", "new/mine": `-rw-r--r-- "mine"`})
	w.must(os.Chmod(w.path("new"), 0o700))
}

// What the next command may destroy stays in the store however full that is.
func TestFilesThatStandAreNotPruned(t *testing.T) {
	w := newWorld(t)
	w.so.Quota = 20_000
	w.o.IsNeeded = nil
	w.restart()
	w.put("standing", strings.Repeat("s", 1000))
	w.shell("t", func() {})
	for _, b := range w.blobs() { // old
		at := time.Now().Add(-time.Hour)
		w.must(os.Chtimes(filepath.Join(w.data, "objects", b[:2], b[2:]), at, at))
	}
	for i := range 60 {
		w.put("a", strings.Repeat(fmt.Sprintf("%08x", i), 125))
		w.edit(fmt.Sprint("t", i), func() { w.put("a", "") }, "a")
	}
	c := w.shell("t60", func() { w.put("standing", "") })
	if len(c) != 1 || c[0].Before.ContentLost {
		t.Errorf("changes = %+v", c)
	}
	w.undo("all")
	if got, _ := os.ReadFile(w.path("standing")); len(got) != 1000 {
		t.Errorf("standing has %d bytes", len(got))
	}
}

// A store too small for all files keeps what it can and says so.
func TestTreeBeyondTheQuota(t *testing.T) {
	w := newWorld(t)
	w.so.Quota = 30_000
	w.restart()
	const n = 100
	for i := range n {
		w.put(fmt.Sprint(i), strings.Repeat(fmt.Sprintf("%08x", i), 125))
	}
	w.shell("t", func() {
		for i := range n {
			w.put(fmt.Sprint(i), "changed")
		}
	})
	if len(w.warned) == 0 || !strings.Contains(w.warned[0], "full") {
		t.Errorf("warned %q", w.warned)
	}
	r := w.undo("all")
	if len(r.Restored) == 0 || len(r.Lost) == 0 || len(r.Restored)+len(r.Lost) != n {
		t.Errorf("%d restored, %d lost", len(r.Restored), len(r.Lost))
	}
}

// A directory that could not be listed hides files; opened, it makes none.
func TestDirectoriesThatCannotBeListed(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("nothing is closed to root")
	}
	w := newWorld(t)
	w.put("d/old", "precious")
	w.put("d/sub/old", "precious")
	w.put("e/f", "f0")
	start := w.tree()
	w.must(os.Chmod(w.path("d"), 0))
	time.Sleep(20 * time.Millisecond)
	w.shell("t", func() {
		w.must(os.Chmod(w.path("d"), 0o755))
		w.put("d/new", "new")
		w.remove("e")
	})
	r := w.undo("all")
	if len(r.Lost) != 1 || r.Lost[0].Path != "d/new" {
		t.Errorf("report = %+v", r)
	}
	w.must(os.Chmod(w.path("d"), 0o755))
	w.remove("d/new")
	w.wantTree(start)
}

func TestPlansJoin(t *testing.T) {
	p := undo.MergePlans(
		undo.Plan{Turn: undo.Turn{ID: "t2"}, Restored: []string{"b", "d"}, Unchanged: []undo.Note{{Path: "mine", Why: "changed since"}}, Commands: []string{"make"}},
		undo.Plan{
			Turn: undo.Turn{ID: "t1"}, Restored: []string{"a"}, Removed: []string{"c", "d"}, Commands: []string{"make", "ls"},
			Unchanged: []undo.Note{{Path: "b", Why: "changed since"}, {Path: "mine", Why: "changed since"}},
		},
	)
	want := undo.Plan{
		Turn: undo.Turn{ID: "t2"}, Restored: []string{"a", "b"}, Removed: []string{"c", "d"}, PartlyRestored: []string{"b"},
		Unchanged: []undo.Note{{Path: "mine", Why: "changed since"}}, Commands: []string{"make", "ls"},
	}
	if !reflect.DeepEqual(p, want) {
		t.Errorf("got  %+v\nwant %+v", p, want)
	}
}

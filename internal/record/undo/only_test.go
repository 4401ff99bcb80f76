package undo_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"coder/internal/record/undo"
)

func (w *world) only(o undo.Selection, how ...string) (undo.Plan, error) {
	c := w.asked(how)
	c.Selection = o
	return undo.Undo(w.ctx, w.keeper, w.history, c)
}

func (w *world) mustOnly(o undo.Selection, how ...string) undo.Plan {
	w.t.Helper()
	p, err := w.only(o, how...)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// One call is undone by the number of a record of it, what others did to the same files
// stays, and the rest of the turn can be undone afterwards.
func TestOneCallIsUndone(t *testing.T) {
	w := newWorld(t)
	w.put("a", "0")
	w.put("b", "0")
	start := w.tree()
	w.edit("t", func() { w.put("a", "1") }, "a")
	first := uint64(len(w.log) - 1)
	w.shell("t", func() { w.put("b", "1"); w.put("c", "1") })
	second := uint64(len(w.log))
	w.edit("t", func() { w.put("a", "2") }, "a")
	before := w.tree()
	if p := w.mustOnly(undo.Selection{Record: second}, "dry"); !slices.Equal(p.Restored, []string{"b"}) || !slices.Equal(p.Removed, []string{"c"}) {
		t.Errorf("dry: %+v", p)
	}
	w.wantTree(before)
	if p := w.mustOnly(undo.Selection{Record: first}); len(p.Unchanged) != 1 || !strings.Contains(p.Unchanged[0].Why, "changed it later") {
		t.Errorf("the first call: %+v", p)
	}
	w.wantTree(before)
	w.mustOnly(undo.Selection{Record: second})
	w.wantTree(map[string]string{"a": before["a"], "b": start["b"]})
	w.restart() // what is on record says the same
	w.redo()
	w.wantTree(before)
	w.mustOnly(undo.Selection{Record: second})
	w.undo("all")
	w.wantTree(start)
	if _, err := w.only(undo.Selection{Record: 999}); !errors.Is(err, undo.ErrNothingToUndo) {
		t.Errorf("a call that is not there: %v", err)
	}
}

// Of a file the last turn that changed it is undone, then the one before.
func TestOneFileIsUndone(t *testing.T) {
	w := newWorld(t)
	w.put("a b", "0")
	w.put("other", "0")
	w.shell("t1", func() { w.put("a b", "1"); w.put("d/x", "1") })
	w.edit("t2", func() { w.put("a b", "2") }, "a b")
	w.edit("t2", func() { w.put("other", "1") }, "other")
	is := func(name, text string) {
		t.Helper()
		if got, _ := os.ReadFile(w.path(name)); string(got) != text {
			t.Errorf("%s is %q, want %q", name, got, text)
		}
	}
	if p := w.mustOnly(undo.Selection{File: "./a b"}); p.Turn.ID != "t2" || !slices.Equal(p.Restored, []string{"a b"}) {
		t.Errorf("plan = %+v", p)
	}
	is("a b", "1")
	is("other", "1")
	w.mustOnly(undo.Selection{File: w.path("a b")})
	is("a b", "0")
	is("d/x", "1")
	w.redo()
	is("a b", "1")
	if _, err := w.only(undo.Selection{File: "nothing"}); !errors.Is(err, undo.ErrNothingToUndo) {
		t.Errorf("another file: %v", err)
	}
	w.mustOnly(undo.Selection{File: "d"}) // a folder is all that is in it
	is("d/x", "")
	if p := w.undo(); !slices.Equal(p.Restored, []string{"other"}) {
		t.Errorf("the rest of the turn: %+v", p)
	}
}

// Names are bytes, through record, undo and redo.
func TestNamesAreBytes(t *testing.T) {
	w := newWorld(t)
	raw := "a\xff\xfe.txt"
	w.put(raw, "0")
	w.put("d\xff/new", "0")
	w.must(os.Symlink("to\xff", w.path("link\xff")))
	start := w.tree()
	w.shell("t", func() {
		w.put(raw, "1")
		w.put("d\xff/new", "1")
		w.put("made\xff", "1")
		w.remove("link\xff")
	})
	after := w.tree()
	w.restart()
	p := w.undo("all")
	w.wantTree(start)
	if !slices.Contains(p.Restored, `a\xff\xfe.txt`) || !slices.Equal(p.Removed, []string{`made\xff`}) {
		t.Errorf("plan = %+v", p)
	}
	w.restart()
	w.redo()
	w.wantTree(after)
	w.mustOnly(undo.Selection{File: `a\xff\xfe.txt`})
	if got, _ := os.ReadFile(w.path(raw)); string(got) != "0" {
		t.Errorf("%q", got)
	}
}

// Several turns are undone as one plan, and a dry run tells exactly that.
func TestSeveralTurnsAreOnePlan(t *testing.T) {
	w := newWorld(t)
	w.put("f", "0")
	w.shell("t1", func() { w.put("f", "1"); w.put("d/made", "1") })
	w.edit("t2", func() { w.put("f", "2") }, "f")
	w.edit("t3", func() { w.remove("f") }, "f")
	w.shell("t3", func() { w.put("d/made", "2") })
	before := w.tree()
	c := w.asked([]string{"all", "dry"})
	c.Turns = []string{"t3", "t2", "t1"}
	dry := w.undoThis(c)
	w.wantTree(before)
	c.DryRun = false
	did := w.undoThis(c)
	w.wantTree(map[string]string{"f": `-rw-r--r-- "0"`})
	for _, p := range []undo.Plan{dry, did} {
		if !slices.Equal(p.Restored, []string{"f"}) || !slices.Equal(p.Removed, []string{"d/", "d/made"}) || len(p.Unchanged)+len(p.PartlyRestored) > 0 {
			t.Errorf("plan = %+v", p)
		}
	}
}

// Files are restored to goals, what others changed stays, and undo takes it back.
func TestRestoreIsACallThatCanBeUndone(t *testing.T) {
	w := newWorld(t)
	w.put("a", "0")
	w.put("b", "0")
	changes := w.shell("t", func() { w.put("a", "1"); w.put("b", "1"); w.put("c", "1") })
	w.put("b", "mine")
	var goals []undo.Goal
	for _, c := range changes {
		known := c.After
		goals = append(goals, undo.Goal{To: c.Before, Expected: &known})
	}
	before := w.tree()
	dry, err := undo.Restore(w.ctx, w.keeper, w.asked([]string{"dry"}), goals)
	if err != nil || !slices.Equal(dry.Restored, []string{"a"}) || !slices.Equal(dry.Removed, []string{"c"}) || len(dry.Unchanged) != 1 {
		t.Errorf("dry: %+v, %v", dry, err)
	}
	w.wantTree(before)
	if _, err := undo.Restore(w.ctx, w.keeper, w.call(), goals); err != nil {
		t.Fatal(err)
	}
	w.wantTree(map[string]string{"a": `-rw-r--r-- "0"`, "b": before["b"]})
	w.restart()
	w.undo()
	w.wantTree(before)
}

// The file whose name was given is undone, and none that only looks like it once shown.
func TestANameGivenIsOneFile(t *testing.T) {
	raw, typed, other := "a\xff", `a\xff`, "b\xff"
	begin := func() *world {
		w := newWorld(t)
		for _, name := range []string{raw, typed, other, "d\xff/in", `d\xff/in`, "e\xff/in"} {
			w.put(name, "0")
		}
		w.shell("t1", func() { w.put(typed, "1"); w.put(other, "1"); w.put("d\xff/in", "1"); w.put("e\xff/in", "1") })
		w.shell("t2", func() { w.put(raw, "2"); w.put(`d\xff/in`, "2") })
		return w
	}
	for _, c := range []struct{ given, goes string }{
		{raw, raw}, {typed, typed}, {`b\xff`, other}, {"d\xff", "d\xff/in"}, {`d\xff`, `d\xff/in`}, {`e\xff`, "e\xff/in"}, {`e\xff/in`, "e\xff/in"},
	} {
		w := begin()
		want := w.tree()
		want[c.goes] = `-rw-r--r-- "0"`
		w.mustOnly(undo.Selection{File: c.given})
		w.wantTree(want)
	}
	w := begin()
	both := []string{"x\xff" + `\xff`, `x\xff` + "\xff"}
	w.shell("t3", func() { w.put(both[0], "3"); w.put(both[1], "3") })
	before := w.tree()
	if _, err := w.only(undo.Selection{File: `x\xff\xff`}); err == nil || errors.Is(err, undo.ErrNothingToUndo) || !strings.Contains(err.Error(), "2 files") {
		t.Errorf("a name that is shown of two files: %v", err)
	}
	w.wantTree(before)
	w.mustOnly(undo.Selection{File: both[1]})
	before[both[1]] = ""
	delete(before, both[1])
	w.wantTree(before)
}

// A turn of very many changes that are on record as one does not stand in the way of a
// file that it did not change.
func TestManyChangesHideNoFileOfATurnBefore(t *testing.T) {
	w := newWorld(t)
	w.put("f", "0")
	w.edit("t1", func() { w.put("f", "1") }, "f")
	w.shell("t2", func() {
		for i := range 1001 {
			w.put(fmt.Sprintf("many/%d", i), "x")
		}
	})
	if p := w.mustOnly(undo.Selection{File: "f"}); !slices.Equal(p.Restored, []string{"f"}) {
		t.Errorf("plan = %+v", p)
	}
	if p := w.mustOnly(undo.Selection{File: "many/7"}); !slices.Equal(p.Removed, []string{"many/7"}) {
		t.Errorf("plan = %+v", p)
	}
	if _, err := w.only(undo.Selection{File: "nothing"}); !errors.Is(err, undo.ErrNothingToUndo) || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("a file that no turn changed: %v", err)
	}
}

package undo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"coder/internal/core/event"
	"coder/internal/record/undo"
	"coder/internal/tool"
)

// The process dies between the request of a call and its completion.
func TestCrashInTheMiddleOfACall(t *testing.T) {
	for name, tc := range map[string]struct {
		do   func(w *world)
		late time.Duration // how long after the request
	}{
		"nothing done":      {do: func(*world) {}},
		"written":           {do: func(w *world) { w.put("a", "a1"); w.put("d/new", "n") }},
		"half":              {do: func(w *world) { w.put("d/new", "n") }},
		"removed":           {do: func(w *world) { w.remove("a") }},
		"later by the user": {do: func(w *world) { w.put("a", "mine") }, late: time.Hour},
	} {
		for _, recovered := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " ", recovered), func(t *testing.T) {
				w := newWorld(t)
				w.put("a", "a0")
				start := w.tree()
				w.clock = func() time.Time { return time.Now().Add(-tc.late) }
				b := w.begin("t", "main", tool.Effect{Kind: tool.Write, Target: "a"}, tool.Effect{Kind: tool.Write, Target: "d/new"})
				tc.do(w)
				end := w.tree()
				w.restart()
				if recovered {
					w.record("recovery", event.ToolCallCompleted{
						CallID: b.e.CallID, Tool: "some", TaskID: "t", Output: json.RawMessage("{}"), IsError: true,
					})
				}
				w.restart()
				r := w.undo()
				if tc.late > 0 {
					w.wantTree(end)
					if len(r.Unchanged) != 1 {
						t.Errorf("report = %+v", r)
					}
					w.undo("force")
				}
				w.wantTree(start)
				w.redo()
				w.wantTree(end)
			})
		}
	}
}

func TestCrashInTheMiddleOfACommand(t *testing.T) {
	w := newWorld(t)
	w.put("a", "a0")
	w.put("b", "b0")
	start := w.tree()
	w.begin("t", "main", tool.Effect{Kind: tool.Exec, Target: "make"})
	w.put("a", "a1")
	w.put("new", "n")
	w.remove("b")
	end := w.tree()
	w.restart()
	r := w.undo("all")
	w.wantTree(end) // nobody can tell whose changes these are
	if len(r.Unchanged) != 3 {
		t.Errorf("report = %+v", r)
	}
	w.undo("all", "force")
	w.wantTree(start)
	w.redo()
	w.wantTree(end)
}

// The process dies in the middle of an undo, at each record and each file.
func TestCrashInTheMiddleOfUndo(t *testing.T) {
	died := errors.New("died")
	for stop := range 2 {
		for _, again := range []string{"undo", "redo", "undo ended", "redo ended"} {
			t.Run(fmt.Sprint(stop, again), func(t *testing.T) {
				again, ended := strings.CutSuffix(again, " ended")
				w := newWorld(t)
				w.put("a", "a0")
				w.put("b", "b0")
				start := w.tree()
				w.edit("t", func() { w.put("a", "a1"); w.put("b", "b1"); w.put("c", "c1") }, "a", "b", "c")
				end := w.tree()
				n := 0
				c := w.call()
				emit := c.Emit
				c.Emit = func(ctx context.Context, e event.Event) error {
					if n++; n > stop {
						return died
					}
					return emit(ctx, e)
				}
				if _, err := undo.Undo(w.ctx, w.keeper, w.history, c); !errors.Is(err, died) {
					t.Fatalf("Undo: %v", err)
				}
				if stop == 0 {
					w.wantTree(end)
				} else {
					w.put("b", "b1") // this one had not been reached
				}
				w.restart()
				if due := w.history.InterruptedCalls(); len(due) != stop {
					t.Errorf("due are %+v", due)
				}
				if ended { // the next process has put an end to it on record
					for _, e := range w.history.InterruptedCalls() {
						w.record("recovery", e)
					}
					if due := w.history.InterruptedCalls(); len(due) != 0 {
						t.Errorf("still due are %+v", due)
					}
					w.restart()
				}
				if stop == 1 && again == "redo" {
					w.redo()
					w.wantTree(end)
				}
				w.undo()
				w.wantTree(start)
				w.restart()
				w.redo()
				w.wantTree(end)
			})
		}
	}
}

// The process dies in the middle of a command that follows an edit, and a
// person goes on with one of the files. The edit is undone; what the command
// did is told, and undone when forced; nothing the undo did counts as its doing.
func TestKilledInTheMiddleOfATurn(t *testing.T) {
	for _, recovered := range []bool{false, true} {
		t.Run(fmt.Sprint("recovered ", recovered), func(t *testing.T) {
			w := newWorld(t)
			w.put("a", "one")
			w.put("c", "c0")
			w.edit("t", func() { w.put("a", "two") }, "a")
			b := w.begin("t", "main", tool.Effect{Kind: tool.Exec, Target: "make"})
			w.put("b", "sh")
			w.put("c", "c1")
			w.restart()
			w.put("c", "c1 and mine")
			if recovered {
				w.record("recovery", event.ToolCallCompleted{CallID: b.e.CallID, Tool: "some", TaskID: "t", Output: json.RawMessage("{}"), IsError: true})
			}
			file := func(text string) string { return fmt.Sprintf("-rw-r--r-- %q", text) }
			r := w.undo()
			if !slices.Equal(r.NotUndone, []string{"b", "c"}) || !slices.Equal(r.Restored, []string{"a"}) {
				t.Errorf("report = %+v", r)
			}
			left := map[string]string{"a": file("one"), "b": file("sh"), "c": file("c1 and mine")}
			w.wantTree(left)
			w.restart()
			r = w.undo("all")
			if len(r.Unchanged) != 2 || r.Unchanged[0].Path != "b" || r.Unchanged[1].Path != "c" || !strings.Contains(r.Unchanged[0].Why, "interrupted") {
				t.Errorf("report = %+v", r)
			}
			w.wantTree(left)
			w.put("a", "one, and mine") // nor does this
			left["a"] = file("one, and mine")
			r = w.undo("all", "force")
			if !slices.Equal(r.Removed, []string{"b"}) || !slices.Equal(r.Restored, []string{"c"}) {
				t.Errorf("report = %+v", r)
			}
			w.wantTree(map[string]string{"a": left["a"], "c": file("c0")})
			w.restart()
			w.redo()
			w.wantTree(left)
			w.undo("all", "force")
			w.wantTree(map[string]string{"a": left["a"], "c": file("c0")})
			if _, err := undo.Undo(w.ctx, w.keeper, w.history, w.asked([]string{"all"})); !errors.Is(err, undo.ErrNothingToUndo) {
				t.Errorf("again: %v", err)
			}
		})
	}
}

// What later turns and undoing did is not taken for the work of a command that
// was cut off.
func TestLaterWorkIsNotTheCutOffCommands(t *testing.T) {
	w := newWorld(t)
	w.put("a", "a0")
	w.put("b", "b0")
	b := w.begin("t1", "main", tool.Effect{Kind: tool.Exec, Target: "make"})
	w.put("made", "m")
	w.restart()
	w.record("recovery", event.ToolCallCompleted{CallID: b.e.CallID, Tool: "some", TaskID: "t1", Output: json.RawMessage("{}"), IsError: true})
	w.edit("t2", func() { w.put("a", "a2") }, "a")
	w.shell("t2", func() { w.put("b", "b2"); w.put("new", "n") })
	later := w.tree()
	r := w.undoTurn("t1", "all")
	if len(r.Unchanged) != 1 || r.Unchanged[0].Path != "made" {
		t.Errorf("report = %+v", r)
	}
	w.wantTree(later)
	w.undoTurn("t1", "all", "force")
	delete(later, "made")
	w.wantTree(later)
}

// Who asks for more of a turn that was undone is told once what stands in the
// way; asking the same again goes on to the turn before.
func TestAskingAgainGoesOn(t *testing.T) {
	w := newWorld(t)
	w.put("a", "a0")
	w.edit("t1", func() { w.put("a", "a1") }, "a")
	w.begin("t2", "main", tool.Effect{Kind: tool.Exec, Target: "make"})
	w.put("b", "b")
	w.restart()
	for i, want := range []struct {
		turn string
		kept int
	}{{"t2", 1}, {"t1", 0}} {
		w.restart()
		if r := w.undo("all"); r.Turn.ID != want.turn || len(r.Unchanged) != want.kept {
			t.Errorf("undo %d = %+v", i, r)
		}
	}
	if r := w.redo(); r.Turn.ID != "t1" {
		t.Errorf("redo = %+v", r)
	}
	if r := w.redo(); r.Turn.ID != "t2" {
		t.Errorf("redo = %+v", r)
	}
	w.wantTree(map[string]string{"a": `-rw-r--r-- "a1"`, "b": `-rw-r--r-- "b"`})
}

// A call that was cut off after an undo comes before what was undone, and what
// is put on record about it later does not bring back what is undone by then.
func TestCutOffAfterAnUndo(t *testing.T) {
	w := newWorld(t)
	w.put("a", "a0")
	w.edit("t1", func() { w.put("a", "a1") }, "a")
	w.put("a", "mine")
	w.undo() // in vain
	b := w.begin("t2", "main", tool.Effect{Kind: tool.Write, Target: "b"})
	w.put("b", "b2")
	w.restart()
	if r := w.undo("force"); r.Turn.ID != "t2" || !slices.Equal(r.Removed, []string{"b"}) {
		t.Errorf("report = %+v", r)
	}
	w.restart()
	w.record("recovery", event.ToolCallCompleted{CallID: b.e.CallID, Tool: "some", TaskID: "t2", Output: json.RawMessage("{}"), IsError: true})
	if n := len(w.history.Turns()); n != 0 {
		t.Errorf("%d turns can be undone: %+v", n, w.history.Turns())
	}
	w.redo()
	w.wantTree(map[string]string{"a": `-rw-r--r-- "mine"`, "b": `-rw-r--r-- "b2"`})
}

// What comes after a call that was cut off is undone before it.
func TestATurnAfterOneThatWasCutOffIsTheLast(t *testing.T) {
	w := newWorld(t)
	w.put("a", "0")
	w.edit("t1", func() { w.put("a", "1") }, "a")
	w.begin("t1", "main", tool.Effect{Kind: tool.Exec, Target: "make"})
	w.restart()
	w.edit("t2", func() { w.put("a", "2") }, "a")
	if r := w.undo(); r.Turn.ID != "t2" {
		t.Errorf("undone: %+v", r)
	}
}

package undo_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"coder/internal/core/event"
	"coder/internal/record/undo"
	"coder/internal/tool"
)

// watching has a world's commands watched: they touch all files but those named, if
// what they touch is known.
func (w *world) watching(known bool, theirs ...string) {
	w.o.RecordTouched = touching(func(path string) bool {
		rel, _ := filepath.Rel(w.dir, path)
		return known && !slices.Contains(theirs, rel)
	}, known)
	w.restart()
}

// touching is a witness of commands that do anything to the files that has tells.
func touching(has func(path string) bool, known bool) func() func() (func(string) tool.Touch, bool) {
	return func() func() (func(string) tool.Touch, bool) {
		return func() (func(string) tool.Touch, bool) {
			return func(path string) tool.Touch {
				if !has(path) {
					return tool.Touch{}
				}
				return tool.Touch{Touched: true, Opened: 1000, Moved: 1000, Removed: 1000, StillOpen: true}
			}, known
		}
	}
}

func whys(p undo.Plan) map[string]string {
	all := make(map[string]string)
	for _, n := range p.Unchanged {
		all[n.Path] = n.Why
	}
	return all
}

// Whatever somebody else does to files while a command runs stays, and is named; force
// includes it. All that the command did is undone.
func TestWhatAnotherProgramDidMeanwhileStays(t *testing.T) {
	w := newWorld(t)
	theirs := []string{"appended", "new", "replaced", "from", "to", "gone"}
	w.watching(true, theirs...)
	for _, name := range []string{"ours", "appended", "replaced", "from", "gone"} {
		w.put(name, "0")
	}
	start := w.tree()
	w.shell("t", func() {
		w.put("ours", "1")
		w.put("made", "1")
		w.put("appended", "01")
		w.put("new", "1")
		w.put("replaced", "1")
		w.must(os.Rename(w.path("from"), w.path("to")))
		w.remove("gone")
	})
	after := w.tree()
	dry := w.undo("all", "dry")
	w.wantTree(after)
	p := w.undo("all")
	if !slices.Equal(p.Restored, []string{"ours"}) || !slices.Equal(p.Removed, []string{"made"}) || len(p.Unchanged) != len(theirs) || len(dry.Unchanged) != len(theirs) {
		t.Errorf("plan = %+v", p)
	}
	for name, why := range whys(p) {
		if why != "another program changed it while the command ran" {
			t.Errorf("%s: %s", name, why)
		}
	}
	want := map[string]string{"ours": start["ours"]}
	for name, is := range after {
		if name != "made" && name != "ours" {
			want[name] = is
		}
	}
	w.wantTree(want)
	w.undo("all", "force")
	w.wantTree(start)
}

// Where commands cannot be watched all that they may have done is doubtful.
func TestWhatNobodySawStays(t *testing.T) {
	w := newWorld(t)
	w.watching(false)
	w.put("a", "0")
	w.shell("t", func() { w.put("a", "1") })
	if p := w.undo("all"); !strings.Contains(whys(p)["a"], "could not watch") || !slices.Contains(p.Describe("/undo all force"), "/undo all force overwrites: a") {
		t.Errorf("plan = %+v", p)
	}
	w.undo("all", "force")
	w.wantTree(map[string]string{"a": `-rw-r--r-- "0"`})
}

// A file with several names may be written by each of them, by the command or by others.
func TestWhatOthersDidByAnotherNameStays(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("no system but Linux counts what is done to files")
	}
	for _, both := range []bool{false, true} {
		w := newWorld(t)
		w.o.RecordTouched = func() func() (func(string) tool.Touch, bool) {
			return func() (func(string) tool.Touch, bool) {
				return func(path string) tool.Touch {
					return map[string]tool.Touch{"f": {Touched: true, Opened: 1}}[filepath.Base(path)]
				}, true
			}
		}
		w.restart()
		w.put("f", "0")
		w.must(os.Link(w.path("f"), w.path("other")))
		before := w.tree()
		w.shell("t", func() {
			w.must(os.WriteFile(w.path("f"), []byte("ours"), 0o644))
			if both {
				w.must(os.WriteFile(w.path("other"), []byte("theirs"), 0o644))
			}
		})
		want := before
		if both {
			want = w.tree()
		}
		p := w.undo("all")
		w.wantTree(want)
		if both && (whys(p)["f"] == "" || whys(p)["other"] == "") {
			t.Errorf("plan = %+v", p)
		}
	}
}

// Of very many changes those that are doubtful are on record one by one.
func TestDoubtAmongManyChanges(t *testing.T) {
	w := newWorld(t)
	w.watching(true, "theirs")
	w.put("theirs", "0")
	changes := w.shell("t", func() {
		for i := range 1200 {
			w.put(fmt.Sprintf("d/f%d", i), "1")
		}
		w.put("theirs", "1")
	})
	if len(changes) != 2 || changes[1].Doubt != event.DoubtOther {
		t.Fatalf("%d changes: %+v", len(changes), changes)
	}
	if p := w.undo("all"); len(p.Removed) != 1201 || whys(p)["theirs"] == "" {
		t.Errorf("removed %d, kept %+v", len(p.Removed), p.Unchanged)
	}
	w.wantTree(map[string]string{"theirs": `-rw-r--r-- "1"`})
}

// A file is touched by all of its names.
func TestACommandTouchesAFileByAllOfItsNames(t *testing.T) {
	w := newWorld(t)
	w.put("one", "0")
	w.must(os.Link(w.path("one"), w.path("two")))
	w.watching(true, "two")
	changes := w.shell("t", func() { w.must(os.WriteFile(w.path("one"), []byte("1"), 0o644)) })
	for _, c := range changes {
		if c.Doubt != "" {
			t.Errorf("%+v", c)
		}
	}
}

// A claim is a span; who is in doubt is told.
func TestWhoMayHaveChangedAFile(t *testing.T) {
	hour := time.Hour
	for name, tc := range map[string]struct {
		known  bool
		theirs []string
		from   time.Duration // from the beginning of the command
		to     time.Duration // 0: it is still under way
		doubt  event.Doubt
		why    string
	}{
		"begun before, ended after": {true, nil, -hour, hour, "", "the command or session other changed it"},
		"begun before, under way":   {true, nil, -hour, 0, "", "the command or session other changed it"},
		"over before":               {true, nil, -hour, -hour / 2, "", ""},
		"begun after":               {true, nil, hour, 2 * hour, "", ""},
		"in doubt, and ours":        {true, nil, -hour, hour, event.DoubtUnseen, ""},
		"theirs":                    {true, []string{"f"}, -hour, hour, "", "session other changed it while the command ran"},
		"theirs, or yet another's":  {true, []string{"f"}, -hour, hour, event.DoubtUnseen, "another program or session other changed it while the command ran"},
		"neither saw":               {false, nil, -hour, hour, event.DoubtUnseen, "the command or session other changed it"},
		"they disclaim, we saw it":  {true, nil, -hour, hour, event.DoubtOther, ""},
		"they disclaim, nobody saw": {false, nil, -hour, hour, event.DoubtOther, "the command or another program changed it; coder could not watch the command"},
		"they disclaim, another's":  {true, []string{"f"}, -hour, hour, event.DoubtOther, "another program changed it while the command ran"},
	} {
		w := newWorld(t)
		w.watching(tc.known, tc.theirs...)
		w.put("f", "0")
		began := time.Now()
		w.shell("t", func() { w.put("f", "1") })
		c := w.asked([]string{"all"})
		c.Others = func(context.Context, time.Time, time.Time) ([]undo.Claim, error) {
			claim := undo.Claim{Path: "f", Session: "other", From: began.Add(tc.from), Doubt: tc.doubt}
			if tc.to != 0 {
				claim.To = began.Add(tc.to)
			}
			return []undo.Claim{claim}, nil
		}
		if got := whys(w.undoThis(c))["f"]; got != tc.why {
			t.Errorf("%s: %q, want %q", name, got, tc.why)
		}
	}
}

// What another call of the session did while a command ran is that call's.
func TestWhatAnotherCallDidMeanwhileIsUndone(t *testing.T) {
	w := newWorld(t)
	w.watching(true, "f")
	w.put("f", "0")
	b := w.begin("t", "main", tool.Effect{Kind: tool.Exec, Target: "make"})
	w.edit("t", func() { w.put("f", "1") }, "f")
	b.end()
	if p := w.undo("all"); !slices.Equal(p.Restored, []string{"f"}) {
		t.Errorf("plan = %+v", p)
	}
}

// What a command that was cut off left is said to be that, with the way to undo it.
func TestWhatACutOffCommandLeftIsNamed(t *testing.T) {
	w := newWorld(t)
	w.put("log", "0")
	b := w.begin("t", "main", tool.Effect{Kind: tool.Exec, Target: "echo cut >> log; sleep 20"})
	w.put("log", "0 cut")
	w.restart()
	w.record("recovery", event.ToolCallCompleted{CallID: b.e.CallID, Tool: "some", TaskID: "t", IsError: true, OutcomeUnknown: true, Output: []byte("{}")})
	w.shell("t", func() { w.put("log", "0 cut more") })
	lines := w.undo("all").Describe("/undo all force")
	want := []string{"restored to what an interrupted command may have written: log", "/undo all force also undoes the interrupted command"}
	if !slices.Equal(lines, want) {
		t.Errorf("%q", lines)
	}
	w.wantTree(map[string]string{"log": `-rw-r--r-- "0 cut"`})
	if _, err := undo.Undo(w.ctx, w.keeper, w.history, w.asked([]string{"all"})); !errors.Is(err, undo.ErrNothingToUndo) || !strings.Contains(err.Error(), "force includes") {
		t.Errorf("asked again: %v", err)
	}
	w.undo("all", "force")
	w.wantTree(map[string]string{"log": `-rw-r--r-- "0"`})
}

// A file that the command and another program both changed stays, whatever the other did
// and whenever, and is named. What the command did alone is undone.
func TestWhatBothChangedStays(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("no system but Linux counts what is done to files")
	}
	write := func(w *world) { w.must(os.WriteFile(w.path("f"), []byte("ours"), 0o644)) }
	add := func(w *world) {
		f, err := os.OpenFile(w.path("f"), os.O_APPEND|os.O_WRONLY, 0)
		w.must(err)
		_, err = f.WriteString("theirs")
		w.must(errors.Join(err, f.Close()))
	}
	replace := func(w *world) {
		w.put("swap", "theirs")
		w.must(os.Rename(w.path("swap"), w.path("f")))
	}
	once := map[string]tool.Touch{"f": {Touched: true, Opened: 1}}
	for name, tc := range map[string]struct {
		touches map[string]tool.Touch
		do      []func(*world)
		both    bool
	}{
		"alone":             {once, []func(*world){write}, false},
		"appended after":    {once, []func(*world){write, add}, true},
		"appended before":   {once, []func(*world){add, write}, true},
		"replaced":          {once, []func(*world){write, replace}, true},
		"replaced before":   {map[string]tool.Touch{"f": {Touched: true, Moved: 1}, "swap": {Touched: true, Opened: 1, Moved: 1}}, []func(*world){replace, add}, true},
		"replaces":          {map[string]tool.Touch{"f": {Touched: true, Moved: 1}, "swap": {Touched: true, Opened: 1, Moved: 1}}, []func(*world){replace}, false},
		"removed":           {once, []func(*world){write, func(w *world) { w.remove("f") }}, true},
		"removes":           {map[string]tool.Touch{"f": {Touched: true, Opened: 1, Removed: 1}}, []func(*world){write, func(w *world) { w.remove("f") }}, false},
		"open elsewhere":    {once, []func(*world){write, func(w *world) { w.hold("f", "theirs") }}, true},
		"open here":         {map[string]tool.Touch{"f": {Touched: true, Opened: 2, StillOpen: true}}, []func(*world){write, func(w *world) { w.hold("f", "ours") }}, false},
		"its mode changed":  {once, []func(*world){write, func(w *world) { w.must(os.Chmod(w.path("f"), 0o700)) }}, true},
		"mode and content":  {map[string]tool.Touch{"f": {Touched: true, Opened: 1, StillOpen: true}}, []func(*world){write, func(w *world) { w.must(os.Chmod(w.path("f"), 0o700)) }}, false},
		"moved while open":  {map[string]tool.Touch{"t": {Touched: true, Opened: 1, Moved: 1}, "f": {Touched: true, Moved: 1}}, []func(*world){carry}, false},
		"added to the same": {map[string]tool.Touch{"t": {Touched: true, Opened: 1, Moved: 1}, "f": {Touched: true, Moved: 1}}, []func(*world){carry, add}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.o.RecordTouched = func() func() (func(string) tool.Touch, bool) {
				return func() (func(string) tool.Touch, bool) {
					return func(path string) tool.Touch { return tc.touches[filepath.Base(path)] }, true
				}
			}
			w.restart()
			w.put("f", "0")
			w.shell("t", func() {
				for _, do := range tc.do {
					do(w)
				}
			})
			for _, f := range w.held {
				w.must(f.Close())
			}
			after := w.tree()
			p := w.undo("all")
			if !tc.both {
				w.wantTree(map[string]string{"f": `-rw-r--r-- "0"`})
				return
			}
			w.wantTree(after)
			if why := whys(p)["f"]; why != "the command and another program both changed it" {
				t.Errorf("plan = %+v", p)
			}
			w.undo("all", "force")
			w.wantTree(map[string]string{"f": `-rw-r--r-- "0"`})
		})
	}
}

// A file that another program changes while coder reads it, right after the command, stays.
func TestWhatChangedWhileItWasReadStays(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("no system but Linux counts what is done to files")
	}
	for name, touch := range map[string]tool.Touch{
		"by the count": {Touched: true, Opened: 1, StillOpen: true},
		"by its time":  {Touched: true, Opened: 1000},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.o.RecordTouched = func() func() (func(string) tool.Touch, bool) {
				return func() (func(string) tool.Touch, bool) { return func(string) tool.Touch { return touch }, true }
			}
			command := false
			w.so.IsSecret = func(string) bool { // the file is about to be read
				if command {
					command = false
					f, err := os.OpenFile(w.path("f"), os.O_APPEND|os.O_WRONLY, 0)
					w.must(err)
					_, err = f.WriteString(" theirs")
					w.must(errors.Join(err, f.Close()))
				}
				return false
			}
			w.restart()
			w.put("f", "0")
			w.shell("t", func() {
				w.must(os.WriteFile(w.path("f"), []byte("ours"), 0o644))
				command = true
			})
			if p := w.undo("all"); whys(p)["f"] != "the command and another program both changed it" {
				t.Errorf("plan = %+v", p)
			}
			w.wantTree(map[string]string{"f": `-rw-r--r-- "ours theirs"`})
		})
	}
}

// hold writes to a file and leaves it open.
func (w *world) hold(name, text string) {
	f, err := os.OpenFile(w.path(name), os.O_APPEND|os.O_WRONLY, 0)
	w.must(err)
	_, err = f.WriteString(text)
	w.must(err)
	w.held = append(w.held, f)
}

// carry moves a file that it still writes.
func carry(w *world) {
	f, err := os.Create(w.path("t"))
	w.must(err)
	_, err = f.WriteString("a")
	w.must(errors.Join(err, os.Rename(w.path("t"), w.path("f"))))
	_, err = f.WriteString("b")
	w.must(errors.Join(err, f.Close()))
}

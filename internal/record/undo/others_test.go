package undo_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"coder/internal/record/undo"
	"coder/internal/tool"
)

// While a command runs another session, or a person at the end of it, changes
// files too. What the others say was theirs is left alone, and named.
func TestWhatOtherSessionsChangedMeanwhileIsLeftAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		claim func(from time.Time) []undo.Claim
		left  []string
	}{
		"nobody's": {claim: func(time.Time) []undo.Claim { return nil }},
		"one file": {
			claim: func(at time.Time) []undo.Claim {
				return []undo.Claim{{Path: "theirs", Session: "other", From: at, To: at}}
			},
			left: []string{"theirs"},
		},
		"more than it lists": {
			claim: func(at time.Time) []undo.Claim { return []undo.Claim{{Path: ".", Session: "other", From: at, To: at}} },
			left:  []string{"ours", "theirs"},
		},
		"before the command": {claim: func(at time.Time) []undo.Claim {
			return []undo.Claim{{Path: "theirs", Session: "other", From: at.Add(-time.Hour), To: at.Add(-time.Hour)}}
		}},
		"after the command": {claim: func(at time.Time) []undo.Claim {
			return []undo.Claim{{Path: "theirs", Session: "other", From: at.Add(time.Hour), To: at.Add(time.Hour)}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.put("ours", "o0")
			w.put("theirs", "t0")
			var at time.Time
			w.shell("t", func() {
				w.put("ours", "o1")
				w.put("theirs", "t1")
				at = time.Now()
			})
			c := w.asked([]string{"all"})
			c.Others = func(_ context.Context, from, to time.Time) ([]undo.Claim, error) {
				if from.After(at) || to.Before(at.Truncate(time.Millisecond)) {
					t.Errorf("asked for %v to %v, but it was at %v", from, to, at)
				}
				return tc.claim(at), nil
			}
			r := w.undoThis(c)
			var left []string
			for _, n := range r.Unchanged {
				left = append(left, n.Path)
				if !strings.Contains(n.Why, "other") {
					t.Errorf("%s: %s", n.Path, n.Why)
				}
			}
			slices.Sort(left)
			if !slices.Equal(left, tc.left) {
				t.Errorf("left %q, want %q", left, tc.left)
			}
			want := map[string]string{"ours": "o0", "theirs": "t0"}
			for _, name := range tc.left {
				want[name] = strings.ToLower(name[:1]) + "1"
			}
			for name, text := range want {
				if got := w.tree()[name]; !strings.Contains(got, text) {
					t.Errorf("%s is %q, want %q", name, got, text)
				}
			}
			if len(tc.left) > 0 {
				c.Force = true
				w.undoThis(c)
				if got := w.tree()["theirs"]; !strings.Contains(got, "t0") {
					t.Errorf("forced: %q", got)
				}
			}
		})
	}
}

// With and without all: a file that a call of the turn wrote, and another session while a
// command of the turn ran, is left alone, in the same words.
func TestWhatATurnAndAnotherSessionChanged(t *testing.T) {
	for _, how := range [][]string{nil, {"all"}} {
		w := newWorld(t)
		w.put("both", "0")
		w.edit("t", func() { w.put("both", "1") }, "both")
		var at time.Time
		w.shell("t", func() {
			w.put("both", "2")
			at = time.Now()
		})
		c := w.asked(how)
		c.Others = func(context.Context, time.Time, time.Time) ([]undo.Claim, error) {
			return []undo.Claim{{Path: "both", Session: "other", From: at, To: at}}, nil
		}
		r := w.undoThis(c)
		if want := []undo.Note{{Path: "both", Why: "the command or session other changed it", Force: undo.ForceOverwrite}}; !slices.Equal(r.Unchanged, want) {
			t.Errorf("%q: %+v", how, r)
		}
	}
}

// A plain undo that takes along what a later command of the turn wrote says so, also where
// another program changed the file before the command did.
func TestAPlainUndoNamesWhatCommandsWrote(t *testing.T) {
	w := newWorld(t)
	w.put("edited", "0")
	w.put("between", "0")
	w.put("tools", "0")
	w.edit("t", func() { w.put("edited", "1"); w.put("made", "1"); w.put("between", "1") }, "edited", "made", "between")
	w.put("between", "mine")
	w.shell("t", func() { w.put("edited", "2"); w.put("made", "2"); w.put("between", "2"); w.put("beside", "2") })
	w.edit("t", func() { w.put("between", "3"); w.put("tools", "3") }, "between", "tools")
	for _, how := range [][]string{{"dry"}, {"all", "dry"}, {"force", "dry"}, nil} {
		p := w.undo(how...)
		want := []string{"between", "edited", "made"}
		if slices.Contains(how, "all") {
			want = nil
		}
		slices.Sort(p.Shared)
		if !slices.Equal(p.Shared, want) {
			t.Errorf("%q: %+v", how, p)
		}
		var forced []undo.Note
		if slices.Contains(how, "force") {
			forced = []undo.Note{{Path: "between", Why: "someone else changed it between two calls of the turn"}}
		}
		if !slices.Equal(p.Forced, forced) {
			t.Errorf("%q: forced %+v", how, p.Forced)
		}
	}
	w.wantTree(map[string]string{
		"edited": `-rw-r--r-- "0"`, "between": `-rw-r--r-- "mine"`, "tools": `-rw-r--r-- "0"`, "beside": `-rw-r--r-- "2"`,
	})
}

// The words for force say what it would do to each file, and whose change each file is.
func TestWhatForceWouldDoIsSaid(t *testing.T) {
	w := newWorld(t)
	w.watching(true, "appended", "new", "gone")
	w.put("appended", "0")
	w.put("gone", "0")
	w.shell("t", func() { w.put("appended", "01"); w.put("new", "1"); w.remove("gone"); w.put("ours", "1") })
	w.shell("t", func() { w.put("after", "1") })
	w.put("after", "mine")
	lines := w.undo("all", "dry").Describe("F")
	for _, want := range []string{"F overwrites: appended", "F removes: new, after", "F restores: gone"} {
		if !slices.Contains(lines, want) {
			t.Errorf("no line %q in %q", want, lines)
		}
	}
	const theirs = "another program changed it while the command ran"
	p := w.undo("all", "force")
	want := map[string]string{"appended": theirs, "new": theirs, "gone": theirs, "after": "changed since then"}
	for _, n := range p.Forced {
		if want[n.Path] != n.Why {
			t.Errorf("%+v", n)
		}
		delete(want, n.Path)
	}
	if len(want) > 0 {
		t.Errorf("not named: %v in %+v", want, p)
	}
}

// What cannot be kept is said, with a name, before the command runs.
func TestWhatCannotBeKeptIsSaidBefore(t *testing.T) {
	for name, limit := range map[string]func(*undo.Options){
		"too many":        func(o *undo.Options) { o.TreeFiles = 2 },
		"too much":        func(o *undo.Options) { o.TreeBytes = 5 },
		"one is too much": func(o *undo.Options) { o.MaxFile = 5 },
	} {
		w := newWorld(t)
		limit(&w.o)
		w.restart()
		w.put("a", "1")
		w.put("b", "2")
		w.put("large", "large content")
		w.begin("t", "main", tool.Effect{Kind: tool.Exec, Target: "some command"})
		if len(w.warned) != 1 || !strings.Contains(w.warned[0], "large") {
			t.Errorf("%s: %q", name, w.warned)
		}
	}
}

package past_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"coder/internal/core/event"
	"coder/internal/record/past"
)

// trees are the states of all files that were kept, by name.
type trees map[string][]event.FileState

func (k trees) Files(_ context.Context, tree string) ([]event.FileState, error) {
	list, ok := k[tree]
	if !ok {
		return nil, errors.New("not saved")
	}
	return list, nil
}

func (k trees) Content(_ context.Context, s event.FileState, _ int64) ([]byte, error) {
	return []byte(s.Hash), nil
}

func (k trees) Expand(_ context.Context, c event.FileChange) ([]event.FileChange, error) {
	switch {
	case !strings.HasPrefix(c.Before.Hash, "tree:"):
		return []event.FileChange{c}, nil
	case c.Before.Hash != "tree:1":
		return nil, errors.New("not saved")
	}
	return []event.FileChange{{Before: file("wide", ""), After: file("wide", "w")}}, nil
}

func file(name, hash string) event.FileState { return event.FileState{Path: name, Hash: hash} }

func pendingCall(id string, tree string, before ...event.FileState) event.Event {
	return event.ToolCallRequested{CallID: id, Tool: "edit", Verdict: event.VerdictAllowed, Tree: tree, Before: before}
}

func done(id string, changes ...event.FileChange) event.Event {
	return event.ToolCallCompleted{CallID: id, Tool: "edit", Changes: changes}
}

func changed(name, from, to string) event.FileChange {
	return event.FileChange{Before: file(name, from), After: file(name, to)}
}

func numbered(events []event.Event) (records []event.Record) {
	for i, e := range events {
		r := event.Record{Seq: uint64(i + 1), Event: e}
		if e, ok := e.(event.ToolCallCompleted); ok && e.OutcomeUnknown {
			r.Actor = event.ActorRecovery
		}
		records = append(records, r)
	}
	return records
}

// What a file was at a record is read from the calls around it, whoever else had a
// hand in it.
func TestTheWorldOfARecord(t *testing.T) {
	for _, doubt := range []event.Doubt{event.DoubtOther, event.DoubtBoth} {
		t.Run(string(doubt), func(t *testing.T) { testWorld(t, doubt) })
	}
}

func testWorld(t *testing.T, doubt event.Doubt) {
	kept := trees{"t1": {file("a", "0"), file("quiet", "q"), file("b", "1")}}
	byOther := changed("o", "x", "y")
	byOther.Doubt = doubt
	events := []event.Event{
		pendingCall("1", "", file("a", "")), done("1", changed("a", "", "0")), // 1, 2
		pendingCall("2", "", file("b", "")), done("2", changed("b", "", "1")), // 3, 4
		pendingCall("3", "t1"), done("3", changed("a", "0", "2"), byOther), // 5, 6
		pendingCall("4", "", file("b", "theirs")), done("4", changed("b", "theirs", "3")), // 7, 8
		pendingCall("5", "", file("cut", "c")), event.ToolCallCompleted{CallID: "5", OutcomeUnknown: true}, // 9, 10
		pendingCall("6", ""), done("6", event.FileChange{Before: file(".", "tree:1"), After: file(".", "tree:2")}), // 11, 12
	}
	for _, tt := range []struct {
		at     uint64
		file   string
		was    string
		known  string // "-" if no call changed it later
		others bool
	}{
		{1, "a", "", "2", false}, {2, "a", "0", "2", false}, {5, "a", "0", "2", false}, {6, "a", "2", "-", false},
		{2, "b", "", "1", true}, {4, "b", "theirs", "3", false}, {7, "b", "theirs", "3", false}, {8, "b", "3", "-", false},
		{4, "quiet", "q", "-", false}, {12, "quiet", "q", "-", false},
		{5, "o", "x", "x", true}, {6, "o", "y", "-", false},
		{8, "cut", "c", "c", false}, {9, "cut", "c", "c", false},
		{10, "wide", "", "w", false}, {12, "wide", "w", "-", false},
	} {
		t.Run(fmt.Sprintf("%s at %d", tt.file, tt.at), func(t *testing.T) {
			w, err := past.ReadMoment(t.Context(), read(numbered(events)), tt.at, kept)
			if err != nil || !w.IsComplete {
				t.Fatalf("%+v, %v", w, err)
			}
			if got := w.Files[tt.file].Hash; got != tt.was {
				t.Errorf("it was %q, want %q", got, tt.was)
			}
			known, others := "-", false
			for _, l := range w.Later {
				if l.Recorded.Path == tt.file {
					known, others = l.Current.Hash, l.ChangedByOthers
				}
			}
			if known != tt.known || others != tt.others {
				t.Errorf("known as %q, others %v, want %q, %v", known, others, tt.known, tt.others)
			}
		})
	}
	for at, tool := range map[uint64]string{2: "", 3: "edit", 9: "edit", 10: ""} {
		if w, err := past.ReadMoment(t.Context(), read(numbered(events)), at, kept); err != nil || w.ActiveTool != tool {
			t.Errorf("at %d within %q, %v, want %q", at, w.ActiveTool, err, tool)
		}
	}
	if w, _ := past.ReadMoment(t.Context(), read(numbered(events)), 10, kept); len(w.Uncertain) != 1 || w.Uncertain[0] != "cut" {
		t.Errorf("unsure of %q", w.Uncertain)
	}
}

// What cannot be told is an error, and no guess.
func TestNoWorldIsGuessed(t *testing.T) {
	beyond := (*past.RangeError)(nil)
	if _, err := past.ReadMoment(t.Context(), read(numbered([]event.Event{pendingCall("1", "")})), 2, trees{}); !errors.As(err, &beyond) || beyond.Records != 1 {
		t.Errorf("beyond the end: %v", err)
	}
	for name, events := range map[string][]event.Event{
		"a tree that was not kept":   {pendingCall("1", "gone"), done("1")},
		"a change that was not kept": {pendingCall("1", ""), done("1", event.FileChange{Before: file(".", "tree:9"), After: file(".", "tree:8")})},
	} {
		if w, err := past.ReadMoment(t.Context(), read(numbered(events)), 1, trees{}); err == nil {
			t.Errorf("%s: %+v", name, w)
		}
	}
}

func read(records []event.Record) iter.Seq2[event.Record, error] {
	return func(yield func(event.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

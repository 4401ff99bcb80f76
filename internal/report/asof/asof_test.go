package asof_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/host/patch"
	"coder/internal/host/workspace"
	"coder/internal/record/undo"
	"coder/internal/report/asof"
	"coder/internal/tool"
)

func read(records []event.Record) iter.Seq2[event.Record, error] {
	return func(yield func(event.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// Sixty random calls on a few files: at every record each file has what the last
// call until then left in it, and what is different between two records is what
// was.
func TestFilesAsOfEveryRecord(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	ws, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	store := undo.OpenStore(filepath.Join(t.TempDir(), "undo"), undo.StoreOptions{NoSync: true})
	defer store.Close()
	keeper := undo.New(ws, store, undo.Options{Now: time.Now})
	random := rand.New(rand.NewPCG(1, 2))
	var records []event.Record
	put := func(e event.Event) {
		records = append(records, event.Record{Seq: uint64(len(records) + 1), Session: "s", Event: e})
	}
	was := []map[string]string{{}} // the files after each record
	now := make(map[string]string)
	remember := func() {
		copied := make(map[string]string)
		for k, v := range now {
			copied[k] = v
		}
		was = append(was, copied)
	}
	for i := range 60 {
		name := fmt.Sprintf("f%d.txt", random.IntN(4))
		kept, err := keeper.SaveOriginals(ctx, []tool.Effect{{Kind: tool.Write, Target: name}})
		if err != nil {
			t.Fatal(err)
		}
		put(event.ToolCallRequested{CallID: "c", Tool: "edit", Before: kept.Before})
		remember()
		old, there := now[name]
		output := json.RawMessage("{}")
		if there && random.IntN(5) == 0 {
			delete(now, name)
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		} else {
			now[name] = old + fmt.Sprintf("line %d\n", i)
			if err := os.WriteFile(filepath.Join(dir, name), []byte(now[name]), 0o644); err != nil {
				t.Fatal(err)
			}
			before := []byte(old)
			if !there {
				before = nil
			}
			diff, _, _ := patch.Unified(name, before, []byte(now[name]))
			output, _ = json.Marshal(map[string]string{"diff": diff})
		}
		changes, err := keeper.ChangesSince(ctx, kept)
		if err != nil {
			t.Fatal(err)
		}
		put(event.ToolCallCompleted{CallID: "c", Tool: "edit", Output: output, Changes: changes})
		remember()
	}
	var states []asof.State
	for seq := range uint64(len(records) + 1) {
		s, err := asof.Fold(ctx, read(records[:seq]), keeper)
		if err != nil {
			t.Fatal(err)
		}
		states = append(states, s)
		for _, f := range s.Files {
			text, err := f.Content(ctx, keeper)
			want, there := was[seq][f.Path]
			if err != nil || string(text) != want || there != (text != nil) {
				t.Fatalf("record %d: %s holds %q, %v, want %q", seq, f.Path, text, err, want)
			}
		}
		if len(s.Files) < len(was[seq]) {
			t.Fatalf("record %d: %d files, want %d", seq, len(s.Files), len(was[seq]))
		}
	}
	for range 200 {
		b := random.IntN(len(states))
		a := random.IntN(b + 1)
		got := make(map[string]string)
		for k, v := range was[a] {
			got[k] = v
		}
		for _, d := range asof.Compare(ctx, states[a], states[b], keeper) {
			if d.Err != nil || string(d.Old) != was[a][d.Path] {
				t.Fatalf("%d..%d: %s was %q, %v, want %q", a, b, d.Path, d.Old, d.Err, was[a][d.Path])
			}
			if got[d.Path] = string(d.New); d.New == nil {
				delete(got, d.Path)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(was[b]) {
			t.Fatalf("%d..%d: %v, want %v", a, b, got, was[b])
		}
	}
}

// A question is open until it is answered, or its task ends.
func TestOpenQuestions(t *testing.T) {
	ask := func(id, task string) event.Event {
		return event.InteractionRequested{Request: uip.Request{ID: id, TaskID: task}}
	}
	events := []event.Event{
		event.ModeChanged{Mode: "plan"}, ask("a", "t"), event.InteractionResponded{Response: uip.Response{ID: "a"}},
		ask("b", "t"), event.TaskFailed{TaskID: "t"}, event.ModeChanged{Mode: "build"},
	}
	var records []event.Record
	for i, e := range events {
		records = append(records, event.Record{Seq: uint64(i + 1), Event: e})
	}
	for at, want := range []int{0, 0, 1, 0, 1, 0, 0} {
		mode := "plan"
		if at == 0 || at > 5 {
			mode = "build"
		}
		s, err := asof.Fold(context.Background(), asof.Until(read(records), uint64(at)), nil)
		if err != nil || len(s.Open) != want || s.Mode != mode {
			t.Errorf("as of %d: %+v, %v", at, s, err)
		}
	}
}

// TestTheEndOfATaskClosesItsOwnQuestions, however the task ends.
func TestTheEndOfATaskClosesItsOwnQuestions(t *testing.T) {
	for _, end := range []event.Event{
		event.TaskCompleted{TaskID: "t"}, event.TaskFailed{TaskID: "t"}, event.TaskCanceled{TaskID: "t"},
	} {
		s, err := asof.Fold(t.Context(), read([]event.Record{
			{Seq: 1, Event: event.InteractionRequested{Request: uip.Request{ID: "a", TaskID: "t"}}},
			{Seq: 2, Event: event.InteractionRequested{Request: uip.Request{ID: "b", TaskID: "other"}}},
			{Seq: 3, Event: end},
		}), nil)
		if err != nil || len(s.Open) != 1 || s.Open[0].ID != "b" {
			t.Errorf("%T: %+v, %v", end, s.Open, err)
		}
	}
}

// TestFoldersAreNoFiles: a folder that was made, removed or changed as a whole has no content.
func TestFoldersAreNoFiles(t *testing.T) {
	store := undo.OpenStore(t.TempDir(), undo.StoreOptions{NoSync: true})
	defer store.Close()
	ws, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	kept := undo.New(ws, store, undo.Options{Now: time.Now})
	state := func(hash string) event.FileState { return event.FileState{Path: "x", Hash: hash} }
	for _, tt := range []struct {
		before, after string
		files         int
	}{
		{"", "dir", 0}, {"dir", "", 0}, {"tree:1", "tree:2", 0}, {"", "h", 1}, {"h", "", 1},
	} {
		s, err := asof.Fold(t.Context(), read([]event.Record{
			{Seq: 1, Event: event.ToolCallRequested{CallID: "c", Tool: "bash"}},
			{Seq: 2, Event: event.ToolCallCompleted{CallID: "c", Tool: "bash",
				Changes: []event.FileChange{{Before: state(tt.before), After: state(tt.after)}}}},
		}), kept)
		if err != nil || len(s.Files) != tt.files {
			t.Errorf("%q to %q: %+v, %v", tt.before, tt.after, s.Files, err)
		}
	}
}

package toolrun_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"coder/internal/core/event"
	"coder/internal/tool"
)

// shelf is a Keeper over files in memory.
type shelf struct {
	files map[string]string
	full  bool
	asked []string
}

func (s *shelf) SaveOriginals(_ context.Context, effects []tool.Effect) (tool.Snapshot, error) {
	k := tool.Snapshot{Effects: effects}
	for _, e := range effects {
		s.asked = append(s.asked, e.Target)
		k.Before = append(k.Before, event.FileState{Path: e.Target, Hash: s.files[e.Target]})
	}
	if s.full {
		return tool.Snapshot{}, errors.New("no room")
	}
	return k, nil
}

func (s *shelf) ChangesSince(_ context.Context, k tool.Snapshot) ([]event.FileChange, error) {
	var cs []event.FileChange
	for _, b := range k.Before {
		if now := s.files[b.Path]; now != b.Hash {
			cs = append(cs, event.FileChange{Before: b, After: event.FileState{Path: b.Path, Hash: now}})
		}
	}
	return cs, nil
}

func keeperBench(t *testing.T, s *shelf) (b *bench, requested *event.ToolCallRequested, completed *event.ToolCallCompleted) {
	b = newBench(t)
	b.runner.Backup = s
	b.add("read", tool.Read, b.fine("read"))
	b.add("write", tool.Write, func(_ context.Context, x string, _ io.Writer) (tool.Result, error) {
		s.files[x] = "new"
		return tool.Result{Value: map[string]any{"ok": true}}, nil
	})
	requested, completed = new(event.ToolCallRequested), new(event.ToolCallCompleted)
	b.round.Sink = event.SinkFunc(func(ctx context.Context, r event.Record) error {
		switch e := r.Event.(type) {
		case event.ToolCallRequested:
			*requested = e
			if s.files["a"] == "new" {
				t.Error("the call ran before its request was recorded")
			}
		case event.ToolCallCompleted:
			*completed = e
		}
		return b.Emit(ctx, r)
	})
	return b, requested, completed
}

func TestWhatACallOverwritesIsKeptFirst(t *testing.T) {
	s := &shelf{files: map[string]string{"a": "old"}}
	b, requested, completed := keeperBench(t, s)
	if _, err := b.run(t.Context(), "write a"); err != nil {
		t.Fatal(err)
	}
	if len(requested.Before) != 1 || requested.Before[0].Hash != "old" {
		t.Errorf("the request says %+v", requested.Before)
	}
	if len(completed.Changes) != 1 || completed.Changes[0].After.Hash != "new" {
		t.Errorf("the completion says %+v", completed.Changes)
	}
}

func TestNothingRunsThatCannotBeBroughtBack(t *testing.T) {
	s := &shelf{files: map[string]string{"a": "old"}, full: true}
	b, _, _ := keeperBench(t, s)
	got, err := b.run(t.Context(), "write a")
	if err != nil || s.files["a"] != "old" || !strings.Contains(got, "save what write would overwrite: no room") {
		t.Errorf("%v, %q:\n%s", err, s.files["a"], got)
	}
}

func TestReadersAreNotKept(t *testing.T) {
	s := &shelf{files: map[string]string{}}
	b, _, _ := keeperBench(t, s)
	if _, err := b.run(t.Context(), "read a"); err != nil || len(s.asked) != 0 {
		t.Errorf("%v, asked about %v", err, s.asked)
	}
}

func TestWhatAFailedCallSpentIsOnRecord(t *testing.T) {
	b := newBench(t)
	b.add("ask", tool.Write, func(context.Context, string, io.Writer) (tool.Result, error) {
		return tool.Result{Events: []event.Event{event.Spent{Model: "m", Reason: event.UsageForMCPServer}, event.TodosChanged{}}}, errors.New("no")
	})
	var facts []event.Event
	b.round.Sink = event.SinkFunc(func(_ context.Context, r event.Record) error {
		switch r.Event.(type) {
		case event.Spent, event.TodosChanged:
			facts = append(facts, r.Event)
		}
		return nil
	})
	if _, err := b.run(t.Context(), "ask x"); err != nil || len(facts) != 1 || facts[0].(event.Spent).Model != "m" {
		t.Errorf("%v, %v", facts, err)
	}
}

func TestFactsAreRecordedOfCallsThatSucceed(t *testing.T) {
	for _, fails := range []bool{false, true} {
		b := newBench(t)
		b.add("todo", tool.Write, func(context.Context, string, io.Writer) (tool.Result, error) {
			res := tool.Result{Value: map[string]any{"ok": true}, Events: []event.Event{event.TodosChanged{}}}
			if fails {
				return res, errors.New("no")
			}
			return res, nil
		})
		var facts int
		b.round.Sink = event.SinkFunc(func(_ context.Context, r event.Record) error {
			if _, ok := r.Event.(event.TodosChanged); ok && r.Task == "t" {
				facts++
			}
			return nil
		})
		if _, err := b.run(t.Context(), "todo x"); err != nil || (facts == 1) == fails {
			t.Errorf("fails=%v: %v, %d facts", fails, err, facts)
		}
	}
}

func TestWhatAnInterruptedCallHadToSayIsKept(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := newBench(t)
	b.add("bash", tool.Exec, func(ctx context.Context, _ string, _ io.Writer) (tool.Result, error) {
		cancel()
		return tool.Result{Value: map[string]any{"ok": true, "stdout": "half way"}}, ctx.Err()
	})
	got, err := b.run(ctx, "bash x")
	if err != context.Canceled || !strings.Contains(got, "half way") || !strings.Contains(got, `"cancelled":true`) || !strings.Contains(got, `"ok":false`) {
		t.Errorf("%v:\n%s", err, got)
	}
}

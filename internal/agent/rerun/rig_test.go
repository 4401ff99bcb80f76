package rerun

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/record/past"
	"coder/internal/record/store/mem"
)

// began is when the sessions of these tests began.
var began = time.Date(2026, 11, 19, 8, 0, 0, 0, time.UTC)

// numbered are records in order, a second apart.
func numbered(rs ...event.Record) []event.Record {
	for i := range rs {
		rs[i].Seq, rs[i].Session, rs[i].Time = uint64(i+1), "s", began.Add(time.Duration(i)*time.Second)
	}
	return rs
}

// of is a record of a task by an actor: "" is the agent's.
func of(task, actor string, e event.Event) event.Record {
	return event.Record{Task: task, Actor: actor, Event: e}
}

func created(task string) event.Record {
	return of(task, event.ActorUser, event.TaskCreated{TaskID: task, Intent: "go"})
}

func said(task, text string) event.Record {
	return of(task, event.ActorUser, event.MessageAdded{Message: chat.TextMessage(chat.User, text)})
}

func replied(task, text string, calls ...chat.Part) event.Record {
	return of(task, "", event.MessageAdded{Message: chat.Message{Role: chat.Assistant, Parts: append([]chat.Part{chat.Text(text)}, calls...)}, Model: "m"})
}

func requested(task, id, tool, input string) event.Record {
	return of(task, "", event.ToolCallRequested{CallID: id, Tool: tool, Input: []byte(input), Verdict: event.VerdictAllowed, DecidedBy: event.ActorPolicy})
}

func completed(task, id, tool, output string) event.Record {
	return of(task, "", event.ToolCallCompleted{CallID: id, Tool: tool, Output: []byte(output)})
}

// keeper has contents by hash, and what stands for many.
type keeper struct {
	contents map[string]string
	many     map[string][]event.FileChange
	trees    map[string][]event.FileState
}

func (k keeper) Content(_ context.Context, s event.FileState, limit int64) ([]byte, error) {
	if text, ok := k.contents[s.Hash]; ok && s.Size <= limit {
		return []byte(text), nil
	}
	return nil, errors.New("not kept")
}

func (k keeper) Expand(_ context.Context, c event.FileChange) ([]event.FileChange, error) {
	if list, ok := k.many[c.Before.Hash]; ok {
		return list, nil
	}
	if len(c.Before.Hash) > 5 && c.Before.Hash[:5] == "tree:" {
		return nil, errors.New("not kept")
	}
	return []event.FileChange{c}, nil
}

func (k keeper) Files(_ context.Context, tree string) ([]event.FileState, error) {
	if list, ok := k.trees[tree]; ok {
		return list, nil
	}
	return nil, errors.New("not kept")
}

// file is a file with a content that the keeper has by its first letters.
func file(name, hash string) event.FileState {
	return event.FileState{Path: name, Hash: hash, Mode: 0o644}
}

// nowhere is a copy without files.
var nowhere = &past.Copy{FileHistory: past.NewFileHistory(nil, nil)}

// rig is a rerun that is made by hand, record by record.
type rig struct {
	*Replayer
	t     *testing.T
	store event.Store
	dir   string
	last  uint64
	ended bool // the turn under way was interrupted
}

// follow begins a rerun of a take in a copy of these files.
func follow(t *testing.T, take *Recording, kept keeper, later map[uint64][]event.FileState, start ...event.FileState) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir()}
	copy, err := past.NewFileHistory(start, later).Materialize(t.Context(), r.dir, kept)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = copy.Close() })
	side := Side{Contents: kept}
	r.Replayer = NewReplayer(take, side, side, copy, 0)
	r.Replayer.cancel = func() { r.ended = true }
	records := &mem.Store{}
	if _, err := records.Claim(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	r.store = r.Store(records)
	return r
}

// make makes records, up to the first that is refused.
func (r *rig) make(rs ...event.Record) error {
	r.t.Helper()
	for _, one := range rs {
		one.Session, one.Seq = "s", r.last+1
		if err := r.store.Append(r.t.Context(), r.last, one); err != nil {
			return err
		}
		r.last++
	}
	return nil
}

// holds is what a file of the copy holds, "" if there is none.
func (r *rig) holds(name string) string {
	text, _ := os.ReadFile(r.dir + "/" + name)
	return string(text)
}

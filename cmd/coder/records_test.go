package main

import (
	"context"
	"fmt"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/task"
	"coder/internal/record/store/jsonl"
)

// readSession reads all records of session in the workspace ws, holding them
// against the promise that their numbers have no gaps.
func readSession(ws, session string) ([]event.Record, error) {
	store := jsonl.Open(ws+"/.coder/log", jsonl.Options{})
	var all []event.Record
	for r, err := range store.Read(context.Background(), session, 0) {
		if err != nil {
			return nil, err
		}
		if r.Seq != uint64(len(all)+1) {
			return nil, fmt.Errorf("record %d follows record %d", r.Seq, len(all))
		}
		all = append(all, r)
	}
	return all, nil
}

// wellFormed is wellFormedSession of session "s1".
func wellFormed(ws string) error { return wellFormedSession(ws, "s1") }

// wellFormedSession holds the logs of a session in the workspace ws against what
// they promise once no process is at work: every task has its one end, every
// request its completion, every call its result.
func wellFormedSession(ws, session string) error {
	rs, err := readSession(ws, session)
	if err != nil {
		return err
	}
	var (
		tasks task.Tasks
		audit = map[string]int{}
		calls = map[string]int{}
	)
	for _, r := range rs {
		if err := tasks.Add(r); err != nil {
			return fmt.Errorf("record %d: %w", r.Seq, err)
		}
		switch e := r.Event.(type) {
		case event.ToolCallRequested:
			audit[e.CallID]++
		case event.ToolCallCompleted:
			audit[e.CallID]--
		case event.MessageAdded:
			for _, c := range e.Message.Calls() {
				calls[c.ID]++
			}
			for res := range chat.PartsOf[chat.ToolResult](e.Message) {
				calls[res.CallID]--
			}
		}
	}
	for _, t := range tasks.All() {
		if !t.Status.IsEnded() {
			return fmt.Errorf("task %s is %s", t.ID, t.Status)
		}
	}
	for id, n := range audit {
		if n != 0 {
			return fmt.Errorf("call %s was requested %+d times more than completed", id, n)
		}
	}
	for id, n := range calls {
		if n != 0 {
			return fmt.Errorf("call %s was said %+d times more than answered", id, n)
		}
	}
	return nil
}

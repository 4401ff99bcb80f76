// Package task computes the state of a task from its events: a pure fold that enforces the legal order
// of events.
//
//	created → started → (asked → answered)* → completed | failed | canceled
package task

import (
	"fmt"

	"coder/internal/core/event"
	"coder/internal/core/uip"
)

// Status is the state of a task.
type Status string

// The statuses of a task. The zero Status belongs to no task.
const (
	Open         Status = "open"
	InProgress   Status = "in_progress"
	AwaitingUser Status = "awaiting_user"
	Done         Status = "done"
	Failed       Status = "failed"
	Canceled     Status = "canceled"
)

// Ended reports whether no more events can follow.
func (s Status) Ended() bool { return s == Done || s == Failed || s == Canceled }

// Task is the state of one task after some event.
type Task struct {
	ID, Parent, Title, Intent string
	Status                    Status
	Reason                    string       // why it failed or was canceled
	Pending                   *uip.Request // the open question
}

// Apply returns t after e, or an error if e cannot follow. Events that do not concern tasks leave t
// unchanged.
func (t Task) Apply(e event.Event) (Task, error) {
	switch e := e.(type) {
	case event.TaskCreated:
		if t.Status != "" {
			return t, t.cannot("be created")
		}
		return Task{ID: e.TaskID, Parent: e.ParentID, Title: e.Title, Intent: e.Intent, Status: Open}, nil
	case event.TaskStarted:
		if e.Run != nil && (t.Status == InProgress || t.Status == AwaitingUser) {
			return t, nil // another process continued it
		}
		return t.move("start", InProgress, "", Open)
	case event.InteractionRequested:
		next, err := t.move("ask", AwaitingUser, "", InProgress)
		if err == nil {
			next.Pending = &e.Request
		}
		return next, err
	case event.InteractionResponded:
		if t.Pending == nil || t.Pending.ID != e.ID {
			return t, fmt.Errorf("task %s: no open interaction %s", t.ID, e.ID)
		}
		next, err := t.move("be answered", InProgress, "", AwaitingUser)
		next.Pending = nil
		return next, err
	case event.TaskCompleted:
		return t.move("complete", Done, "", InProgress)
	case event.TaskFailed:
		return t.move("fail", Failed, e.Reason, Open, InProgress, AwaitingUser)
	case event.TaskCanceled:
		return t.move("be canceled", Canceled, e.Reason, Open, InProgress, AwaitingUser)
	}
	return t, nil
}

func (t Task) move(act string, to Status, reason string, from ...Status) (Task, error) {
	for _, s := range from {
		if t.Status == s {
			t.Status, t.Reason = to, reason
			if to.Ended() {
				t.Pending = nil
			}
			return t, nil
		}
	}
	return t, t.cannot(act)
}

func (t Task) cannot(act string) error {
	if t.Status == "" {
		return fmt.Errorf("a task that was never created cannot %s", act)
	}
	return fmt.Errorf("task %s is %s and cannot %s", t.ID, t.Status, act)
}

// Tasks computes a session's tasks from its records, in order of creation.
type Tasks struct {
	order []string
	byID  map[string]Task
}

// Add applies one record. A record that cannot follow is an error and changes nothing.
func (ts *Tasks) Add(r event.Record) error {
	if event.LogOf(r.Event) != event.Domain {
		return nil
	}
	t, known := ts.byID[r.Task]
	next, err := t.Apply(r.Event)
	if err != nil {
		return fmt.Errorf("record %d: %w", r.Seq, err)
	}
	if next.Status == "" {
		return nil // another version's event about an unknown task
	}
	if ts.byID == nil {
		ts.byID = make(map[string]Task)
	}
	if !known {
		ts.order = append(ts.order, r.Task)
	}
	ts.byID[r.Task] = next
	return nil
}

// All returns the tasks in order of creation.
func (ts *Tasks) All() []Task {
	all := make([]Task, 0, len(ts.order))
	for _, id := range ts.order {
		all = append(all, ts.byID[id])
	}
	return all
}

// Get returns the task with this id, or the zero Task.
func (ts *Tasks) Get(id string) Task { return ts.byID[id] }

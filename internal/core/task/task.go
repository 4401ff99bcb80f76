// Package task computes the state of a task from its events: a pure fold that enforces the legal order
// of events.
//
//	created → started → (asked → answered)* → completed | failed | canceled
package task

import (
	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/core/uip"
)

// Status is the state of a task.
type Status string

// The statuses of a task. The zero Status belongs to no task.
const (
	StatusOpen         Status = "open"
	StatusInProgress   Status = "in_progress"
	StatusAwaitingUser Status = "awaiting_user"
	StatusDone         Status = "done"
	StatusFailed       Status = "failed"
	StatusCanceled     Status = "canceled"
)

// IsEnded reports whether no more events can follow.
func (s Status) IsEnded() bool { return s == StatusDone || s == StatusFailed || s == StatusCanceled }

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
			return t, t.transitionError("be created")
		}
		return Task{ID: e.TaskID, Parent: e.ParentID, Title: e.Title, Intent: e.Intent, Status: StatusOpen}, nil
	case event.TaskStarted:
		if e.Run != nil && (t.Status == StatusInProgress || t.Status == StatusAwaitingUser) {
			return t, nil // another process continued it
		}
		return t.transition("start", StatusInProgress, "", StatusOpen)
	case event.InteractionRequested:
		next, err := t.transition("ask", StatusAwaitingUser, "", StatusInProgress)
		if err == nil {
			next.Pending = &e.Request
		}
		return next, err
	case event.InteractionResponded:
		if t.Pending == nil || t.Pending.ID != e.ID {
			return t, message.Errorf("task %s: no open interaction %s", t.ID, e.ID)
		}
		next, err := t.transition("be answered", StatusInProgress, "", StatusAwaitingUser)
		next.Pending = nil
		return next, err
	case event.TaskCompleted:
		return t.transition("complete", StatusDone, "", StatusInProgress)
	case event.TaskFailed:
		return t.transition("fail", StatusFailed, e.Reason, StatusOpen, StatusInProgress, StatusAwaitingUser)
	case event.TaskCanceled:
		return t.transition("be canceled", StatusCanceled, e.Reason, StatusOpen, StatusInProgress, StatusAwaitingUser)
	}
	return t, nil
}

func (t Task) transition(act string, to Status, reason string, from ...Status) (Task, error) {
	for _, s := range from {
		if t.Status == s {
			t.Status, t.Reason = to, reason
			if to.IsEnded() {
				t.Pending = nil
			}
			return t, nil
		}
	}
	return t, t.transitionError(act)
}

func (t Task) transitionError(act string) error {
	if t.Status == "" {
		return message.Errorf("a task that was never created cannot %s", act)
	}
	return message.Errorf("task %s is %s and cannot %s", t.ID, t.Status, act)
}

// Tasks computes a session's tasks from its records, in order of creation.
type Tasks struct {
	order []string
	byID  map[string]Task
}

// Add applies one record. A record that cannot follow is an error and changes nothing.
func (ts *Tasks) Add(r event.Record) error {
	if event.LogOf(r.Event) != event.LogDomain {
		return nil
	}
	t, known := ts.byID[r.Task]
	next, err := t.Apply(r.Event)
	if err != nil {
		return message.Errorf("record %d: %w", r.Seq, err)
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

package supervisor

import (
	"sync"

	"coder/internal/core/event"
	"coder/internal/core/uip"
)

// questions are those that are open, by task. A task has one at most.
type questions struct {
	mu   sync.Mutex // guards open
	open map[string]uip.Request
}

// note takes in one record.
func (q *questions) note(r event.Record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch e := r.Event.(type) {
	case event.InteractionRequested:
		put(&q.open, r.Task, e.Request)
	case event.InteractionResponded, event.TaskCompleted, event.TaskFailed, event.TaskCanceled:
		delete(q.open, r.Task)
	}
}

// passed is the open question that r leaves behind: its task asks another, or is
// done. The call it was about needed no answer any more, or was given up by a
// process that was killed before it could say so.
func (q *questions) passed(r event.Record) (uip.Request, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	asked, ok := q.open[r.Task]
	switch e := r.Event.(type) {
	case event.InteractionRequested:
		return asked, ok && e.ID != asked.ID
	case event.TaskCompleted:
		return asked, ok
	}
	return asked, false
}

// has reports whether a question is open.
func (q *questions) has(id string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, asked := range q.open {
		if asked.ID == id {
			return true
		}
	}
	return false
}

// withdrawal closes a question that nobody is to answer any more.
func withdrawal(q uip.Request, task, why string) event.Record {
	return event.Record{Task: task, Actor: event.ActorRecovery, Event: event.InteractionResponded{Response: uip.Response{
		ID: q.ID, TaskID: task, Author: event.ActorRecovery, Dismissed: true, Comment: why,
	}}}
}

// withdrawn reports whether a response is no answer but such an end.
func withdrawn(a uip.Response) bool { return a.Dismissed && a.Author == event.ActorRecovery }

package supervisor

import (
	"sync"

	"coder/internal/core/event"
	"coder/internal/core/uip"
)

// openQuestions are the open questions by task. A task has at most one.
type openQuestions struct {
	mu   sync.Mutex // guards open
	open map[string]uip.Request
}

// applyRecord applies one record.
func (q *openQuestions) applyRecord(r event.Record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch e := r.Event.(type) {
	case event.InteractionRequested:
		putIn(&q.open, r.Task, e.Request)
	case event.InteractionResponded, event.TaskCompleted, event.TaskFailed, event.TaskCanceled:
		delete(q.open, r.Task)
	}
}

// obsoleteQuestion returns the open question that r makes obsolete: its task asks another question, or
// is complete. Its call no longer needed an answer, or a killed process could not withdraw it.
func (q *openQuestions) obsoleteQuestion(r event.Record) (uip.Request, bool) {
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
func (q *openQuestions) has(id string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, asked := range q.open {
		if asked.ID == id {
			return true
		}
	}
	return false
}

// newWithdrawal returns the record that closes a question without an answer.
func newWithdrawal(q uip.Request, task, why string) event.Record {
	return event.Record{Task: task, Actor: event.ActorRecovery, Event: event.InteractionResponded{Response: uip.Response{
		ID: q.ID, TaskID: task, Author: event.ActorRecovery, Dismissed: true, Comment: why,
	}}}
}

// isWithdrawal reports whether a response is such a withdrawal instead of an answer.
func isWithdrawal(a uip.Response) bool { return a.Dismissed && a.Author == event.ActorRecovery }

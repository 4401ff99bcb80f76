package supervisor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"coder/internal/agent/toolrun"
	"coder/internal/core/chat"
	"coder/internal/core/event"
)

// requests are the calls that an earlier process began and left without an end on
// record, of any task and by anybody: the model, a hook, a check, another agent.
type requests struct {
	mu   sync.Mutex // guards left
	left map[string]event.Record
}

// recall takes in one record of an earlier process.
func (q *requests) recall(r event.Record) {
	q.note(r)
	if e, ok := r.Event.(event.ToolCallRequested); ok {
		put(&q.left, e.CallID, r)
	}
}

// note takes in one record of this process: an end, or a call that is run again.
func (q *requests) note(r event.Record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch e := r.Event.(type) {
	case event.ToolCallRequested:
		delete(q.left, e.CallID)
	case event.ToolCallCompleted:
		delete(q.left, e.CallID)
	}
}

// all are the requests, the oldest first.
func (q *requests) all() []event.Record {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.SortedFunc(maps.Values(q.left), func(a, b event.Record) int { return cmp.Compare(a.Seq, b.Seq) })
}

// endRequests puts an end on record for every call that an earlier process began
// and nobody else will end. Whether it was done is unknown.
func (s *Session) endRequests(ctx context.Context, others func(event.ToolCallRequested) bool, sink event.Sink) error {
	for _, r := range s.requests.all() {
		req := r.Event.(event.ToolCallRequested)
		if others(req) {
			continue
		}
		res := toolrun.Failed(chat.ToolCall{ID: req.CallID, Name: req.Tool}, errCutOff)
		err := sink.Emit(ctx, event.Record{Task: r.Task, Actor: event.ActorRecovery, Event: event.ToolCallCompleted{
			CallID: req.CallID, Tool: req.Tool, Author: req.Author, TaskID: req.TaskID,
			Output: []byte(res.Text), IsError: true, Unknown: true, Timestamp: s.sup.Now().UnixMilli(),
		}})
		if err != nil {
			return fmt.Errorf("settle %s, which was cut off: %w", req.Tool, err)
		}
	}
	return nil
}

// nobody ends no request.
func nobody(event.ToolCallRequested) bool { return false }

// settledLater reports whether the turn that goes on will end a request: it is the
// call of a conversation, or an undo.
func (s *Session) settledLater(taskID string) func(event.ToolCallRequested) bool {
	open := make(map[string]bool)
	for _, th := range s.threads(taskID) {
		for _, c := range th.conversation.Open() {
			open[c.ID] = true
		}
	}
	return func(req event.ToolCallRequested) bool { return open[req.CallID] || takesBack(req) }
}

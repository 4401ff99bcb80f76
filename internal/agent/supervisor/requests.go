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

// requests are the calls that an earlier process began and whose end is not
// recorded, from any task and any author: the model, a hook, a check, another agent.
type requests struct {
	mu   sync.Mutex // guards left
	left map[string]event.Record
}

// recall applies one record from an earlier process.
func (q *requests) recall(r event.Record) {
	q.note(r)
	if e, ok := r.Event.(event.ToolCallRequested); ok {
		put(&q.left, e.CallID, r)
	}
}

// note applies one record from this process: an end, or a call that runs again.
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

// all returns the requests, the oldest first.
func (q *requests) all() []event.Record {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.SortedFunc(maps.Values(q.left), func(a, b event.Record) int { return cmp.Compare(a.Seq, b.Seq) })
}

// endRequests records an end with an unknown outcome for every
// call that an earlier process began and nothing else will end.
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
			return fmt.Errorf("settle the interrupted %s: %w", req.Tool, err)
		}
	}
	return nil
}

// nobody reports false for every request.
func nobody(event.ToolCallRequested) bool { return false }

// settledLater returns a function that reports whether the continuing
// turn will end a request: a call in a conversation, or an undo.
func (s *Session) settledLater(taskID string) func(event.ToolCallRequested) bool {
	open := make(map[string]bool)
	for _, th := range s.threads(taskID) {
		for _, c := range th.conversation.Open() {
			open[c.ID] = true
		}
	}
	return func(req event.ToolCallRequested) bool { return open[req.CallID] || takesBack(req) }
}

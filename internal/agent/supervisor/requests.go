package supervisor

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"coder/internal/agent/toolrun"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/message"
)

// openRequests are the calls that an earlier process began and whose end is not
// recorded, from any task and any author: the model, a hook, a check, another agent.
type openRequests struct {
	mu   sync.Mutex // guards left
	open map[string]event.Record
}

// applyPast applies one record from an earlier process.
func (q *openRequests) applyPast(r event.Record) {
	q.applyRecord(r)
	if e, ok := r.Event.(event.ToolCallRequested); ok {
		putIn(&q.open, e.CallID, r)
	}
}

// applyRecord applies one record from this process: an end, or a call that runs again.
func (q *openRequests) applyRecord(r event.Record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch e := r.Event.(type) {
	case event.ToolCallRequested:
		delete(q.open, e.CallID)
	case event.ToolCallCompleted:
		delete(q.open, e.CallID)
	}
}

// list returns the requests, the oldest first.
func (q *openRequests) list() []event.Record {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.SortedFunc(maps.Values(q.open), func(a, b event.Record) int { return cmp.Compare(a.Seq, b.Seq) })
}

// endRequests records an end with an unknown outcome for every
// call that an earlier process began and nothing else will end.
func (s *Session) endRequests(ctx context.Context, others func(event.ToolCallRequested) bool, sink event.Sink) error {
	for _, r := range s.requests.list() {
		req := r.Event.(event.ToolCallRequested)
		if others(req) {
			continue
		}
		res := toolrun.FailedResult(chat.ToolCall{ID: req.CallID, Name: req.Tool}, errNotAwaited)
		err := sink.Emit(ctx, event.Record{Task: r.Task, Actor: event.ActorRecovery, Event: event.ToolCallCompleted{
			CallID: req.CallID, Tool: req.Tool, Author: req.Author, TaskID: req.TaskID,
			Output: []byte(res.Text), IsError: true, OutcomeUnknown: true, Timestamp: s.supervisor.Now().UnixMilli(),
		}})
		if err != nil {
			return message.Errorf("settle the interrupted %s: %w", req.Tool, err)
		}
	}
	return nil
}

// noRequest reports false for every request.
func noRequest(event.ToolCallRequested) bool { return false }

// endsWithTurn returns a function that reports whether the continuing
// turn will end a request: a call in a conversation, or an undo.
func (s *Session) endsWithTurn(taskID string) func(event.ToolCallRequested) bool {
	open := make(map[string]bool)
	for _, th := range s.unsettledThreads(taskID) {
		for _, c := range th.conversation.OpenCalls() {
			open[c.ID] = true
		}
	}
	return func(req event.ToolCallRequested) bool { return open[req.CallID] || isUndoRequest(req) }
}

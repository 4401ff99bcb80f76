package audit

import (
	"iter"
	"slices"
	"time"

	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/core/task"
)

// Call is one tool call in the log.
type Call struct {
	Seq       uint64 // of the request
	Time      time.Time
	Requested event.ToolCallRequested
	Completed *event.ToolCallCompleted // nil if the outcome is unknown
	Abandoned bool                     // without a completion, although its task ended later; see [IdleCalls]
}

// IsOpen reports whether the outcome of the call is unknown.
func (c Call) IsOpen() bool { return c.Completed == nil }

// Calls pairs requests with completions. The zero value is ready to use.
type Calls struct {
	calls []Call
	open  map[string]int // call id → index in calls
}

// PairCalls returns the calls in records.
func PairCalls(records iter.Seq2[event.Record, error]) ([]Call, error) {
	var cs Calls
	for r, err := range records {
		if err != nil {
			return cs.All(), err
		}
		if err := cs.Add(r); err != nil {
			return cs.All(), err
		}
	}
	return cs.All(), nil
}

// Add processes one record; records that do not concern calls are ignored. A completion without a
// request, or a second one for a call, is an error and is omitted. An id may be reused after its call
// was completed, since the model chooses the ids.
func (cs *Calls) Add(r event.Record) error {
	switch e := r.Event.(type) {
	case event.ToolCallRequested:
		if cs.open == nil {
			cs.open = make(map[string]int)
		}
		cs.open[e.CallID] = len(cs.calls)
		cs.calls = append(cs.calls, Call{Seq: r.Seq, Time: r.Time, Requested: e})
	case event.ToolCallCompleted:
		i, ok := cs.open[e.CallID]
		if !ok {
			return message.Errorf("record %d completes call %s, which is not open", r.Seq, e.CallID)
		}
		delete(cs.open, e.CallID)
		cs.calls[i].Completed = &e
	}
	return nil
}

// IdleCalls returns the calls in records that have no completion and no open question: unless a process has
// the session, nobody is working on them.
func IdleCalls(records iter.Seq2[event.Record, error]) (idle []Call, err error) {
	var cs Calls
	var tasks task.Tasks
	parents := make(map[string]string) // subtask → the call that started it
	ended := make(map[string]uint64)   // task → the record that ended it
	for r, err := range records {
		if err != nil {
			return nil, err
		}
		_ = tasks.Add(r) // invalid records are reported elsewhere
		if e, ok := r.Event.(event.TaskCreated); ok && e.CallID != "" {
			parents[r.Task] = e.CallID
		}
		if ended[r.Task] == 0 && tasks.Get(r.Task).Status.IsEnded() {
			ended[r.Task] = r.Seq
		}
		if err := cs.Add(r); err != nil {
			return nil, err
		}
	}
	waits := make(map[string]bool)
	for _, t := range tasks.All() {
		if t.Status == task.StatusAwaitingUser {
			waits[parents[t.ID]] = true
		}
	}
	for _, c := range cs.calls {
		if c.IsOpen() && !waits[c.Requested.CallID] {
			c.Abandoned = c.Seq < ended[c.Requested.TaskID] // an undo of the turn, or a hook at the end, comes later
			idle = append(idle, c)
		}
	}
	return idle, nil
}

// All returns the calls in the order of their requests.
func (cs *Calls) All() []Call { return slices.Clone(cs.calls) }

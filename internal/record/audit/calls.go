package audit

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"coder/internal/core/event"
	"coder/internal/core/task"
)

// Call is one tool call as the log tells it.
type Call struct {
	Seq       uint64 // of the request
	Time      time.Time
	Requested event.ToolCallRequested
	Completed *event.ToolCallCompleted // nil: what came of it is unknown
	Left      bool                     // it has no end, but its task ended later; see [Idle]
}

// Open reports whether nobody knows what came of the call.
func (c Call) Open() bool { return c.Completed == nil }

// Calls pairs requests with completions. The zero value is ready to use.
type Calls struct {
	calls []Call
	open  map[string]int // call id → place in calls
}

// Pair collects the calls among records.
func Pair(records iter.Seq2[event.Record, error]) ([]Call, error) {
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

// Add takes in one record; records that are not about calls change nothing. A
// completion that nobody requested, or the second of one call, is an error and
// is left out. Ids may come again once the call before has been completed,
// since it is the model that chooses them.
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
			return fmt.Errorf("record %d completes call %s, which is not open", r.Seq, e.CallID)
		}
		delete(cs.open, e.CallID)
		cs.calls[i].Completed = &e
	}
	return nil
}

// Idle are the calls among records that have no end, though no question that waits
// for an answer keeps them: nobody works on them, unless a process has the session.
func Idle(records iter.Seq2[event.Record, error]) (idle []Call, err error) {
	var cs Calls
	var tasks task.Tasks
	parents := make(map[string]string) // of calls that handed work on, by subtask
	ended := make(map[string]uint64)   // the records that ended tasks
	for r, err := range records {
		if err != nil {
			return nil, err
		}
		_ = tasks.Add(r) // a record that does not fit is told of elsewhere
		if e, ok := r.Event.(event.TaskCreated); ok && e.CallID != "" {
			parents[r.Task] = e.CallID
		}
		if ended[r.Task] == 0 && tasks.Get(r.Task).Status.Ended() {
			ended[r.Task] = r.Seq
		}
		if err := cs.Add(r); err != nil {
			return nil, err
		}
	}
	waits := make(map[string]bool)
	for _, t := range tasks.All() {
		if t.Status == task.AwaitingUser {
			waits[parents[t.ID]] = true
		}
	}
	for _, c := range cs.calls {
		if c.Open() && !waits[c.Requested.CallID] {
			c.Left = c.Seq < ended[c.Requested.TaskID] // an undo of the turn, or a hook at the close, comes later
			idle = append(idle, c)
		}
	}
	return idle, nil
}

// All lists the calls in the order they were requested.
func (cs *Calls) All() []Call { return slices.Clone(cs.calls) }

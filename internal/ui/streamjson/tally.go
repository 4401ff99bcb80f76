package streamjson

import (
	"encoding/json"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/event"
)

// Tally adds up a turn from its records. The zero Tally is an empty turn; it is not safe for concurrent
// use.
type Tally struct {
	// Replies counts the main agent's replies, including partial ones; the replies of subtasks count only in
	// the costs.
	Replies int
	Usage   chat.Usage
	Denials []Denial // denied calls, in order
	Stop    *string  // stop reason of the main agent's last reply, in the stream's words
	// APITime is the time spent on the model: for each reply the time since the message before it in its task,
	// for which the request waited. Waits between attempts count; tools do not. Concurrent replies of
	// subtasks each count in full.
	APITime time.Duration
	// Started and Ended are the times of the first and the last record of the work: a durable record, or the
	// program becoming busy.
	Started, Ended time.Time

	byModel     map[string]chat.Usage       // usage of each model
	children    map[string]bool             // child tasks
	lastMessage map[string]time.Time        // time of each task's last message
	inputs      map[callKey]json.RawMessage // calls without a result yet
}

// Denial is a call denied by a rule or by the user.
type Denial struct {
	Tool, CallID string
	Input        json.RawMessage // a JSON object
}

type callKey struct{ task, id string }

// Add adds one record.
func (t *Tally) Add(r event.Record) {
	state, _ := r.Event.(event.StateChanged)
	if !t.Started.IsZero() || state.Busy || event.LogOf(r.Event) != event.LogNone {
		if t.Started.IsZero() {
			t.Started = r.Time
		}
		if r.Time.After(t.Ended) {
			t.Ended = r.Time
		}
	}
	if model, used, ok := event.UsageOf(r.Event); ok {
		t.Usage = t.Usage.Add(used)
		putKey(&t.byModel, model, t.byModel[model].Add(used))
	}
	switch e := r.Event.(type) {
	case event.TaskCreated:
		if e.ParentID != "" {
			putKey(&t.children, r.Task, true)
		}
	case event.MessageAdded:
		asked, waited := t.lastMessage[r.Task]
		putKey(&t.lastMessage, r.Task, r.Time)
		for res := range chat.PartsOf[chat.ToolResult](e.Message) {
			delete(t.inputs, callKey{r.Task, res.CallID})
		}
		if e.Message.Role != chat.Assistant {
			return
		}
		if !t.children[r.Task] {
			t.Replies++
			t.Stop = stopReason(e)
		}
		t.Usage.Unpriced = t.Usage.Unpriced || e.Usage == nil && !e.Interrupted && e.Model != "" // unknown usage
		if waited {
			t.APITime += max(0, r.Time.Sub(asked))
		}
		for _, c := range e.Message.Calls() {
			putKey(&t.inputs, callKey{r.Task, c.ID}, c.Args)
		}
	case event.Spent:
		t.Usage.Unpriced = t.Usage.Unpriced || e.Reason != event.UsageForSummary // an estimate
	case event.ToolCallRequested:
		putKey(&t.inputs, callKey{r.Task, e.CallID}, e.Input)
	case event.ToolFinished:
		if e.Denied {
			t.Denials = append(t.Denials, Denial{e.Tool, e.CallID, objectOrEmpty(t.inputs[callKey{r.Task, e.CallID}])})
		}
	}
}

// putKey sets m[k], making the map if it is nil.
func putKey[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = make(map[K]V)
	}
	(*m)[k] = v
}

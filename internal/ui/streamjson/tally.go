package streamjson

import (
	"encoding/json"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/event"
)

// Tally adds up a turn from its records. The zero Tally is an empty turn; it
// is not safe for concurrent use.
type Tally struct {
	// Replies counts the main agent's replies, halves included; the replies of
	// subtasks are part of the costs only.
	Replies int
	Usage   chat.Usage
	Denials []Denial // calls that were not let run, in order
	Stop    *string  // why the main agent's last reply stopped, in the stream's words
	// API is the time spent on the model: for each reply the time from the
	// message before it in its task, which is what the request waited for, to
	// the reply itself. Waits between attempts count; tools do not. Replies of
	// subtasks that ran side by side count each for itself.
	API time.Duration
	// Started and Ended are the times of the first and the last record that
	// was part of the work: one that is kept, or the program becoming busy.
	Started, Ended time.Time

	byModel     map[string]chat.Usage       // what each model used
	children    map[string]bool             // tasks that belong to another task
	lastMessage map[string]time.Time        // when a task's last message came
	inputs      map[callKey]json.RawMessage // calls without an answer yet
}

// Denial is a call that was refused, by a rule or by a person.
type Denial struct {
	Tool, CallID string
	Input        json.RawMessage // a JSON object
}

type callKey struct{ task, id string }

// Add takes in one record.
func (t *Tally) Add(r event.Record) {
	state, _ := r.Event.(event.StateChanged)
	if !t.Started.IsZero() || state.Busy || event.LogOf(r.Event) != event.Transient {
		if t.Started.IsZero() {
			t.Started = r.Time
		}
		if r.Time.After(t.Ended) {
			t.Ended = r.Time
		}
	}
	if model, used, ok := event.Used(r.Event); ok {
		t.Usage = t.Usage.Add(used)
		put(&t.byModel, model, t.byModel[model].Add(used))
	}
	switch e := r.Event.(type) {
	case event.TaskCreated:
		if e.ParentID != "" {
			put(&t.children, r.Task, true)
		}
	case event.MessageAdded:
		asked, waited := t.lastMessage[r.Task]
		put(&t.lastMessage, r.Task, r.Time)
		for res := range chat.Select[chat.ToolResult](e.Message) {
			delete(t.inputs, callKey{r.Task, res.CallID})
		}
		if e.Message.Role != chat.Assistant {
			return
		}
		if !t.children[r.Task] {
			t.Replies++
			t.Stop = stopReason(e)
		}
		t.Usage.Unpriced = t.Usage.Unpriced || e.Usage == nil && !e.Interrupted && e.Model != "" // nobody said what it used
		if waited {
			t.API += max(0, r.Time.Sub(asked))
		}
		for _, c := range e.Message.Calls() {
			put(&t.inputs, callKey{r.Task, c.ID}, c.Args)
		}
	case event.Spent:
		t.Usage.Unpriced = t.Usage.Unpriced || e.For != event.ForSummary // it is an estimate
	case event.ToolCallRequested:
		put(&t.inputs, callKey{r.Task, e.CallID}, e.Input)
	case event.ToolFinished:
		if e.Denied {
			t.Denials = append(t.Denials, Denial{e.Tool, e.CallID, object(t.inputs[callKey{r.Task, e.CallID}])})
		}
	}
}

// put sets m[k], making the map if there is none.
func put[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = make(map[K]V)
	}
	(*m)[k] = v
}

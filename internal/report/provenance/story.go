package provenance

import (
	"bytes"
	"encoding/json"
	"iter"
	"slices"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/uip"
)

// Explanation is how a call came about and what followed.
type Explanation struct {
	Change *Change `json:"-"`
	Agent  string  `json:"agent"` // who made the call
	// Prompt is the user's request, Message the model's message with
	// the call. Their numbers are zero if they are not recorded.
	Prompt    Message         `json:"prompt"`
	Message   Message         `json:"message"`
	Input     json.RawMessage `json:"input"`
	Signed    bool            `json:"signed"` // this user's coder wrote the request
	Verdict   event.Verdict   `json:"verdict"`
	Reasons   []string        `json:"reasons"`
	DecidedBy string          `json:"decidedBy"`
	// Answer is the user's answer to a question about the call.
	Answer *Answer `json:"answer"`
	// Check is the first check that began after the call.
	Check *Check `json:"check"`
}

// Message is a message in a conversation.
type Message struct {
	Seq   uint64    `json:"record"`
	Time  time.Time `json:"time"`
	Text  string    `json:"text"`
	Model string    `json:"model,omitempty"`
}

// Answer is an answer to a question.
type Answer struct {
	Seq     uint64 `json:"record"`
	ID      string `json:"interactionId"`
	Option  string `json:"option"`
	Comment string `json:"comment,omitempty"`
}

// Check is a command that verifies the work.
type Check struct {
	Seq     uint64 `json:"record"` // of its end
	Command string `json:"command"`
	Exit    int    `json:"exit"`
}

// ExplanationFilter returns a function that reports whether a record's line
// may be relevant to how changes of its session came about.
func ExplanationFilter(changes []*Change) func(line []byte) bool {
	ids := make(map[string]bool)
	for _, c := range changes {
		ids[c.callID] = true
	}
	names := func(line []byte, key string) bool { // one of the calls
		for {
			_, rest, ok := bytes.Cut(line, []byte(key))
			if !ok {
				return false
			}
			id, rest, _ := bytes.Cut(rest, []byte(`"`))
			if ids[string(id)] || bytes.IndexByte(id, '\\') >= 0 {
				return true
			}
			line = rest
		}
	}
	return func(line []byte) bool {
		switch _, kind, ok := bytes.Cut(line[:min(len(line), 64)], []byte(`"type":"`)); {
		case !ok: // not in coder's own format
			return true
		case bytes.HasPrefix(kind, []byte("ToolCall")):
			// the search for a command begins with its rarer letters
			return names(line[:min(len(line), 1024)], `toolCallId":"`) || bytes.Contains(line, []byte(`mmand":"`))
		case bytes.HasPrefix(kind, []byte("MessageAdded")):
			head := line[:min(len(line), 512)]
			role := head[max(0, bytes.Index(head, []byte(`message":{"role":"`))):]
			isTold := bytes.HasPrefix(role, []byte(`message":{"role":"tool"`)) ||
				bytes.HasPrefix(role, []byte(`message":{"role":"system"`))
			return bytes.Contains(head, []byte(`"actor":"user"`)) || !isTold && names(line, `id":"`)
		case bytes.HasPrefix(kind, []byte("TaskCreated")), bytes.HasPrefix(kind, []byte("Interaction")):
			return true
		}
		return false
	}
}

// ContainsCall reports whether a call with that id made one of the changes.
func ContainsCall(changes []*Change, callID string) bool {
	return slices.ContainsFunc(changes, func(c *Change) bool { return c.callID == callID })
}

// Explain returns how changes came about, from all records of their session, or those that Tells selects.
func Explain(records iter.Seq2[event.Record, error], changes []*Change,
	isCheck func(command string) bool) (map[*Change]*Explanation, error) {
	t := explainer{
		isCheck: isCheck, changes: make(map[uint64]*Change), requests: make(map[string]event.Record),
		explanations: make(map[*Change]*Explanation),
		prompts:      make(map[string]Message), parents: make(map[string]string), messages: make(map[string]Message),
		questions: make(map[string]uip.Request), answers: make(map[string]Answer), runningChecks: make(map[string]Check),
	}
	for _, c := range changes {
		t.changes[c.Done] = c
	}
	for r, err := range records {
		if err != nil {
			return t.explanations, err
		}
		t.addRecord(r)
	}
	return t.explanations, nil
}

// explainer processes a session.
type explainer struct {
	isCheck       func(command string) bool
	changes       map[uint64]*Change // by the end of the call
	requests      map[string]event.Record
	explanations  map[*Change]*Explanation
	prompts       map[string]Message // the last prompt of each task
	parents       map[string]string  // of tasks
	messages      map[string]Message // the message with each call
	questions     map[string]uip.Request
	answers       map[string]Answer // by call
	runningChecks map[string]Check  // by call; Seq is the request's
	awaitingCheck []*Explanation
}

func (t *explainer) addRecord(r event.Record) {
	switch e := r.Event.(type) {
	case event.TaskCreated:
		t.parents[e.TaskID] = e.ParentID
	case event.MessageAdded:
		said := Message{r.Seq, r.Time, e.Message.Text(), e.Model}
		switch {
		case e.Message.Role == chat.User && r.Actor == event.ActorUser:
			t.prompts[r.Task] = said
		case e.Message.Role == chat.Assistant:
			for _, call := range e.Message.Calls() {
				t.messages[call.ID] = said
			}
		}
	case event.InteractionRequested:
		t.questions[e.Request.ID] = e.Request
	case event.InteractionResponded:
		t.recordAnswer(r.Seq, t.questions[e.ID], e.Response)
	case event.ToolCallRequested:
		t.requests[e.CallID] = r
		var in struct{ Command string }
		if e.Verdict == event.VerdictAllowed && json.Unmarshal(e.Input, &in) == nil && in.Command != "" &&
			len(t.awaitingCheck) > 0 && t.isCheck(in.Command) {
			t.runningChecks[e.CallID] = Check{Seq: r.Seq, Command: in.Command}
		}
	case event.ToolCallCompleted:
		if c := t.changes[r.Seq]; c != nil {
			t.addExplanation(c, t.requests[e.CallID])
		}
		delete(t.requests, e.CallID) // an id may be reused
		delete(t.answers, e.CallID)
		t.recordEnd(r.Seq, e)
	}
}

// recordAnswer records an answer for each call that the question is about.
func (t *explainer) recordAnswer(seq uint64, q uip.Request, a uip.Response) {
	if id := q.CallID(); id != "" {
		t.answers[id] = Answer{seq, q.ID, a.Option, a.Comment}
	}
	for _, part := range q.Parts {
		t.recordAnswer(seq, part, a.PartAnswer(part))
	}
}

func (t *explainer) addExplanation(c *Change, r event.Record) {
	e, _ := r.Event.(event.ToolCallRequested)
	c.Seq = r.Seq
	s := &Explanation{
		Change: c, Agent: e.Author, Message: t.messages[e.CallID], Input: e.Input, Signed: r.Vouched,
		Verdict: e.Verdict, Reasons: e.Reasons, DecidedBy: e.DecidedBy,
	}
	for task, hops := e.TaskID, 0; s.Prompt.Seq == 0 && task != "" && hops < maxDepth; task, hops = t.parents[task],
		hops+1 {
		s.Prompt = t.prompts[task]
	}
	if a, ok := t.answers[e.CallID]; ok {
		s.Answer = &a
	}
	t.explanations[c] = s
	t.awaitingCheck = append(t.awaitingCheck, s)
}

// maxDepth limits the number of tasks between a call and its prompt.
const maxDepth = 16

// recordEnd processes the end of a call: a check counts for the changes made before it began.
func (t *explainer) recordEnd(seq uint64, e event.ToolCallCompleted) {
	check, ok := t.runningChecks[e.CallID]
	if !ok {
		return
	}
	delete(t.runningChecks, e.CallID)
	var out struct {
		ExitCode *int `json:"exit_code"`
	}
	if json.Unmarshal(e.Output, &out) != nil || out.ExitCode == nil || *out.ExitCode < 0 || e.OutcomeUnknown {
		return
	}
	began := check.Seq
	check.Seq, check.Exit = seq, *out.ExitCode
	var left []*Explanation
	for _, s := range t.awaitingCheck {
		if s.Change.Done < began {
			s.Check = &check
		} else {
			left = append(left, s)
		}
	}
	t.awaitingCheck = left
}

// Package export writes a session for users to keep and share: as Markdown, or as one self-contained
// HTML page without network access, scripts or fonts.
//
// All text of a session stays text: none of it can become part of the page's markup. Characters that
// would hide or reorder text are shown by name.
package export

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/secret"
	"coder/internal/core/uip"
	"coder/internal/record/session"
)

// Transcript is a session's content for export.
type Transcript struct {
	Head    session.Head
	Entries []Entry
	Used    chat.Usage // including subtasks and discarded output
	Filling Filling    // of the window, if known
}

// An Entry is one of [Said], [*Called], [Local], [*Asked], [Planned] or
// [Noted].
type Entry interface{ isEntry() }

type (
	// Said is a message without its calls.
	Said struct {
		Time        time.Time
		Role        chat.Role
		Text        string
		Reasoning   string
		Images      []chat.Image
		Model       string
		Usage       *chat.Usage
		Interrupted bool
	}
	// Called is a call and its result.
	Called struct {
		Time     time.Time
		Check    bool // an automatic check of the edits
		Name     string
		Title    string // the title that the user saw
		OwnTitle bool   // the title is coder's own text
		Args     string
		Result   string
		Images   []chat.Image
		Answered bool
		Failed   bool
		Refused  bool // it did not run
		Took     time.Duration
	}
	// Local is a command of the user's: one of coder's own, or a shell command.
	Local struct {
		Time   time.Time
		Input  string
		Output display.Blocks
	}
	// Asked is a question to the user and the answer.
	Asked struct {
		Time    time.Time
		Request uip.Request
		Answer  *uip.Response // nil if unanswered
		Over    bool          // it cannot be answered any more
	}
	// Planned is a new version of the todo list.
	Planned struct {
		Time  time.Time
		Todos []event.Todo
	}
	// Noted is an event of the session itself. Text is coder's own sentence.
	Noted struct {
		Time         time.Time
		Text, Detail string
		Own          bool // Detail is coder's own sentence, too
	}
)

func (Said) isEntry()    {}
func (*Called) isEntry() {}
func (Local) isEntry()   {}
func (*Asked) isEntry()  {}
func (Planned) isEntry() {}
func (Noted) isEntry()   {}

// FromRecords reads a session from its merged logs.
func FromRecords(head session.Head, records iter.Seq2[event.Record, error]) (Transcript, error) {
	b := builder{t: Transcript{Head: head}}
	for r, err := range records {
		if err != nil {
			b.flush()
			return b.t, fmt.Errorf("read session %s: %w", head.ID, err)
		}
		r.Event = event.Masked(r.Event, secret.Shapes()) // records of earlier versions may contain keys
		b.add(r)
	}
	b.flush()
	return b.t, nil
}

// FromSnapshot reads a session from its snapshot, which has less: no durations, no questions.
func FromSnapshot(s session.Snapshot) (Transcript, error) {
	b := builder{t: Transcript{Head: s.Head}}
	notes := make(map[int]session.Note, len(s.Notes))
	for _, n := range s.Notes {
		notes[n.Index] = n
	}
	local := s.Local
	for i, raw := range s.Messages {
		for len(local) > 0 && local[0].Before <= i {
			b.local(local[0])
			local = local[1:]
		}
		var m chat.Message
		if err := json.Unmarshal(raw, &m); err != nil {
			return b.t, fmt.Errorf("read message %d of session %s: %w", i, s.ID, err)
		}
		b.message(event.Record{Time: notes[i].Time}, event.MessageAdded{Message: event.MaskedMessage(m, secret.Shapes()), Interrupted: notes[i].Interrupted})
	}
	b.flush()
	for _, l := range local {
		b.local(l)
	}
	return b.t, nil
}

// builder turns records into entries, in order.
type builder struct {
	t     Transcript
	calls map[string]*Called // the last call with each id
	// begun are calls that have neither started nor been answered yet: the questions about them come first.
	begun []*Called
	shell *Said // a shell command whose output is still to come
	asked map[string]*Asked
	// subtasks are represented by the call that delegated them, and by questions to the user.
	subtasks map[string]bool
}

func (b *builder) put(e Entry) { b.t.Entries = append(b.t.Entries, e) }

// last returns the last entry, or nil.
func (b *builder) last() (e Entry) {
	if n := len(b.t.Entries); n > 0 {
		e = b.t.Entries[n-1]
	}
	return e
}

// before moves the last entry to before a call, if the call is already an entry.
func (b *builder) before(c *Called) {
	if i := slices.Index(b.t.Entries, Entry(c)); i >= 0 {
		last := len(b.t.Entries) - 1
		b.t.Entries = slices.Insert(b.t.Entries[:last:last], i, b.t.Entries[last])
	}
}

// begin adds a call as an entry when it starts.
func (b *builder) begin(c *Called) {
	if i := slices.Index(b.begun, c); i >= 0 {
		b.begun = slices.Delete(b.begun, i, i+1)
		b.put(c)
	}
}

// flush adds everything that got no result.
func (b *builder) flush() {
	for _, c := range b.begun {
		b.put(c)
	}
	b.begun = nil
	if b.shell != nil {
		b.put(Local{Time: b.shell.Time, Input: b.shell.Text})
		b.shell = nil
	}
}

// end closes the questions that were unanswered when the task ended.
func (b *builder) end(task string) {
	for _, a := range b.asked {
		a.Over = a.Over || cmp.Or(a.Request.TaskID, task) == task
	}
}

func (b *builder) add(r event.Record) {
	_, used, _ := event.Used(r.Event)
	b.t.Used = b.t.Used.Add(used)
	if e, ok := r.Event.(event.TaskCreated); ok && e.ParentID != "" {
		if b.subtasks == nil {
			b.subtasks = make(map[string]bool)
		}
		b.subtasks[r.Task] = true
	}
	switch r.Event.(type) {
	case event.TaskCompleted, event.TaskFailed, event.TaskCanceled:
		b.end(r.Task)
	}
	if b.subtasks[r.Task] {
		switch r.Event.(type) {
		case event.InteractionRequested, event.InteractionResponded:
		default:
			return
		}
	}
	switch e := r.Event.(type) {
	case event.MessageAdded:
		b.message(r, e)
	case event.LocalAdded:
		said := e.Shown()
		if noted, ok := b.last().(Noted); ok && noted.Detail == "" && strings.TrimSpace(said.Plain()) == noted.Text { // the command reports that itself
			b.t.Entries = b.t.Entries[:len(b.t.Entries)-1]
		}
		b.put(Local{r.Time, e.Input, said})
	case event.TodosChanged:
		b.put(Planned{r.Time, e.Todos})
	case event.ToolCallRequested:
		b.request(r, e)
	case event.ToolCallCompleted:
		if c := b.calls[e.CallID]; c != nil {
			c.Took = time.Duration(e.DurationMs) * time.Millisecond
			if c.Check {
				c.Result, c.Failed, c.Answered = string(e.Output), e.IsError, true
			}
		}
	case event.InteractionRequested:
		if b.asked[e.Request.ID] == nil {
			if b.asked == nil {
				b.asked = make(map[string]*Asked)
			}
			a := &Asked{Time: r.Time, Request: e.Request}
			b.asked[e.Request.ID] = a
			b.put(a)
			if c := b.calls[e.CallID()]; c != nil && e.Purpose != uip.ConfirmRiskyAction {
				b.before(c) // its result follows below
			}
		}
	case event.InteractionResponded:
		if a := b.asked[e.ID]; a != nil {
			a.Answer = &e.Response
		}
	case event.TaskFailed:
		b.flush()
		b.put(Noted{Time: r.Time, Text: "The turn failed", Detail: e.Reason, Own: true})
	case event.TaskCanceled:
		b.flush()
		why := e.Reason
		if why == "interrupted" { // the same
			why = ""
		}
		b.put(Noted{Time: r.Time, Text: "The turn was cancelled", Detail: why, Own: true})
	default:
		b.note(r)
	}
}

// note adds a note about a change of the conversation that the model sees.
func (b *builder) note(r event.Record) {
	switch e := r.Event.(type) {
	case event.ModeChanged:
		b.put(Noted{Time: r.Time, Text: fmt.Sprintf("mode: %s", e.Mode)})
	case event.ContextReplaced:
		var detail strings.Builder
		for _, m := range e.Messages {
			detail.WriteString(m.Text() + "\n")
		}
		b.put(Noted{Time: r.Time, Text: "The model now sees a shorter version of the conversation", Detail: detail.String()})
	case event.ContextRestored:
		b.put(Noted{Time: r.Time, Text: "The model sees the earlier conversation again"})
	case event.ContextRewound:
		if e.Undo {
			b.put(Noted{Time: r.Time, Text: fmt.Sprintf(display.Form(e.Messages, "The rewind was undone: the %d message counts again", "The rewind was undone: the %d messages count again"), e.Messages)})
			return
		}
		b.put(Noted{Time: r.Time, Text: fmt.Sprintf(display.Form(e.Messages, "Rewound to before an earlier message: the last %d message no longer counts", "Rewound to before an earlier message: the last %d messages no longer count"), e.Messages)})
	}
}

// request processes the start of a call: one of the model's, or an automatic check.
func (b *builder) request(r event.Record, e event.ToolCallRequested) {
	if e.Author != event.ActorVerifier {
		c := b.calls[e.CallID]
		if b.begin(c); c != nil {
			c.Refused, c.Title, c.OwnTitle = e.Verdict == event.Denied, e.Title, event.OwnTitle(e.Tool, e.Title, e.Effects)
		}
		return
	}
	b.made(e.CallID, &Called{Time: r.Time, Check: true, Name: e.Tool, Title: e.Title, Args: string(e.Input)})
	b.flush()
}

// made adds a call.
func (b *builder) made(id string, c *Called) {
	if b.calls == nil {
		b.calls = make(map[string]*Called)
	}
	b.calls[id], b.begun = c, append(b.begun, c)
}

func (b *builder) local(l session.Local) {
	b.put(Local{Time: l.Time, Input: l.Input, Output: display.Blocks{display.Text(l.Output)}})
}

func (b *builder) message(r event.Record, e event.MessageAdded) {
	m := e.Message
	if m.Role == chat.Tool {
		for res := range chat.Select[chat.ToolResult](m) {
			c := b.calls[res.CallID]
			if c == nil || c.Answered {
				c = &Called{Time: r.Time, Name: res.Name}
				b.put(c)
			}
			b.begin(c)
			c.Result, c.Failed, c.Answered, c.Images = res.Text, res.Failed, true, images(m)
		}
		return
	}
	if cmd := b.shell; cmd != nil && m.Role == chat.Assistant && e.Model == "" {
		b.shell = nil
		b.put(Local{cmd.Time, cmd.Text, shellOutput(e)})
		return
	}
	b.flush()
	s := Said{
		Time: r.Time, Role: m.Role, Text: m.Text(), Reasoning: m.Reasoning(), Images: images(m),
		Model: e.Model, Usage: e.Usage, Interrupted: e.Interrupted,
	}
	switch {
	case m.Role == chat.User && strings.HasPrefix(s.Text, event.Interruption):
		if last, ok := b.last().(Said); !ok || !last.Interrupted { // else that message says so
			b.put(Noted{Time: r.Time, Text: "interrupted"})
		}
	case m.Role == chat.User && r.Actor != event.ActorUser && r.Actor != "":
		b.put(Noted{Time: r.Time, Text: "coder sent the model", Detail: s.Text})
	case m.Role == chat.User && strings.HasPrefix(strings.TrimSpace(s.Text), "!") && len(s.Images) == 0:
		b.shell = &s
	case s.Text != "" || s.Reasoning != "" || len(s.Images) > 0 || s.Interrupted:
		b.put(s)
	}
	for c := range chat.Select[chat.ToolCall](m) {
		call := &Called{Time: r.Time, Name: c.Name, Args: string(c.Args)}
		if c.Broken != "" {
			call.Args = c.Broken
		}
		b.made(c.ID, call)
	}
}

// shellOutput returns the output of the user's own command, as sent to the model.
func shellOutput(e event.MessageAdded) display.Blocks {
	if len(e.Blocks) == 1 {
		if s, ok := e.Blocks[0].(display.Shell); ok && s.Terminal {
			return e.Blocks
		}
	}
	return display.Blocks{display.Code{Source: e.Message.Text()}}
}

func images(m chat.Message) []chat.Image {
	var list []chat.Image
	for img := range chat.Select[chat.Image](m) {
		list = append(list, img)
	}
	return list
}

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
	"coder/internal/core/message"
	"coder/internal/core/secret"
	"coder/internal/core/uip"
	"coder/internal/record/session"
)

// Transcript is a session's content for export.
type Transcript struct {
	Head    session.Head
	Entries []Entry
	Usage   chat.Usage  // including subtasks and discarded output
	Window  WindowUsage // of the window, if known
}

// An Entry is one of [Said], [*Called], [Command], [*Asked], [TodoList] or
// [Note].
type Entry interface{ isEntry() }

type (
	// Message is a message without its calls.
	Message struct {
		Time        time.Time
		Role        chat.Role
		Text        string
		Reasoning   string
		Images      []chat.Image
		Model       string
		Usage       *chat.Usage
		Interrupted bool
	}
	// Call is a call and its result.
	Call struct {
		Time           time.Time
		IsCheck        bool // an automatic check of the edits
		Name           string
		Title          string // the title that the user saw
		TranslateTitle bool   // the title is coder's own text
		Args           string
		Result         string
		Images         []chat.Image
		Answered       bool
		Failed         bool
		Refused        bool // it did not run
		Duration       time.Duration
	}
	// Command is a command of the user's: one of coder's own, or a shell command.
	Command struct {
		Time   time.Time
		Input  string
		Output display.Blocks
	}
	// Question is a question to the user and the answer.
	Question struct {
		Time    time.Time
		Request uip.Request
		Answer  *uip.Response // nil if unanswered
		Closed  bool          // it cannot be answered any more
	}
	// TodoList is a new version of the todo list.
	TodoList struct {
		Time  time.Time
		Todos []event.Todo
	}
	// Note is an event of the session itself. Text is coder's own sentence.
	Note struct {
		Time            time.Time
		Text, Detail    string
		TranslateDetail bool // Detail is coder's own sentence, too
	}
)

func (Message) isEntry()   {}
func (*Call) isEntry()     {}
func (Command) isEntry()   {}
func (*Question) isEntry() {}
func (TodoList) isEntry()  {}
func (Note) isEntry()      {}

// FromRecords reads a session from its merged logs.
func FromRecords(head session.Head, records iter.Seq2[event.Record, error]) (Transcript, error) {
	b := builder{transcript: Transcript{Head: head}}
	for r, err := range records {
		if err != nil {
			b.addPending()
			return b.transcript, message.Errorf("read session %s: %w", head.ID, err)
		}
		r.Event = event.Mask(r.Event, secret.ShapeConcealer()) // records of earlier versions may contain keys
		b.addRecord(r)
	}
	b.addPending()
	return b.transcript, nil
}

// FromSnapshot reads a session from its snapshot, which has less: no durations, no questions.
func FromSnapshot(s session.Snapshot) (Transcript, error) {
	b := builder{transcript: Transcript{Head: s.Head}}
	notes := make(map[int]session.Note, len(s.Notes))
	for _, n := range s.Notes {
		notes[n.Index] = n
	}
	local := s.Local
	for i, raw := range s.Messages {
		for len(local) > 0 && local[0].Before <= i {
			b.addCommand(local[0])
			local = local[1:]
		}
		var m chat.Message
		if err := json.Unmarshal(raw, &m); err != nil {
			return b.transcript, message.Errorf("read message %d of session %s: %w", i, s.ID, err)
		}
		b.addMessage(event.Record{Time: notes[i].Time}, event.MessageAdded{Message: event.MaskMessage(m,
			secret.ShapeConcealer()), Interrupted: notes[i].Interrupted})
	}
	b.addPending()
	for _, l := range local {
		b.addCommand(l)
	}
	return b.transcript, nil
}

// builder turns records into entries, in order.
type builder struct {
	transcript Transcript
	calls      map[string]*Call // the last call with each id
	// pendingCalls are calls that have neither started nor been answered yet: the questions about them come first.
	pendingCalls   []*Call
	pendingCommand *Message // a shell command whose output is still to come
	questions      map[string]*Question
	// subtasks are represented by the call that delegated them, and by questions to the user.
	subtasks map[string]bool
}

func (b *builder) addEntry(e Entry) { b.transcript.Entries = append(b.transcript.Entries, e) }

// lastEntry returns the last entry, or nil.
func (b *builder) lastEntry() (e Entry) {
	if n := len(b.transcript.Entries); n > 0 {
		e = b.transcript.Entries[n-1]
	}
	return e
}

// moveBefore moves the last entry to before a call, if the call is already an entry.
func (b *builder) moveBefore(c *Call) {
	if i := slices.Index(b.transcript.Entries, Entry(c)); i >= 0 {
		last := len(b.transcript.Entries) - 1
		b.transcript.Entries = slices.Insert(b.transcript.Entries[:last:last], i, b.transcript.Entries[last])
	}
}

// startCall adds a call as an entry when it starts.
func (b *builder) startCall(c *Call) {
	if i := slices.Index(b.pendingCalls, c); i >= 0 {
		b.pendingCalls = slices.Delete(b.pendingCalls, i, i+1)
		b.addEntry(c)
	}
}

// addPending adds everything that got no result.
func (b *builder) addPending() {
	for _, c := range b.pendingCalls {
		b.addEntry(c)
	}
	b.pendingCalls = nil
	if b.pendingCommand != nil {
		b.addEntry(Command{Time: b.pendingCommand.Time, Input: b.pendingCommand.Text})
		b.pendingCommand = nil
	}
}

// closeQuestions closes the questions that were unanswered when the task ended.
func (b *builder) closeQuestions(task string) {
	for _, a := range b.questions {
		a.Closed = a.Closed || cmp.Or(a.Request.TaskID, task) == task
	}
}

func (b *builder) addRecord(r event.Record) {
	_, used, _ := event.UsageOf(r.Event)
	b.transcript.Usage = b.transcript.Usage.Add(used)
	if e, ok := r.Event.(event.TaskCreated); ok && e.ParentID != "" {
		if b.subtasks == nil {
			b.subtasks = make(map[string]bool)
		}
		b.subtasks[r.Task] = true
	}
	switch r.Event.(type) {
	case event.TaskCompleted, event.TaskFailed, event.TaskCanceled:
		b.closeQuestions(r.Task)
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
		b.addMessage(r, e)
	case event.LocalAdded:
		said := e.DisplayBlocks()
		// the command reports that itself
		if noted, ok := b.lastEntry().(Note); ok && noted.Detail == "" && strings.TrimSpace(said.PlainText()) == noted.Text {
			b.transcript.Entries = b.transcript.Entries[:len(b.transcript.Entries)-1]
		}
		b.addEntry(Command{r.Time, e.Input, said})
	case event.TodosChanged:
		b.addEntry(TodoList{r.Time, e.Todos})
	case event.ToolCallRequested:
		b.addRequest(r, e)
	case event.ToolCallCompleted:
		if c := b.calls[e.CallID]; c != nil {
			c.Duration = time.Duration(e.DurationMs) * time.Millisecond
			if c.IsCheck {
				c.Result, c.Failed, c.Answered = string(e.Output), e.IsError, true
			}
		}
	case event.InteractionRequested:
		if b.questions[e.Request.ID] == nil {
			if b.questions == nil {
				b.questions = make(map[string]*Question)
			}
			a := &Question{Time: r.Time, Request: e.Request}
			b.questions[e.Request.ID] = a
			b.addEntry(a)
			if c := b.calls[e.CallID()]; c != nil && e.Purpose != uip.PurposeConfirmRiskyAction {
				b.moveBefore(c) // its result follows below
			}
		}
	case event.InteractionResponded:
		if a := b.questions[e.ID]; a != nil {
			a.Answer = &e.Response
		}
	case event.TaskFailed:
		b.addPending()
		b.addEntry(Note{Time: r.Time, Text: "The turn failed", Detail: e.Reason, TranslateDetail: true})
	case event.TaskCanceled:
		b.addPending()
		why := e.Reason
		if why == "interrupted" { // the same
			why = ""
		}
		b.addEntry(Note{Time: r.Time, Text: "The turn was cancelled", Detail: why, TranslateDetail: true})
	default:
		b.addNote(r)
	}
}

// addNote adds a note about a change of the conversation that the model sees.
func (b *builder) addNote(r event.Record) {
	switch e := r.Event.(type) {
	case event.ModeChanged:
		b.addEntry(Note{Time: r.Time, Text: fmt.Sprintf("mode: %s", e.Mode)})
	case event.ContextReplaced:
		var detail strings.Builder
		for _, m := range e.Messages {
			detail.WriteString(m.Text() + "\n")
		}
		b.addEntry(Note{Time: r.Time, Text: "The model now sees a shorter version of the conversation",
			Detail: detail.String()})
	case event.ContextRestored:
		b.addEntry(Note{Time: r.Time, Text: "The model sees the earlier conversation again"})
	case event.ContextRewound:
		if e.IsUndo {
			b.addEntry(Note{Time: r.Time, Text: fmt.Sprintf(display.Plural(e.Messages,
				"The rewind was undone: the %d message counts again", "The rewind was undone: the %d messages count again"),
				e.Messages)})
			return
		}
		b.addEntry(Note{Time: r.Time, Text: fmt.Sprintf(display.Plural(e.Messages,
			"Rewound to before an earlier message: the last %d message no longer counts",
			"Rewound to before an earlier message: the last %d messages no longer count"), e.Messages)})
	}
}

// addRequest processes the start of a call: one of the model's, or an automatic check.
func (b *builder) addRequest(r event.Record, e event.ToolCallRequested) {
	if e.Author != event.ActorVerifier {
		c := b.calls[e.CallID]
		if b.startCall(c); c != nil {
			c.Refused, c.Title, c.TranslateTitle = e.Verdict == event.VerdictDenied, e.Title,
				event.IsOwnTitle(e.Tool, e.Title, e.Effects)
		}
		return
	}
	b.addCall(e.CallID, &Call{Time: r.Time, IsCheck: true, Name: e.Tool, Title: e.Title, Args: string(e.Input)})
	b.addPending()
}

// addCall adds a call.
func (b *builder) addCall(id string, c *Call) {
	if b.calls == nil {
		b.calls = make(map[string]*Call)
	}
	b.calls[id], b.pendingCalls = c, append(b.pendingCalls, c)
}

func (b *builder) addCommand(l session.Local) {
	b.addEntry(Command{Time: l.Time, Input: l.Input, Output: display.Blocks{display.Text(l.Output)}})
}

func (b *builder) addMessage(r event.Record, e event.MessageAdded) {
	m := e.Message
	if m.Role == chat.Tool {
		for res := range chat.PartsOf[chat.ToolResult](m) {
			c := b.calls[res.CallID]
			if c == nil || c.Answered {
				c = &Call{Time: r.Time, Name: res.Name}
				b.addEntry(c)
			}
			b.startCall(c)
			c.Result, c.Failed, c.Answered, c.Images = res.Text, res.Failed, true, messageImages(m)
		}
		return
	}
	if cmd := b.pendingCommand; cmd != nil && m.Role == chat.Assistant && e.Model == "" {
		b.pendingCommand = nil
		b.addEntry(Command{cmd.Time, cmd.Text, shellOutput(e)})
		return
	}
	b.addPending()
	s := Message{
		Time: r.Time, Role: m.Role, Text: m.Text(), Reasoning: m.Reasoning(), Images: messageImages(m),
		Model: e.Model, Usage: e.Usage, Interrupted: e.Interrupted,
	}
	switch {
	case m.Role == chat.User && strings.HasPrefix(s.Text, event.InterruptionPrefix):
		if last, ok := b.lastEntry().(Message); !ok || !last.Interrupted { // else that message says so
			b.addEntry(Note{Time: r.Time, Text: "interrupted"})
		}
	case m.Role == chat.User && r.Actor != event.ActorUser && r.Actor != "":
		b.addEntry(Note{Time: r.Time, Text: "coder sent the model", Detail: s.Text})
	case m.Role == chat.User && strings.HasPrefix(strings.TrimSpace(s.Text), "!") && len(s.Images) == 0:
		b.pendingCommand = &s
	case s.Text != "" || s.Reasoning != "" || len(s.Images) > 0 || s.Interrupted:
		b.addEntry(s)
	}
	for c := range chat.PartsOf[chat.ToolCall](m) {
		call := &Call{Time: r.Time, Name: c.Name, Args: string(c.Args)}
		if c.Broken != "" {
			call.Args = c.Broken
		}
		b.addCall(c.ID, call)
	}
}

// shellOutput returns the output of the user's own command, as sent to the model.
func shellOutput(e event.MessageAdded) display.Blocks {
	if len(e.Blocks) == 1 {
		if s, ok := e.Blocks[0].(display.Shell); ok && s.UsedTerminal {
			return e.Blocks
		}
	}
	return display.Blocks{display.Code{Source: e.Message.Text()}}
}

func messageImages(m chat.Message) []chat.Image {
	var list []chat.Image
	for img := range chat.PartsOf[chat.Image](m) {
		list = append(list, img)
	}
	return list
}

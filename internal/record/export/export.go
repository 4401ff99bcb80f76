// Package export writes a session down for people to keep and to pass on: as
// Markdown, or as one HTML page that needs nothing but itself: no network, no
// script, no font.
//
// Whatever was said or printed in a session, it stays text: nothing of it can
// become part of the page. Characters that would hide or reorder text are shown
// by their names.
package export

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/secret"
	"coder/internal/core/uip"
	"coder/internal/record/session"
)

// Transcript is a session as it is written down.
type Transcript struct {
	Head    session.Head
	Entries []Entry
	Used    chat.Usage // by all of it, subtasks and what was not kept included
	Filling Filling    // of the window, where it is known
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
	// Called is a call and what came of it.
	Called struct {
		Time     time.Time
		Name     string
		Args     string
		Result   string
		Images   []chat.Image
		Answered bool
		Failed   bool
		Took     time.Duration
	}
	// Local is a command of the program's own.
	Local struct {
		Time          time.Time
		Input, Output string
	}
	// Asked is a question to the person and their answer.
	Asked struct {
		Time        time.Time
		Title       string
		Description string
		Content     display.Block
		Answer      string // empty while nobody answered
	}
	// Planned is the list of todos as it became.
	Planned struct {
		Time  time.Time
		Todos []event.Todo
	}
	// Noted is something that happened to the session itself.
	Noted struct {
		Time         time.Time
		Text, Detail string
	}
)

func (Said) isEntry()    {}
func (*Called) isEntry() {}
func (Local) isEntry()   {}
func (*Asked) isEntry()  {}
func (Planned) isEntry() {}
func (Noted) isEntry()   {}

// FromRecords reads a session from its logs, merged.
func FromRecords(head session.Head, records iter.Seq2[event.Record, error]) (Transcript, error) {
	b := builder{t: Transcript{Head: head}}
	for r, err := range records {
		if err != nil {
			return b.t, fmt.Errorf("read session %s: %w", head.ID, err)
		}
		r.Event = event.Masked(r.Event, secret.Shapes()) // records of earlier versions may hold keys
		b.add(r)
	}
	return b.t, nil
}

// FromSnapshot reads a session from its snapshot, which knows less: no
// durations, no questions.
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
		b.message(notes[i].Time, event.MessageAdded{Message: event.MaskedMessage(m, secret.Shapes()), Interrupted: notes[i].Interrupted})
	}
	for _, l := range local {
		b.local(l)
	}
	return b.t, nil
}

// builder makes entries of records, one after the other.
type builder struct {
	t     Transcript
	calls map[string]*Called // the last call with an id
	asked map[string]*Asked
	asks  map[string]uip.Request
	// subtasks are told by the call that handed their work out, and by what
	// people were asked.
	subtasks map[string]bool
}

func (b *builder) put(e Entry) { b.t.Entries = append(b.t.Entries, e) }

func (b *builder) add(r event.Record) {
	_, used, _ := event.Used(r.Event)
	b.t.Used = b.t.Used.Add(used)
	if e, ok := r.Event.(event.TaskCreated); ok && e.ParentID != "" {
		if b.subtasks == nil {
			b.subtasks = make(map[string]bool)
		}
		b.subtasks[r.Task] = true
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
		b.message(r.Time, e)
	case event.LocalAdded:
		b.put(Local{r.Time, e.Input, e.Output})
	case event.TodosChanged:
		b.put(Planned{r.Time, e.Todos})
	case event.ToolCallCompleted:
		if c := b.calls[e.CallID]; c != nil {
			c.Took = time.Duration(e.DurationMs) * time.Millisecond
		}
	case event.InteractionRequested:
		if b.asked[e.Request.ID] == nil {
			if b.asked == nil {
				b.asked, b.asks = make(map[string]*Asked), make(map[string]uip.Request)
			}
			a := &Asked{Time: r.Time, Title: e.Request.Display.Title, Description: e.Request.Display.Description, Content: e.Request.Display.Content}
			b.asked[e.Request.ID], b.asks[e.Request.ID] = a, e.Request
			b.put(a)
		}
	case event.InteractionResponded:
		if a := b.asked[e.ID]; a != nil {
			a.Answer = answer(b.asks[e.ID], e.Response)
		}
	case event.ModeChanged:
		b.put(Noted{Time: r.Time, Text: "Mode: " + e.Mode})
	case event.ContextReplaced:
		var detail strings.Builder
		for _, m := range e.Messages {
			detail.WriteString(m.Text() + "\n")
		}
		b.put(Noted{r.Time, "The model now sees a shorter version of what was said before (" + string(e.Reason) + ")", detail.String()})
	case event.ContextRestored:
		b.put(Noted{Time: r.Time, Text: "The model sees again what was said before"})
	case event.ContextRewound:
		text := fmt.Sprintf("Taken back to before an earlier message: the last %d messages do not count from here on", e.Messages)
		if e.Undo {
			text = fmt.Sprintf("That was taken back: the %d messages count again", e.Messages)
		}
		b.put(Noted{Time: r.Time, Text: text})
	case event.TaskFailed:
		b.put(Noted{Time: r.Time, Text: "The turn failed", Detail: e.Reason})
	case event.TaskCanceled:
		b.put(Noted{Time: r.Time, Text: "The turn was canceled", Detail: e.Reason})
	}
}

func (b *builder) local(l session.Local) {
	b.put(Local{Time: l.Time, Input: l.Input, Output: l.Output})
}

func (b *builder) message(at time.Time, e event.MessageAdded) {
	m := e.Message
	if m.Role == chat.Tool {
		for r := range chat.Select[chat.ToolResult](m) {
			c := b.calls[r.CallID]
			if c == nil || c.Answered {
				c = &Called{Time: at, Name: r.Name}
				b.put(c)
			}
			c.Result, c.Failed, c.Answered, c.Images = r.Text, r.Failed, true, images(m)
		}
		return
	}
	s := Said{
		Time: at, Role: m.Role, Text: m.Text(), Reasoning: m.Reasoning(), Images: images(m),
		Model: e.Model, Usage: e.Usage, Interrupted: e.Interrupted,
	}
	if s.Text != "" || s.Reasoning != "" || len(s.Images) > 0 || s.Interrupted {
		b.put(s)
	}
	for c := range chat.Select[chat.ToolCall](m) {
		call := &Called{Time: at, Name: c.Name, Args: string(c.Args)}
		if c.Broken != "" {
			call.Args = c.Broken
		}
		if b.calls == nil {
			b.calls = make(map[string]*Called)
		}
		b.calls[c.ID] = call
		b.put(call)
	}
}

func images(m chat.Message) []chat.Image {
	var list []chat.Image
	for img := range chat.Select[chat.Image](m) {
		list = append(list, img)
	}
	return list
}

// answer puts a response into words.
func answer(q uip.Request, r uip.Response) string {
	var words []string
	if r.Option != "" {
		label := r.Option
		for _, o := range q.Options {
			if o.ID == r.Option && o.Label != "" {
				label = o.Label
			}
		}
		words = append(words, label)
	}
	for _, s := range []string{r.Input, r.Comment} {
		if s != "" {
			words = append(words, s)
		}
	}
	for _, part := range q.Parts {
		words = append(words, part.Display.Title+": "+answer(part, r.Part(part)))
	}
	if len(words) == 0 {
		return "(no answer)"
	}
	return strings.Join(words, "; ")
}

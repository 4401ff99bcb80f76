// Package conversation folds the conversation log into what the model currently sees. Messages
// are only added; a replacement is a marker that can be undone, and nothing here deletes.
package conversation

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/core/event"
)

// Conversation is one session's log, folded up to some record. The zero value is the session's
// empty conversation, which excludes messages from subtasks. Use [Of] for a subtask's conversation.
type Conversation struct {
	task    string          // the subtask it is of; "" for the session
	others  map[string]bool // subtasks, for a session's conversation
	system  chat.Message
	tools   map[string]int  // tools sent with the system text, and the tokens of each
	ids     map[string]bool // of all calls so far
	mode    string          // the last mode entered
	rewound []rewound       // rewinds, the newest last
	said    int             // counts additions and replacements
	command string          // what the user typed, if another text stands for it
	head    string          // from the last recorded request
	state
}

// state is what a rewind undoes.
type state struct {
	messages []chat.Message
	todos    []event.Todo
	open     []chat.ToolCall // calls in the last reply without a result
	prompted int             // the provider's token count for the last request
	replied  int             // the provider's token count for its reply
	counted  int             // how many messages these counts cover
	estimate estimate        // of the messages after those
	reply    estimate        // of the reply included in the counts
	all      estimate        // of all messages
	replaced []replaced      // states before each replacement, the newest last
	reminded map[string]bool // names of the reminders that the model got
	last     *Prompt         // the user's last message
}

// Prompt is a user message that began a turn. A rewind can go back to it.
type Prompt struct {
	Seq    uint64  // the message's record
	Task   string  // the turn that it began
	Text   string  // as typed
	Before *Prompt // the previous one; nil for the first
	state  state   // the conversation before the message
}

// since returns a copy of the current state that later changes do not affect.
func (s state) since() state {
	s.messages, s.replaced, s.reminded = slices.Clip(s.messages), slices.Clone(s.replaced), maps.Clone(s.reminded)
	return s
}

// Last returns the user's last message that is still in the conversation, or nil.
func (c *Conversation) Last() *Prompt { return c.last }

// Todos returns the todo list before the message.
func (p *Prompt) Todos() []event.Todo { return p.state.todos }

// Messages returns how many messages precede the prompt.
func (p *Prompt) Messages() int { return len(p.state.messages) }

// Todos returns the conversation's todo list.
func (c *Conversation) Todos() []event.Todo { return c.todos }

// rewound is a rewind to an earlier message.
type rewound struct {
	event.ContextRewound
	was  state // the state before it
	said int   // the value of Conversation.said
}

// Rewound returns the last rewind, and whether nothing was added since.
func (c *Conversation) Rewound() (e event.ContextRewound, ok bool) {
	if len(c.rewound) == 0 {
		return e, false
	}
	last := c.rewound[len(c.rewound)-1]
	return last.ContextRewound, c.said == last.said
}

// rewind applies a rewind to an earlier message, or its undo.
func (c *Conversation) rewind(e event.ContextRewound) {
	if e.Undo {
		if n := len(c.rewound); n > 0 {
			c.state, c.rewound = c.rewound[n-1].was, slices.Clip(c.rewound[:n-1])
		}
		return
	}
	for p := c.last; p != nil; p = p.Before {
		if p.Seq == e.To {
			was := c.since()
			c.state = p.state.since()
			c.rewound = append(c.rewound, rewound{e, was, c.said})
			return
		}
	}
}

// replaced is a conversation before part of it was replaced.
type replaced struct {
	messages []chat.Message
	fresh    int // the conversation's length right after
	Replacement
}

// Replacement is what a marker changed in the conversation: which messages are replaced, by which, and why.
type Replacement struct {
	Hidden, By []chat.Message
	Reason     event.ReplaceReason
	Done       string // the description for the user
}

// Of returns the empty conversation of one subtask. It excludes messages from other tasks.
func Of(task string) *Conversation { return &Conversation{task: task} }

// Add adds one record. Records from other logs or tasks change nothing.
func (c *Conversation) Add(r event.Record) {
	if e, ok := r.Event.(event.TaskCreated); ok && e.ParentID != "" && c.task == "" {
		if c.others == nil {
			c.others = make(map[string]bool)
		}
		c.others[r.Task] = true
	}
	if c.task != "" && r.Task != c.task || c.others[r.Task] { // it belongs to another conversation
		return
	}
	switch e := r.Event.(type) {
	case event.TaskCreated:
		c.command = e.Command()
	case event.MessageAdded:
		if e.Message.Role == chat.System {
			c.system, c.tools = e.Message, e.Tools
			return
		}
		if e.Message.Role == chat.User && r.Actor == event.ActorUser && (c.last == nil || c.last.Task != r.Task) {
			c.last = &Prompt{r.Seq, r.Task, cmp.Or(c.command, e.Message.Text()), c.last, c.since()}
			c.command = ""
		}
		if !c.fits(e.Message) {
			return
		}
		if e.Sent != nil && e.Sent.Head != "" {
			c.head = e.Sent.Head
		}
		c.said++
		c.messages = append(c.messages, Sent(e))
		for _, name := range e.Reminded {
			if c.reminded == nil {
				c.reminded = make(map[string]bool)
			}
			if strings.HasPrefix(name, event.ModeReminder) {
				c.forget(event.ModeReminder) // only the newest counts
			}
			c.reminded[name] = true
		}
		c.track(e.Message)
		if e.Usage != nil {
			c.prompted, c.replied, c.counted = e.Usage.In, e.Usage.Out, len(c.messages)
		}
	case event.ContextReplaced:
		c.said++
		was := c.messages
		hidden := len(was) - min(max(e.Keep, 0), len(was))
		c.messages = slices.Concat(e.Messages, was[hidden:])
		c.replaced = append(c.replaced, replaced{was, len(c.messages), Replacement{was[:hidden:hidden], e.Messages, e.Reason, e.Done}})
		if len(c.messages) == 0 {
			c.reminded = nil // it starts over
		}
		c.forget(event.RulesReminder) // their text may be gone
		c.recount()
	case event.ContextRewound:
		c.rewind(e)
	case event.TodosChanged:
		c.todos = e.Todos
	case event.ContextRestored:
		if len(c.replaced) != 0 {
			c.said++
			last := c.replaced[len(c.replaced)-1]
			c.replaced = c.replaced[:len(c.replaced)-1]
			c.messages = slices.Concat(last.messages, c.messages[last.fresh:])
			c.recount()
		}
	case event.ModeChanged:
		// A reminder about another mode must be repeated when that mode is entered again.
		if e.Mode != c.mode {
			c.mode = e.Mode
			c.forget(event.ModeReminder)
		}
	}
}

// forget makes the model get the reminders again whose names begin with prefix.
func (c *Conversation) forget(prefix string) {
	maps.DeleteFunc(c.reminded, func(name string, _ bool) bool { return strings.HasPrefix(name, prefix) })
}

// Reminded reports whether the model already got a reminder that is sent only once.
func (c *Conversation) Reminded(name string) bool { return c.reminded[name] }

// Replaced returns the last replacement, and whether it can be undone.
func (c *Conversation) Replaced() (r Replacement, ok bool) {
	if len(c.replaced) == 0 {
		return r, false
	}
	return c.replaced[len(c.replaced)-1].Replacement, true
}

// fits keeps the conversation valid for every provider, even if records are lost:
// it drops a result without a call and adds a result for a call without one.
func (c *Conversation) fits(m chat.Message) bool {
	if m.Role == chat.Tool {
		for r := range chat.Select[chat.ToolResult](m) {
			if slices.ContainsFunc(c.open, func(call chat.ToolCall) bool { return call.ID == r.CallID }) {
				return true
			}
		}
		return false
	}
	for _, call := range c.unanswered() {
		c.messages = append(c.messages, chat.Answer(chat.ToolResult{CallID: call.ID, Name: call.Name, Text: lostResult, Failed: true}))
	}
	c.open = nil
	return true
}

// unanswered returns the open calls that the model still sees.
func (c *Conversation) unanswered() []chat.ToolCall {
	if len(c.open) == 0 {
		return nil
	}
	for _, m := range slices.Backward(c.messages) {
		if m.Role == chat.Assistant && slices.ContainsFunc(m.Calls(), func(call chat.ToolCall) bool { return call.ID == c.open[0].ID }) {
			return c.open
		}
		if m.Role != chat.Tool {
			break
		}
	}
	return nil
}

// lostResult is what the model reads in place of a lost result.
const lostResult = `{"ok":false,"error":"the record of this call's result was lost; look before you repeat it"}`

// Sent returns the message as the model gets it: reminders follow the user's words.
func Sent(e event.MessageAdded) chat.Message {
	if e.Reminders == "" {
		return e.Message
	}
	parts := append([]chat.Part(nil), e.Message.Parts...)
	return chat.Message{Role: e.Message.Role, Parts: append(parts, chat.Text("\n\n"+e.Reminders))}
}

func (c *Conversation) track(m chat.Message) {
	if m.Role == chat.Assistant {
		c.open = m.Calls()
		for _, call := range c.open {
			if c.ids == nil {
				c.ids = make(map[string]bool)
			}
			c.ids[call.ID] = true
		}
		return
	}
	for r := range chat.Select[chat.ToolResult](m) {
		if i := slices.IndexFunc(c.open, func(call chat.ToolCall) bool { return call.ID == r.CallID }); i >= 0 {
			c.open = slices.Delete(slices.Clone(c.open), i, i+1)
		}
	}
}

// Head returns the part of the last recorded request before its messages.
func (c *Conversation) Head() string { return c.head }

// System returns the current system text.
func (c *Conversation) System() string { return c.system.Text() }

// Tools returns the tools sent with the system text, by name, with
// the tokens that each uses, or nil if the record does not say.
func (c *Conversation) Tools() map[string]int { return c.tools }

// Messages returns the messages to and from the model, oldest
// first, without the system text. The caller owns the slice.
func (c *Conversation) Messages() []chat.Message { return slices.Clone(c.messages) }

// View is Messages without a copy, for reading only. The slice does not change while the conversation grows.
func (c *Conversation) View() []chat.Message {
	return c.messages[:len(c.messages):len(c.messages)]
}

// Estimate returns the number of tokens in use as last reported by the provider, or zero,
// and count's total for the messages added since. A reply counts as reported, or as counted
// if that is more. Estimate counts each message only once, also over several calls.
func (c *Conversation) Estimate(count func(chat.Message) int) (reported, since int) {
	if c.prompted > 0 {
		reply := c.reply.of(c.messages[:c.counted], c.counted-1, count)
		reported = c.prompted + max(c.replied, reply)
	}
	return reported, c.estimate.of(c.messages, c.counted, count)
}

// Total returns count's total for all messages. It counts each message only once.
func (c *Conversation) Total(count func(chat.Message) int) int { return c.all.of(c.messages, 0, count) }

// estimate is the total for the messages counted so far, starting with from.
type estimate struct{ from, to, sum int }

func (e *estimate) of(ms []chat.Message, from int, count func(chat.Message) int) int {
	if e.from != from || e.to < from || e.to > len(ms) {
		*e = estimate{from: from, to: from}
	}
	for ; e.to < len(ms); e.to++ {
		e.sum += count(ms[e.to])
	}
	return e.sum
}

// recount resets all figures, because the messages changed.
func (c *Conversation) recount() {
	c.prompted, c.replied, c.counted = 0, 0, 0
	c.estimate, c.reply, c.all = estimate{}, estimate{}, estimate{}
}

// Prompted returns the provider's token count for the last request, or zero.
func (c *Conversation) Prompted() int { return c.prompted }

// Called reports whether any call so far has this id.
func (c *Conversation) Called(id string) bool { return c.ids[id] }

// Answer returns the last message's text if it is a reply without calls, otherwise "".
func (c *Conversation) Answer() string {
	if len(c.messages) == 0 {
		return ""
	}
	last := c.messages[len(c.messages)-1]
	if last.Role != chat.Assistant || len(last.Calls()) > 0 {
		return ""
	}
	return last.Text()
}

// Open lists the calls in the last reply without a result. The
// conversation cannot be sent until all have one.
func (c *Conversation) Open() []chat.ToolCall { return c.open }

// Package conversation folds the conversation log into what the model sees
// now. Messages are only ever added; a replacement is a marker that can be
// taken back, and nothing here deletes.
package conversation

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/core/event"
)

// Conversation is the log of one session folded up to some record. The zero
// value is an empty conversation, that of the session; what is said in subtasks
// is no part of it. That of one subtask is made by [Of].
type Conversation struct {
	task    string          // the subtask it is of; "" for the session
	others  map[string]bool // subtasks, if it is of the session
	system  chat.Message
	tools   map[string]int  // told of with it, and what each takes
	ids     map[string]bool // of all calls so far
	mode    string          // the one last entered
	rewound []rewound       // returns to earlier messages, the newest last
	said    int             // how often something was said, or taken for something else
	command string          // what the person typed, where something else is said for it
	head    string          // of the last request that is on record
	state
}

// state is what a return to an earlier message takes back.
type state struct {
	messages []chat.Message
	todos    []event.Todo
	open     []chat.ToolCall // calls of the last reply without a result
	prompted int             // tokens of the last request, as the provider counted them
	replied  int             // tokens of the reply to it, likewise
	counted  int             // how many messages that figure covers
	estimate estimate        // of what the figure does not cover
	reply    estimate        // of the reply that came with the figure
	all      estimate        // of every message
	replaced []replaced      // what stood before each replacement, the newest last
	reminded map[string]bool // names of reminders the model has been given
	last     *Prompt         // of the person's messages
}

// Prompt is a message with which the person began a turn; one can go back to it.
type Prompt struct {
	Seq    uint64  // of its record
	Task   string  // the turn it began
	Text   string  // as it was typed
	Before *Prompt // the one before it; nil if it is the first
	state  state   // the conversation before it
}

// since is the state as it is now, unharmed by what comes.
func (s state) since() state {
	s.messages, s.replaced, s.reminded = slices.Clip(s.messages), slices.Clone(s.replaced), maps.Clone(s.reminded)
	return s
}

// Last is the last of the person's messages that counts; nil if there is none.
func (c *Conversation) Last() *Prompt { return c.last }

// Todos is the list as it was before the message.
func (p *Prompt) Todos() []event.Todo { return p.state.todos }

// Messages is how many messages there were before it.
func (p *Prompt) Messages() int { return len(p.state.messages) }

// Todos is the list that belongs to the conversation.
func (c *Conversation) Todos() []event.Todo { return c.todos }

// rewound is a return to an earlier message.
type rewound struct {
	event.ContextRewound
	was  state // what stood before
	said int   // how much had been said
}

// Rewound is the last return to an earlier message, if nothing was said since.
func (c *Conversation) Rewound() (e event.ContextRewound, ok bool) {
	if len(c.rewound) == 0 {
		return e, false
	}
	last := c.rewound[len(c.rewound)-1]
	return last.ContextRewound, c.said == last.said
}

// rewind takes in a return to an earlier message, or that it was taken back.
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

// replaced is a conversation as it was before part of it was replaced.
type replaced struct {
	messages []chat.Message
	fresh    int // how long the conversation was right after
	Replacement
}

// Replacement is what a marker did to the conversation: messages that are not seen
// any more as they were, those that stand for them, and why.
type Replacement struct {
	Hidden, By []chat.Message
	Reason     event.ReplaceReason
	Done       string // for people
}

// Of returns the empty conversation of one subtask: what is said in other tasks
// is no part of it.
func Of(task string) *Conversation { return &Conversation{task: task} }

// Add takes in one record; records of other logs and of other tasks change
// nothing.
func (c *Conversation) Add(r event.Record) {
	if e, ok := r.Event.(event.TaskCreated); ok && e.ParentID != "" && c.task == "" {
		if c.others == nil {
			c.others = make(map[string]bool)
		}
		c.others[r.Task] = true
	}
	if c.task != "" && r.Task != c.task || c.others[r.Task] { // it was said in another conversation
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
				c.forget(event.ModeReminder) // the newest counts
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
			c.reminded = nil // it begins anew
		}
		c.forget(event.RulesReminder) // their text may be hidden now
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
		// What was said of another one is to be said again when that is entered anew.
		if e.Mode != c.mode {
			c.mode = e.Mode
			c.forget(event.ModeReminder)
		}
	}
}

// forget has the model given again the reminders whose names begin with prefix.
func (c *Conversation) forget(prefix string) {
	maps.DeleteFunc(c.reminded, func(name string, _ bool) bool { return strings.HasPrefix(name, prefix) })
}

// Reminded reports whether the model has been given a reminder that is not
// given twice.
func (c *Conversation) Reminded(name string) bool { return c.reminded[name] }

// Replaced is the last replacement, and whether there is one to take back.
func (c *Conversation) Replaced() (r Replacement, ok bool) {
	if len(c.replaced) == 0 {
		return r, false
	}
	return c.replaced[len(c.replaced)-1].Replacement, true
}

// fits makes sure that no provider refuses the conversation, whatever the log
// has lost: a result that answers no call is left out, and a call that was
// passed over is answered for.
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

// unanswered are the open calls that the model still sees.
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

// lostResult is what the model reads where the result of a call was lost.
const lostResult = `{"ok":false,"error":"the record of this call's result was lost; look before you repeat it"}`

// Sent is the message as the model gets it: reminders follow the person's own
// words.
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

// Head is what the last request on record was before its messages.
func (c *Conversation) Head() string { return c.head }

// System is the system text in force.
func (c *Conversation) System() string { return c.system.Text() }

// Tools are those that the model was told of with the system text, by name, and the tokens
// that each takes; nil if the record does not say.
func (c *Conversation) Tools() map[string]int { return c.tools }

// Messages is what the model has been told and has said, oldest first, without
// the system text. The slice is the caller's own.
func (c *Conversation) Messages() []chat.Message { return slices.Clone(c.messages) }

// View is Messages without a copy, for those who only read: the slice must not
// be changed, and stays as it is while the conversation grows.
func (c *Conversation) View() []chat.Message {
	return c.messages[:len(c.messages):len(c.messages)]
}

// Estimate is how many tokens were in use when the provider last said so, or
// zero, and what the messages added since come to by count. A reply counts as
// what the provider says it took, or as what it comes to by count if that is
// more. Each message is counted once, however often it is asked.
func (c *Conversation) Estimate(count func(chat.Message) int) (reported, since int) {
	if c.prompted > 0 {
		reply := c.reply.of(c.messages[:c.counted], c.counted-1, count)
		reported = c.prompted + max(c.replied, reply)
	}
	return reported, c.estimate.of(c.messages, c.counted, count)
}

// Total is what all messages come to by count. Each is counted once.
func (c *Conversation) Total(count func(chat.Message) int) int { return c.all.of(c.messages, 0, count) }

// estimate is what messages from one on come to, as far as they were counted.
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

// recount forgets all figures: the messages are others.
func (c *Conversation) recount() {
	c.prompted, c.replied, c.counted = 0, 0, 0
	c.estimate, c.reply, c.all = estimate{}, estimate{}, estimate{}
}

// Prompted is how many tokens the provider last said a request had, or zero.
func (c *Conversation) Prompted() int { return c.prompted }

// Called reports whether some call so far has this id.
func (c *Conversation) Called(id string) bool { return c.ids[id] }

// Answer is what the model said last, if that was an answer: it made no calls with it, and
// nothing was said since.
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

// Open lists the calls of the last reply that have no result yet. While there
// are any, the conversation cannot be sent.
func (c *Conversation) Open() []chat.ToolCall { return c.open }

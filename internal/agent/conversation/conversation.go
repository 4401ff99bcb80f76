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
// empty conversation, which excludes messages from subtasks. Use [New] for a subtask's conversation.
type Conversation struct {
	task         string          // the subtask it is of; "" for the session
	childTasks   map[string]bool // subtasks, for a session's conversation
	system       chat.Message
	tools        map[string]int  // tools sent with the system text, and the tokens of each
	callIDs      map[string]bool // of all calls so far
	mode         string          // the last mode entered
	rewinds      []rewindEntry   // rewinds, the newest last
	changes      int             // counts additions and replacements
	typedCommand string          // what the user typed, if another text stands for it
	requestHead  string          // from the last recorded request
	state
}

// state is what a rewind undoes.
type state struct {
	messages        []chat.Message
	todos           []event.Todo
	openCalls       []chat.ToolCall    // calls in the last reply without a result
	promptTokens    int                // the provider's token count for the last request
	replyTokens     int                // the provider's token count for its reply
	countedMessages int                // number of messages in the counts
	sinceEstimate   estimate           // of the messages after countedMessages
	replyEstimate   estimate           // of the reply included in the counts
	totalEstimate   estimate           // of all messages
	replacements    []replacementEntry // states before each replacement, the newest last
	sentReminders   map[string]bool    // names of the reminders that the model got
	lastPrompt      *Prompt            // the user's last message
}

// Prompt is a user message that began a turn. A rewind can go back to it.
type Prompt struct {
	Seq         uint64  // the message's record
	Task        string  // the turn that it began
	Text        string  // as typed
	Before      *Prompt // the previous one; nil for the first
	stateBefore state   // the conversation before the message
}

// clone returns a copy of the current state that later changes do not affect.
func (s state) clone() state {
	s.messages, s.replacements, s.sentReminders = slices.Clip(s.messages), slices.Clone(s.replacements),
		maps.Clone(s.sentReminders)
	return s
}

// LastPrompt returns the user's last message that is still in the conversation, or nil.
func (c *Conversation) LastPrompt() *Prompt { return c.lastPrompt }

// Todos returns the todo list before the message.
func (p *Prompt) Todos() []event.Todo { return p.stateBefore.todos }

// MessageCount returns how many messages precede the prompt.
func (p *Prompt) MessageCount() int { return len(p.stateBefore.messages) }

// Todos returns the conversation's todo list.
func (c *Conversation) Todos() []event.Todo { return c.todos }

// rewindEntry is a rewind to an earlier message.
type rewindEntry struct {
	event.ContextRewound
	before  state // the state before it
	changes int   // the value of Conversation.changes
}

// LastRewind returns the last rewind, and whether nothing was added since.
func (c *Conversation) LastRewind() (e event.ContextRewound, ok bool) {
	if len(c.rewinds) == 0 {
		return e, false
	}
	last := c.rewinds[len(c.rewinds)-1]
	return last.ContextRewound, c.changes == last.changes
}

// applyRewind applies a rewind to an earlier message, or its undo.
func (c *Conversation) applyRewind(e event.ContextRewound) {
	if e.IsUndo {
		if n := len(c.rewinds); n > 0 {
			c.state, c.rewinds = c.rewinds[n-1].before, slices.Clip(c.rewinds[:n-1])
		}
		return
	}
	for p := c.lastPrompt; p != nil; p = p.Before {
		if p.Seq == e.ToSeq {
			was := c.clone()
			c.state = p.stateBefore.clone()
			c.rewinds = append(c.rewinds, rewindEntry{e, was, c.changes})
			return
		}
	}
}

// replacementEntry is a conversation before part of it was replaced.
type replacementEntry struct {
	messages    []chat.Message
	lengthAfter int // the conversation's length right after
	Replacement
}

// Replacement is what a marker changed in the conversation: which messages are replaced, by which, and why.
type Replacement struct {
	Hidden, By []chat.Message
	Reason     event.ReplaceReason
	Done       string // the description for the user
}

// New returns the empty conversation of one subtask. It excludes messages from other tasks.
func New(task string) *Conversation { return &Conversation{task: task} }

// Add adds one record. Records from other logs or tasks change nothing.
func (c *Conversation) Add(r event.Record) {
	if e, ok := r.Event.(event.TaskCreated); ok && e.ParentID != "" && c.task == "" {
		if c.childTasks == nil {
			c.childTasks = make(map[string]bool)
		}
		c.childTasks[r.Task] = true
	}
	if c.task != "" && r.Task != c.task || c.childTasks[r.Task] { // it belongs to another conversation
		return
	}
	switch e := r.Event.(type) {
	case event.TaskCreated:
		c.typedCommand = e.TypedCommand()
	case event.MessageAdded:
		if e.Message.Role == chat.System {
			c.system, c.tools = e.Message, e.Tools
			return
		}
		if e.Message.Role == chat.User && r.Actor == event.ActorUser && (c.lastPrompt == nil || c.lastPrompt.Task != r.Task) {
			c.lastPrompt = &Prompt{r.Seq, r.Task, cmp.Or(c.typedCommand, e.Message.Text()), c.lastPrompt, c.clone()}
			c.typedCommand = ""
		}
		if !c.repair(e.Message) {
			return
		}
		if e.Request != nil && e.Request.Head != "" {
			c.requestHead = e.Request.Head
		}
		c.changes++
		c.messages = append(c.messages, SentMessage(e))
		for _, name := range e.ReminderNames {
			if c.sentReminders == nil {
				c.sentReminders = make(map[string]bool)
			}
			if strings.HasPrefix(name, event.ModeReminderPrefix) {
				c.forgetReminders(event.ModeReminderPrefix) // only the newest counts
			}
			c.sentReminders[name] = true
		}
		c.trackFigures(e.Message)
		if e.Usage != nil {
			c.promptTokens, c.replyTokens, c.countedMessages = e.Usage.In, e.Usage.Out, len(c.messages)
		}
	case event.ContextReplaced:
		c.changes++
		was := c.messages
		hidden := len(was) - min(max(e.Keep, 0), len(was))
		c.messages = slices.Concat(e.Messages, was[hidden:])
		c.replacements = append(c.replacements, replacementEntry{was, len(c.messages),
			Replacement{was[:hidden:hidden], e.Messages, e.Reason, e.Description}})
		if len(c.messages) == 0 {
			c.sentReminders = nil // it starts over
		}
		c.forgetReminders(event.RulesReminderPrefix) // their text may be gone
		c.resetEstimates()
	case event.ContextRewound:
		c.applyRewind(e)
	case event.TodosChanged:
		c.todos = e.Todos
	case event.ContextRestored:
		if len(c.replacements) != 0 {
			c.changes++
			last := c.replacements[len(c.replacements)-1]
			c.replacements = c.replacements[:len(c.replacements)-1]
			c.messages = slices.Concat(last.messages, c.messages[last.lengthAfter:])
			c.resetEstimates()
		}
	case event.ModeChanged:
		// A reminder about another mode must be repeated when that mode is entered again.
		if e.Mode != c.mode {
			c.mode = e.Mode
			c.forgetReminders(event.ModeReminderPrefix)
		}
	}
}

// forgetReminders makes the model get the reminders again whose names begin with prefix.
func (c *Conversation) forgetReminders(prefix string) {
	maps.DeleteFunc(c.sentReminders, func(name string, _ bool) bool { return strings.HasPrefix(name, prefix) })
}

// HasReminder reports whether the model already got a reminder that is sent only once.
func (c *Conversation) HasReminder(name string) bool { return c.sentReminders[name] }

// LastReplacement returns the last replacement, and whether it can be undone.
func (c *Conversation) LastReplacement() (r Replacement, ok bool) {
	if len(c.replacements) == 0 {
		return r, false
	}
	return c.replacements[len(c.replacements)-1].Replacement, true
}

// repair keeps the conversation valid for every provider, even if records are lost:
// it drops a result without a call and adds a result for a call without one.
func (c *Conversation) repair(m chat.Message) bool {
	if m.Role == chat.Tool {
		for r := range chat.PartsOf[chat.ToolResult](m) {
			if slices.ContainsFunc(c.openCalls, func(call chat.ToolCall) bool { return call.ID == r.CallID }) {
				return true
			}
		}
		return false
	}
	for _, call := range c.unansweredCalls() {
		c.messages = append(c.messages, chat.ToolMessage(chat.ToolResult{CallID: call.ID, Name: call.Name, Text: lostResult,
			Failed: true}))
	}
	c.openCalls = nil
	return true
}

// unansweredCalls returns the open calls that the model still sees.
func (c *Conversation) unansweredCalls() []chat.ToolCall {
	if len(c.openCalls) == 0 {
		return nil
	}
	for _, m := range slices.Backward(c.messages) {
		if m.Role == chat.Assistant && slices.ContainsFunc(m.Calls(),
			func(call chat.ToolCall) bool { return call.ID == c.openCalls[0].ID }) {
			return c.openCalls
		}
		if m.Role != chat.Tool {
			break
		}
	}
	return nil
}

// lostResult is what the model reads in place of a lost result.
const lostResult = `{"ok":false,"error":"the record of this call's result was lost; look before you repeat it"}`

// SentMessage returns the message as the model gets it: reminders follow the user's words.
func SentMessage(e event.MessageAdded) chat.Message {
	if e.Reminders == "" {
		return e.Message
	}
	parts := append([]chat.Part(nil), e.Message.Parts...)
	return chat.Message{Role: e.Message.Role, Parts: append(parts, chat.Text("\n\n"+e.Reminders))}
}

func (c *Conversation) trackFigures(m chat.Message) {
	if m.Role == chat.Assistant {
		c.openCalls = m.Calls()
		for _, call := range c.openCalls {
			if c.callIDs == nil {
				c.callIDs = make(map[string]bool)
			}
			c.callIDs[call.ID] = true
		}
		return
	}
	for r := range chat.PartsOf[chat.ToolResult](m) {
		if i := slices.IndexFunc(c.openCalls, func(call chat.ToolCall) bool { return call.ID == r.CallID }); i >= 0 {
			c.openCalls = slices.Delete(slices.Clone(c.openCalls), i, i+1)
		}
	}
}

// RequestHead returns the part of the last recorded request before its messages.
func (c *Conversation) RequestHead() string { return c.requestHead }

// SystemText returns the current system text.
func (c *Conversation) SystemText() string { return c.system.Text() }

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

// TokenUsage returns the number of tokens in use as last reported by the provider, or zero,
// and count's total for the messages added since. A reply counts as reported, or as counted
// if that is more. Estimate counts each message only once, also over several calls.
func (c *Conversation) TokenUsage(count func(chat.Message) int) (reported, since int) {
	if c.promptTokens > 0 {
		reply := c.replyEstimate.update(c.messages[:c.countedMessages], c.countedMessages-1, count)
		reported = c.promptTokens + max(c.replyTokens, reply)
	}
	return reported, c.sinceEstimate.update(c.messages, c.countedMessages, count)
}

// TotalTokens returns count's total for all messages. It counts each message only once.
func (c *Conversation) TotalTokens(count func(chat.Message) int) int {
	return c.totalEstimate.update(c.messages, 0, count)
}

// estimate is the total for the messages counted so far, starting with from.
type estimate struct{ from, to, sum int }

func (e *estimate) update(ms []chat.Message, from int, count func(chat.Message) int) int {
	if e.from != from || e.to < from || e.to > len(ms) {
		*e = estimate{from: from, to: from}
	}
	for ; e.to < len(ms); e.to++ {
		e.sum += count(ms[e.to])
	}
	return e.sum
}

// resetEstimates resets all figures, because the messages changed.
func (c *Conversation) resetEstimates() {
	c.promptTokens, c.replyTokens, c.countedMessages = 0, 0, 0
	c.sinceEstimate, c.replyEstimate, c.totalEstimate = estimate{}, estimate{}, estimate{}
}

// PromptTokens returns the provider's token count for the last request, or zero.
func (c *Conversation) PromptTokens() int { return c.promptTokens }

// HasCall reports whether any call so far has this id.
func (c *Conversation) HasCall(id string) bool { return c.callIDs[id] }

// LastAnswer returns the last message's text if it is a reply without calls, otherwise "".
func (c *Conversation) LastAnswer() string {
	if len(c.messages) == 0 {
		return ""
	}
	last := c.messages[len(c.messages)-1]
	if last.Role != chat.Assistant || len(last.Calls()) > 0 {
		return ""
	}
	return last.Text()
}

// OpenCalls lists the calls in the last reply without a result. The
// conversation cannot be sent until all have one.
func (c *Conversation) OpenCalls() []chat.ToolCall { return c.openCalls }

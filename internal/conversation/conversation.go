// Package conversation folds the conversation log into what the model sees
// now. Messages are only ever added; a replacement is a marker that can be
// taken back, and nothing here deletes.
package conversation

import (
	"slices"

	"coder/internal/chat"
	"coder/internal/event"
)

// Conversation is the log of one session folded up to some record. The zero
// value is an empty conversation.
type Conversation struct {
	system   chat.Message
	messages []chat.Message
	open     []chat.ToolCall // calls of the last reply without a result
	ids      map[string]bool // of all calls so far
	prompted int             // tokens of the last request, as the provider counted them
	reported int             // tokens in use when the provider last said so
	counted  int             // how many messages that figure covers
	replaced []replaced      // what stood before each replacement, the newest last
}

// replaced is a conversation as it was before part of it was replaced.
type replaced struct {
	messages []chat.Message
	fresh    int // how long the conversation was right after
}

// Add takes in one record; records of other logs change nothing.
func (c *Conversation) Add(r event.Record) {
	switch e := r.Event.(type) {
	case event.MessageAdded:
		c.add(e)
	case event.ContextReplaced:
		c.replace(e)
	case event.ContextRestored:
		c.restore()
	}
}

// replace lets messages stand for all but the newest.
func (c *Conversation) replace(e event.ContextReplaced) {
	was := c.messages
	kept := was[len(was)-min(max(e.Keep, 0), len(was)):]
	c.messages = slices.Concat(e.Messages, kept)
	c.replaced = append(c.replaced, replaced{was, len(c.messages)})
	c.prompted, c.reported, c.counted = 0, 0, 0
}

// restore brings back what the last replacement replaced; what was said since
// follows it.
func (c *Conversation) restore() {
	if len(c.replaced) == 0 {
		return
	}
	last := c.replaced[len(c.replaced)-1]
	c.replaced = c.replaced[:len(c.replaced)-1]
	c.messages = slices.Concat(last.messages, c.messages[last.fresh:])
	c.prompted, c.reported, c.counted = 0, 0, 0
}

// Replaced is how many messages the last replacement hides, and whether there
// is one to take back.
func (c *Conversation) Replaced() (hidden int, ok bool) {
	if len(c.replaced) == 0 {
		return 0, false
	}
	return len(c.replaced[len(c.replaced)-1].messages), true
}

func (c *Conversation) add(e event.MessageAdded) {
	if e.Message.Role == chat.System {
		c.system = e.Message
		return
	}
	c.messages = append(c.messages, Sent(e))
	c.track(e.Message)
	if e.Usage != nil {
		c.prompted, c.reported, c.counted = e.Usage.In, e.Usage.In+e.Usage.Out, len(c.messages)
	}
}

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
		for i, call := range c.open {
			if call.ID == r.CallID {
				c.open = append(append([]chat.ToolCall(nil), c.open[:i]...), c.open[i+1:]...)
				break
			}
		}
	}
}

// System is the system text in force.
func (c *Conversation) System() string { return c.system.Text() }

// Messages is what the model has been told and has said, oldest first, without
// the system text. The slice is the caller's own.
func (c *Conversation) Messages() []chat.Message { return slices.Clone(c.messages) }

// View is Messages without a copy, for those who only read: the slice must not
// be changed, and stays as it is while the conversation grows.
func (c *Conversation) View() []chat.Message {
	return c.messages[:len(c.messages):len(c.messages)]
}

// Reported is how many tokens the provider last said were in use, and the
// messages added since, which that figure does not cover. Without a report it
// is zero and every message.
func (c *Conversation) Reported() (tokens int, since []chat.Message) {
	return c.reported, slices.Clone(c.messages[c.counted:])
}

// Prompted is how many tokens the provider last said a request had, or zero.
func (c *Conversation) Prompted() int { return c.prompted }

// Called reports whether some call so far has this id.
func (c *Conversation) Called(id string) bool { return c.ids[id] }

// Open lists the calls of the last reply that have no result yet. While there
// are any, the conversation cannot be sent.
func (c *Conversation) Open() []chat.ToolCall { return c.open }

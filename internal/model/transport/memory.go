package transport

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"sync"

	"coder/internal/core/chat"
	"coder/internal/core/jsonx"
	"coder/internal/model/provider"
)

// A request body begins with what stays the same from step to step and ends
// with the messages, so that a longer conversation begins with the bytes of the
// shorter one. coder keeps those bytes: a step encodes only what is new.

// Head is the part of a body before the messages.
type Head[D comparable] struct {
	Model, System string
	Tools         []provider.ToolSpec
	MaxTokens     int
	Effort        string
	Temperature   string // as written in JSON; empty means none
	Dialect       D
}

func (h Head[D]) equal(o Head[D]) bool {
	return h.Model == o.Model && h.System == o.System && h.MaxTokens == o.MaxTokens && h.Effort == o.Effort &&
		h.Temperature == o.Temperature && h.Dialect == o.Dialect &&
		slices.EqualFunc(h.Tools, o.Tools, func(a, b provider.ToolSpec) bool {
			return a.Name == b.Name && a.Doc == b.Doc && bytes.Equal(a.Schema, b.Schema)
		})
}

// A Form writes the bodies of a wire. S is what it must know about the messages so far to write the
// next; its zero value means no messages. The zero Form is ready to use.
type Form[D comparable, S any] interface {
	// Begin writes the head, up to the start of the first message.
	Begin(h Head[D]) []byte
	// Append writes a message after those summarized by s.
	Append(h Head[D], b []byte, s S, m chat.Message) ([]byte, S)
	// End returns the end of a body with such messages.
	End(h Head[D], s S) string
}

// memo keeps the bytes of the last body of one conversation.
type memo[D comparable, S any] struct {
	head          Head[D]
	messages      []chat.Message // the messages in buf
	ends          []int          // where in buf each message ends
	states        []S            // after each message
	buf           []byte         // a body without its end; only appended to
	messagesStart int            // where in buf the first message begins
}

func (m *memo[D, S]) state() (s S) {
	if n := len(m.states); n > 0 {
		s = m.states[n-1]
	}
	return s
}

// maxFreeMemos is how many unused conversations are kept.
const maxFreeMemos = 4

// BodyCache holds the bodies that no request is using, the latest last. Its zero value is empty.
type BodyCache[F Form[D, S], D comparable, S any] struct {
	mu   sync.Mutex // guards the field below
	free []*memo[D, S]
}

// Body returns a reader of a request's body and the body's record. The
// kept bytes are read in place; done returns them for the next step.
func (k *BodyCache[F, D, S]) Body(h Head[D], msgs []chat.Message) (open func() (io.ReadCloser, error),
	sent *chat.SentRequest, done func()) {
	var form F
	m := k.nearest(h, msgs)
	if m == nil {
		h.Tools = slices.Clone(h.Tools) // the caller may change its own
		m = &memo[D, S]{head: h, buf: form.Begin(h)}
		m.messagesStart = len(m.buf)
	}
	for _, msg := range msgs[len(m.messages):] {
		var s S
		m.buf, s = form.Append(m.head, m.buf, m.state(), msg)
		m.messages, m.ends, m.states = append(m.messages, msg), append(m.ends, len(m.buf)), append(m.states, s)
	}
	kept, end := m.buf[:len(m.buf):len(m.buf)], form.End(m.head, m.state())
	open = func() (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(bytes.NewReader(kept), strings.NewReader(end))), nil
	}
	sent = &chat.SentRequest{Model: h.Model, Effort: h.Effort, Head: string(kept[:m.messagesStart]), Tail: end,
		Size: len(kept) + len(end), Checksum: checksum(kept, end)}
	return open, sent, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.free = append(k.free, m)
		if over := len(k.free) - maxFreeMemos; over > 0 {
			k.free = slices.Delete(k.free, 0, over)
		}
	}
}

// checksum returns the checksum of a body.
func checksum(kept []byte, end string) uint32 {
	return jsonx.Checksum(jsonx.Checksum(0, kept), []byte(end))
}

// Rebuild rewrites the body of a recorded request. It returns false if the result differs from what was
// sent. dialects are the ones in which messages differ.
func Rebuild[F Form[D, S], D comparable, S any](sent chat.SentRequest, msgs []chat.Message, dialects ...D) (body []byte,
	ok bool) {
	var form F
	for _, d := range dialects {
		h := Head[D]{Model: sent.Model, Effort: sent.Effort, Dialect: d}
		b := []byte(sent.Head)
		var s S
		for _, m := range msgs {
			b, s = form.Append(h, b, s, m)
		}
		if len(b)+len(sent.Tail) == sent.Size && checksum(b, sent.Tail) == sent.Checksum {
			return append(b, sent.Tail...), true
		}
	}
	return nil, false
}

// nearest returns the memo with the longest part of a conversation. If the two diverge, it returns a
// new memo that shares the bytes until one of them grows. It returns nil if no memo has any part.
func (k *BodyCache[F, D, S]) nearest(h Head[D], msgs []chat.Message) *memo[D, S] {
	k.mu.Lock()
	defer k.mu.Unlock()
	best, most := -1, 0
	for i, m := range k.free {
		if !m.head.equal(h) {
			continue
		}
		n := 0
		for n < len(msgs) && n < len(m.messages) && chat.IsSame(m.messages[n], msgs[n]) {
			n++
		}
		if n > most {
			best, most = i, n
		}
	}
	if best < 0 {
		return nil
	}
	m := k.free[best]
	if most < len(m.messages) {
		end := m.ends[most-1]
		return &memo[D, S]{head: m.head, messagesStart: m.messagesStart, messages: m.messages[:most:most],
			ends: m.ends[:most:most], states: m.states[:most:most], buf: m.buf[:end:end]}
	}
	k.free = slices.Delete(k.free, best, best+1)
	return m
}

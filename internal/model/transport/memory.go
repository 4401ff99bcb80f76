package transport

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"sync"

	"coder/internal/core/chat"
)

// A request body begins with what stays the same from step to step and ends
// with the messages, so that a longer conversation begins with the bytes of
// the shorter one. Those bytes are kept: a step encodes only what is new.

// A Head is all of a body that comes before the messages, and knows how a
// message of that wire is written. S is what the wire has to know about the
// messages so far to write the next one; its zero value is that of none.
type Head[H, S any] interface {
	Same(H) bool
	// Own is a copy that nobody else can change.
	Own() H
	// Begin writes the head, up to where the first message begins.
	Begin() []byte
	// Append writes a message after those that s tells of.
	Append(b []byte, s S, m chat.Message) ([]byte, S)
	// End is what closes a body of such messages.
	End(s S) string
}

// memo keeps the bytes of the last body of one conversation.
type memo[H Head[H, S], S any] struct {
	head   H
	said   []chat.Message // what buf holds
	ends   []int          // where in buf each message ends
	states []S            // after each message
	buf    []byte         // a body without its end; never overwritten, only added to
}

func (m *memo[H, S]) state() (s S) {
	if n := len(m.states); n > 0 {
		s = m.states[n-1]
	}
	return s
}

// memosKept is how many conversations are remembered, those under way not
// counted.
const memosKept = 4

// Memory holds the bodies that no request is using, the latest last. Its zero
// value is empty.
type Memory[H Head[H, S], S any] struct {
	mu   sync.Mutex // guards the field below
	free []*memo[H, S]
}

// Body returns a reader of the whole body of a request, and its length. The
// kept bytes are read in place; done gives them back for the next step.
func (k *Memory[H, S]) Body(h H, msgs []chat.Message) (open func() (io.ReadCloser, error), length int64, done func()) {
	m := k.nearest(h, msgs)
	if m == nil {
		m = &memo[H, S]{head: h.Own(), buf: h.Begin()}
	}
	for _, msg := range msgs[len(m.said):] {
		var s S
		m.buf, s = m.head.Append(m.buf, m.state(), msg)
		m.said, m.ends, m.states = append(m.said, msg), append(m.ends, len(m.buf)), append(m.states, s)
	}
	kept, end := m.buf[:len(m.buf):len(m.buf)], m.head.End(m.state())
	open = func() (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(bytes.NewReader(kept), strings.NewReader(end))), nil
	}
	return open, int64(len(kept) + len(end)), func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.free = append(k.free, m)
		if over := len(k.free) - memosKept; over > 0 {
			k.free = slices.Delete(k.free, 0, over)
		}
	}
}

// nearest returns the memo that knows most of a conversation, or where the two
// part one that shares its bytes until one of them grows; nil if none knows any
// of it.
func (k *Memory[H, S]) nearest(h H, msgs []chat.Message) *memo[H, S] {
	k.mu.Lock()
	defer k.mu.Unlock()
	best, most := -1, 0
	for i, m := range k.free {
		if !m.head.Same(h) {
			continue
		}
		n := 0
		for n < len(msgs) && n < len(m.said) && chat.Same(m.said[n], msgs[n]) {
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
	if most < len(m.said) {
		end := m.ends[most-1]
		return &memo[H, S]{head: m.head, said: m.said[:most:most], ends: m.ends[:most:most], states: m.states[:most:most], buf: m.buf[:end:end]}
	}
	k.free = slices.Delete(k.free, best, best+1)
	return m
}

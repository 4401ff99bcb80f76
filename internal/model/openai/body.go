package openai

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"coder/internal/core/chat"
	"coder/internal/model/jsonscan"
	"coder/internal/model/provider"
)

// A request body begins with what stays the same from step to step and ends
// with the messages, so that a longer conversation begins with the bytes of
// the shorter one. Those bytes are kept: a step encodes only what is new.

// head is all of a body that comes before the messages.
type head struct {
	model, system string
	tools         []provider.ToolSpec
	maxTokens     int
	dialect       dialect
}

func (h head) equal(o head) bool {
	return h.model == o.model && h.system == o.system && h.maxTokens == o.maxTokens && h.dialect == o.dialect &&
		slices.EqualFunc(h.tools, o.tools, func(a, b provider.ToolSpec) bool {
			return a.Name == b.Name && a.Doc == b.Doc && bytes.Equal(a.Schema, b.Schema)
		})
}

// encode writes the head, up to and including the system message.
func (h head) encode() []byte {
	b := append([]byte(nil), `{"model":`...)
	b = quote(b, h.model)
	b = append(b, `,"stream":true`...)
	if !h.dialect.noStreamOptions {
		b = append(b, `,"stream_options":{"include_usage":true}`...)
	}
	if h.maxTokens > 0 {
		name := `,"max_tokens":` // every compatible server knows that name, and the one that gave it up says so
		if h.dialect.completionTokens {
			name = `,"max_completion_tokens":`
		}
		b = append(b, name...)
		b = strconv.AppendInt(b, int64(h.maxTokens), 10)
	}
	if len(h.tools) > 0 {
		b = append(b, `,"tools":[`...)
		for _, t := range h.tools {
			b = append(next(b), `{"type":"function","function":{"name":`...)
			b = quote(b, t.Name)
			b = append(b, `,"description":`...)
			b = quote(b, t.Doc)
			b = append(b, `,"parameters":`...)
			if jsonscan.IsObject(t.Schema) {
				b = append(b, t.Schema...)
			} else {
				b = append(b, `{"type":"object","properties":{}}`...)
			}
			b = append(b, `}}`...)
		}
		b = append(b, ']')
	}
	b = append(b, `,"messages":[`...)
	if h.system != "" {
		b = appendMessage(b, chat.Say(chat.System, h.system), h.dialect)
	}
	return b
}

const tail = `]}`

// memo keeps the bytes of the last body of one conversation.
type memo struct {
	head head
	said []chat.Message // what buf holds
	ends []int          // where in buf each message ends
	buf  []byte         // a body without its tail; never overwritten, only added to
}

// common is how many messages m has in common with a conversation.
func (m *memo) common(h head, msgs []chat.Message) int {
	if !m.head.equal(h) {
		return 0
	}
	n := 0
	for n < len(msgs) && n < len(m.said) && chat.Same(m.said[n], msgs[n]) {
		n++
	}
	return n
}

// body returns a reader of the whole body, and its length. The kept bytes are
// read in place.
func (m *memo) body() (func() (io.ReadCloser, error), int64) {
	kept := m.buf[:len(m.buf):len(m.buf)]
	open := func() (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(bytes.NewReader(kept), strings.NewReader(tail))), nil
	}
	return open, int64(len(kept) + len(tail))
}

// memosKept is how many conversations are remembered, those under way not
// counted.
const memosKept = 4

// memory holds the memos no request is using, the latest last.
type memory struct {
	mu   sync.Mutex // guards the field below
	free []*memo
}

// take returns a memo of the conversation, complete and the caller's alone
// until it is given back: the one that knows most of it, grown, or a new one.
// One that knows more than the conversation has is forked where the two part;
// they share their bytes until one of them grows.
func (k *memory) take(h head, msgs []chat.Message) *memo {
	k.mu.Lock()
	best, most := -1, 0
	for i, m := range k.free {
		if n := m.common(h, msgs); n > most {
			best, most = i, n
		}
	}
	var m *memo
	if best >= 0 {
		if m = k.free[best]; most == len(m.said) {
			k.free = slices.Delete(k.free, best, best+1)
		} else {
			end := m.ends[most-1]
			m = &memo{head: m.head, said: m.said[:most:most], ends: m.ends[:most:most], buf: m.buf[:end:end]}
		}
	}
	k.mu.Unlock()
	if m == nil {
		h.tools = slices.Clone(h.tools)
		m = &memo{head: h, buf: h.encode()}
	}
	for _, msg := range msgs[len(m.said):] {
		m.buf = appendMessage(m.buf, msg, m.head.dialect)
		m.said = append(m.said, msg)
		m.ends = append(m.ends, len(m.buf))
	}
	return m
}

// give keeps m for the next step.
func (k *memory) give(m *memo) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.free = append(k.free, m)
	if over := len(k.free) - memosKept; over > 0 {
		k.free = slices.Delete(k.free, 0, over)
	}
}

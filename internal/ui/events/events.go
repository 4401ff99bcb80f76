// Package events is the face for programs: it writes a session's events as JSON, one object per line, in
// the chosen vocabulary. It writes each record completely before the next, so that a reader sees a line as
// soon as it is true. A line is one Write, unless it is large.
//
// docs/reference/events.md lists every line.
package events

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"sync"

	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/core/message"
	"coder/internal/core/uip"
)

// View is a vocabulary.
type View string

// The vocabularies: coder's own records, Sema's events, and CoAuthor's rows and interface messages.
const (
	Native   View = "native"
	Sema     View = "sema"
	CoAuthor View = "coauthor"
)

// ParseView parses the name of a view.
func ParseView(s string) (View, error) {
	switch v := View(s); v {
	case Native, Sema, CoAuthor:
		return v, nil
	}
	return Native, message.Errorf("unknown view %q: use native, sema or coauthor", s)
}

// Renderer is an [event.Sink] that writes lines. Use [New].
type Renderer struct {
	mu   sync.Mutex // held while a record is written
	show func(event.Record) error
}

// New returns a Renderer that writes to w. If w has a Flush method it is
// called after every line.
func New(w io.Writer, view View) *Renderer {
	out := newLines(w)
	switch view {
	case Sema:
		s := &sema{
			out: out, text: newChunk("message:text:chunk"), thought: newChunk("message:thinking:chunk"),
			children: make(map[string]bool), calls: make(map[callKey]*semaCall), openQuestions: make(map[string]uip.Request),
		}
		return &Renderer{show: s.show}
	case CoAuthor:
		c := &coauthor{
			out: out, agents: make(map[string]string), messageCounts: make(map[string]int),
			streamingTasks: make(map[string]bool), inputs: make(map[callKey]json.RawMessage),
		}
		return &Renderer{show: c.show}
	}
	return &Renderer{show: native{out}.show}
}

// Emit writes the lines for r: none, one or several.
func (r *Renderer) Emit(_ context.Context, rec event.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.show(rec)
}

// jsonObject is a JSON object: keys and values alternate, in the order written.
type jsonObject []any

// withIf returns o with another member if there is true.
func (o jsonObject) withIf(there bool, key string, v any) jsonObject {
	if there {
		return append(o, key, v)
	}
	return o
}

// MarshalJSON encodes o as part of another value.
func (o jsonObject) MarshalJSON() ([]byte, error) {
	var whole bytes.Buffer
	out := newLines(&whole)
	err := cmp.Or(out.encode(o), out.flush())
	return whole.Bytes(), err
}

// objectWriter writes one JSON object per line.
type objectWriter struct {
	w     io.Writer
	buf   bytes.Buffer  // the line, with marks for its large texts
	enc   *json.Encoder // encodes into buf
	large jsonx.Holes
}

func newLines(w io.Writer) *objectWriter {
	l := &objectWriter{w: w}
	l.enc = json.NewEncoder(&l.buf)
	l.enc.SetEscapeHTML(false)
	return l
}

// writeObject writes o as one line.
func (l *objectWriter) writeObject(o jsonObject) error {
	if err := l.encode(o); err != nil {
		l.clear()
		return message.Errorf("encode event: %w", err)
	}
	return l.finish()
}

// finish writes what was added as a line.
func (l *objectWriter) finish() error {
	l.buf.WriteByte('\n')
	if err := l.flush(); err != nil {
		return message.Errorf("write event: %w", err)
	}
	return l.end()
}

// flush writes what was added.
func (l *objectWriter) flush() error {
	defer l.clear()
	return l.large.Fill(l.w, l.buf.Bytes())
}

func (l *objectWriter) clear() {
	l.buf.Reset()
	l.large = jsonx.Holes{}
}

// encode encodes v, an object member by member.
func (l *objectWriter) encode(v any) error {
	o, ok := v.(jsonObject)
	if !ok {
		if text, ok := v.(string); ok {
			v = l.large.Add(text)
		}
		err := l.enc.Encode(v)
		l.buf.Truncate(max(0, l.buf.Len()-1)) // the newline
		return err
	}
	before := byte('{')
	for i := 0; i < len(o); i += 2 {
		l.buf.WriteByte(before)
		l.buf.WriteByte('"')
		l.buf.WriteString(o[i].(string))
		l.buf.WriteString(`":`)
		if err := l.encode(o[i+1]); err != nil {
			return err
		}
		before = ','
	}
	if len(o) == 0 {
		l.buf.WriteByte('{')
	}
	l.buf.WriteByte('}')
	return nil
}

// writeLine writes a line that is already JSON and ends in a newline.
func (l *objectWriter) writeLine(line []byte) error {
	if _, err := l.w.Write(line); err != nil {
		return message.Errorf("write event: %w", err)
	}
	return l.end()
}

// end completes a line.
func (l *objectWriter) end() error {
	if f, ok := l.w.(interface{ Flush() error }); ok {
		if err := f.Flush(); err != nil {
			return message.Errorf("write event: %w", err)
		}
	}
	return nil
}

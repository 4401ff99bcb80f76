// Package events is the face for programs: it writes a session's events as JSON, one object per line, in
// the chosen vocabulary. It writes each record completely before the next, with one Write per line, so
// that a reader sees a line as soon as it is true and never half of it.
//
// docs/reference/events.md lists every line.
package events

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"coder/internal/core/event"
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
	return Native, fmt.Errorf("unknown view %q: use native, sema or coauthor", s)
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
			children: make(map[string]bool), calls: make(map[callKey]*semaCall), asked: make(map[string]uip.Request),
		}
		return &Renderer{show: s.show}
	case CoAuthor:
		c := &coauthor{
			out: out, agents: make(map[string]string), said: make(map[string]int),
			streaming: make(map[string]bool), inputs: make(map[callKey]json.RawMessage),
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

// obj is a JSON object: keys and values alternate, in the order written.
type obj []any

// and returns o with another member if there is true.
func (o obj) and(there bool, key string, v any) obj {
	if there {
		return append(o, key, v)
	}
	return o
}

// MarshalJSON encodes o as part of another value.
func (o obj) MarshalJSON() ([]byte, error) {
	out := newLines(nil)
	err := out.add(o)
	return out.buf.Bytes(), err
}

// lines writes one JSON object per line.
type lines struct {
	w   io.Writer
	buf bytes.Buffer
	enc *json.Encoder // encodes into buf
}

func newLines(w io.Writer) *lines {
	l := &lines{w: w}
	l.enc = json.NewEncoder(&l.buf)
	l.enc.SetEscapeHTML(false)
	return l
}

// put writes o as one line.
func (l *lines) put(o obj) error {
	l.buf.Reset()
	if err := l.add(o); err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	l.buf.WriteByte('\n')
	return l.write(l.buf.Bytes())
}

// add encodes v, an object member by member.
func (l *lines) add(v any) error {
	o, ok := v.(obj)
	if !ok {
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
		if err := l.add(o[i+1]); err != nil {
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

// write writes a line that is already JSON and ends in a newline.
func (l *lines) write(line []byte) error {
	if _, err := l.w.Write(line); err != nil {
		return fmt.Errorf("write event: %w", err)
	}
	if f, ok := l.w.(interface{ Flush() error }); ok {
		if err := f.Flush(); err != nil {
			return fmt.Errorf("write event: %w", err)
		}
	}
	return nil
}

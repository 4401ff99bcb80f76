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
	"fmt"
	"io"
	"sync"

	"coder/internal/core/event"
	"coder/internal/core/jsonx"
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
	var whole bytes.Buffer
	out := newLines(&whole)
	err := cmp.Or(out.add(o), out.flush())
	return whole.Bytes(), err
}

// lines writes one JSON object per line.
type lines struct {
	w     io.Writer
	buf   bytes.Buffer  // the line, with marks for its large texts
	enc   *json.Encoder // encodes into buf
	large jsonx.Holes
}

func newLines(w io.Writer) *lines {
	l := &lines{w: w}
	l.enc = json.NewEncoder(&l.buf)
	l.enc.SetEscapeHTML(false)
	return l
}

// put writes o as one line.
func (l *lines) put(o obj) error {
	if err := l.add(o); err != nil {
		l.clear()
		return fmt.Errorf("encode event: %w", err)
	}
	return l.finish()
}

// finish writes what was added as a line.
func (l *lines) finish() error {
	l.buf.WriteByte('\n')
	if err := l.flush(); err != nil {
		return fmt.Errorf("write event: %w", err)
	}
	return l.end()
}

// flush writes what was added.
func (l *lines) flush() error {
	defer l.clear()
	return l.large.Fill(l.w, l.buf.Bytes())
}

func (l *lines) clear() {
	l.buf.Reset()
	l.large = jsonx.Holes{}
}

// add encodes v, an object member by member.
func (l *lines) add(v any) error {
	o, ok := v.(obj)
	if !ok {
		if text, ok := v.(string); ok {
			v = l.large.Put(text)
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
	return l.end()
}

// end completes a line.
func (l *lines) end() error {
	if f, ok := l.w.(interface{ Flush() error }); ok {
		if err := f.Flush(); err != nil {
			return fmt.Errorf("write event: %w", err)
		}
	}
	return nil
}

// Package events is the face for programs: it writes what happens in a session
// as JSON, one object per line, in the vocabulary asked for. Every record is
// written out whole before the next one is looked at, with one Write per line,
// so a reader sees a line as soon as it is true and never half of it.
//
// docs/EVENTS.md lists every line there can be.
package events

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"coder/internal/core/event"
)

// View is a vocabulary.
type View uint8

// The three vocabularies: our own records, the events of Sema, the rows and
// interface messages of CoAuthor.
const (
	Native View = iota
	Sema
	CoAuthor
)

var viewNames = [...]string{"native", "sema", "coauthor"}

func (v View) String() string { return viewNames[v] }

// ParseView reads what String wrote.
func ParseView(s string) (View, error) {
	for i, name := range viewNames {
		if s == name {
			return View(i), nil
		}
	}
	return Native, fmt.Errorf("%q is none of native, sema, coauthor", s)
}

// Renderer is an [event.Sink] that writes lines. Use [New].
type Renderer struct {
	mu   sync.Mutex // held while a record is shown
	show func(event.Record) error
}

// New returns a Renderer that writes to w. If w has a Flush method it is
// called after every line.
func New(w io.Writer, view View) *Renderer {
	out := newLines(w)
	switch view {
	case Sema:
		return &Renderer{show: newSema(out).show}
	case CoAuthor:
		return &Renderer{show: newCoauthor(out).show}
	}
	return &Renderer{show: native{out}.show}
}

// Emit writes the lines that r gives rise to: none, one or several.
func (r *Renderer) Emit(_ context.Context, rec event.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.show(rec)
}

// lines writes one JSON object per line.
type lines struct {
	w   io.Writer
	buf bytes.Buffer
	enc *json.Encoder // into buf
}

func newLines(w io.Writer) *lines {
	l := &lines{w: w}
	l.enc = json.NewEncoder(&l.buf)
	l.enc.SetEscapeHTML(false)
	return l
}

// put writes v as one line.
func (l *lines) put(v any) error {
	l.buf.Reset()
	if err := l.enc.Encode(v); err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	return l.write(l.buf.Bytes())
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

// quote is s as it stands between the quotes of a JSON string. It is valid
// until the next call.
func (l *lines) quote(s string) ([]byte, error) {
	l.buf.Reset()
	if err := l.enc.Encode(s); err != nil {
		return nil, fmt.Errorf("encode event: %w", err)
	}
	b := l.buf.Bytes()
	return b[1 : len(b)-2], nil // without the quotes and the newline
}

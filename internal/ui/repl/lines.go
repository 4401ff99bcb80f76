//go:build unix

package repl

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/host/stdio"
	"coder/internal/ui/term"
	"coder/internal/ui/term/ink"
)

// Lines is the face for a terminal that cannot do more than print lines: it
// prints, reads a line, and moves no cursor. It is an [uip.Interactor] too.
type Lines struct {
	In      *stdio.Reader
	Printer io.Writer // where the renderer writes to
	Render  *term.Renderer

	Words   term.Words
	Session func() Session
	Status  func() (model, mode string)
	Dir     string
	// After, which may be nil, is told of a finished input and its error. It
	// may open another session. Its own error ends the program.
	After func(ctx context.Context, input string, err error) error

	program context.Context // ends when the program is to end
	asking  atomic.Bool     // a question is open
}

// Out is where what happens is shown.
func (l *Lines) Out() event.Sink { return l.Render }

// Say shows lines of the program's own.
func (l *Lines) Say(text string) error { return l.Render.Insert(text) }

// Recall shows an answer that was given before.
func (l *Lines) Recall(answer event.MessageAdded, bang bool) error {
	return l.Render.Recall(answer, bang)
}

// Tell shows lines of the program's own, broken between words.
func (l *Lines) Tell(lines ...[]ink.Span) error { return l.Render.Tell(lines...) }

// Resume takes up the turn that the session in use was left with.
func (l *Lines) Resume(ctx context.Context) { _ = l.turn(ctx, "", l.Session().Continue) } // what went wrong was shown

// Run reads and answers until there is nothing more to read. First, if not
// empty, is run first; with resume the turn that was left unfinished is taken
// up.
func (l *Lines) Run(ctx context.Context, first string, resume bool) error {
	if resume {
		if err := l.turn(ctx, "", l.Session().Continue); err != nil {
			return err
		}
	}
	for line := first; ; line = "" {
		if line == "" {
			model, mode := l.Status()
			above := l.folded(contextLine(l.Render.Cards().ASCII, l.Session().ContextUsed(), oneLine(model)))
			var err error
			if line, err = l.ask(ctx, fmt.Sprintf("%s\n[%s] %s> ", above, mode, oneLine(l.Dir))); err != nil {
				return ctx.Err() // or the person left
			}
		}
		if strings.TrimSpace(line) == "" {
			continue
		}
		run := func(ctx context.Context, out event.Sink) (string, error) { return l.Session().Run(ctx, line, out) }
		if err := l.turn(ctx, line, run); err != nil {
			return err
		}
	}
}

// turn runs one input to its end. The end of ctx stops it, save where a
// question is open, which must stay so.
func (l *Lines) turn(ctx context.Context, input string, work func(context.Context, event.Sink) (string, error)) error {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	l.program = ctx
	defer context.AfterFunc(ctx, func() {
		if !l.asking.Load() {
			cancel()
		}
	})()
	_, err := work(inner, l.Render)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if l.After != nil {
		return l.After(ctx, input, err)
	}
	return nil
}

// maxLine is the longest line that is taken.
const maxLine = 8 << 20

// ask shows what is asked and reads a line.
func (l *Lines) ask(ctx context.Context, prompt string) (string, error) {
	i := strings.LastIndexByte(prompt, '\n') + 1
	if err := l.Render.Insert(strings.TrimSuffix(prompt[:i], "\n")); err != nil {
		return "", err
	}
	if _, err := io.WriteString(l.Printer, prompt[i:]); err != nil {
		return "", err
	}
	return l.In.Line(ctx, maxLine)
}

// folded is text with its lines broken between words for the terminal.
func (l *Lines) folded(text string) string {
	if width := l.Render.Cards().Width; width != nil {
		return ink.Folded(text, width())
	}
	return text
}

// Ask puts a question and reads its answer, part by part if it has parts.
func (l *Lines) Ask(ctx context.Context, q uip.Request) (uip.Response, error) {
	l.asking.Store(true)
	defer l.asking.Store(false)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.program, func() { cancel(uip.ErrParked) })()
	d := dialogue{ask: ask{question: q}}
	if !l.Render.Cards().Hides(q) {
		l.Render.Saw(q)
	}
	for {
		text := l.Render.Cards().Draw(q)
		if d.inParts() {
			text = l.Render.Cards().Question(d.current(), d.at+1, len(q.Parts))
		}
		a, err := l.answer(ctx, text, &d)
		if err != nil || !d.inParts() {
			return a, err
		}
		d.parts = append(d.parts, a)
		if d.at++; d.at == len(q.Parts) {
			return uip.Response{ID: q.ID, Author: "user", Parts: d.parts}, nil
		}
	}
}

// answer reads lines until one is an answer. Where nothing can be read any
// more the question stays open.
func (l *Lines) answer(ctx context.Context, text string, d *dialogue) (uip.Response, error) {
	for q := d.current(); ; {
		line, err := l.ask(ctx, text+"\n> ")
		if ctx.Err() != nil {
			return uip.Response{}, context.Cause(ctx)
		}
		if err != nil {
			return uip.Response{}, uip.ErrParked
		}
		if all := d.secondLook(l.Render.Cards(), l.Words, line); all != "" {
			l.Render.Saw(d.question)
			text = all
			continue
		}
		a, ok := read(l.Words, q, line)
		a.ID, a.Author = q.ID, "user"
		if ok && uip.Check(q, a) == nil {
			return a, nil
		}
		text = l.folded(hint(l.Words, q))
	}
}

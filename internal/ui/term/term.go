// Package term is the face for a person at a terminal. It writes one stream
// that only grows: what was written is never rewritten, so scrolling back and
// copying give what was there. Words are laid out for the width of the terminal
// and kept whole, save those wider than a line that goes on set in; code, changes
// and what tools print are not broken, and nothing is padded or framed.
//
// Everything that others wrote, model, tools and files alike, is cleaned before
// it is shown. Each Write is finished output: all looks are closed, though it
// may end in the middle of a line.
package term

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/sanitize"
	"coder/internal/core/uip"
	"coder/internal/ui/term/ink"
)

// Options of a Renderer. Only Out is required.
type Options struct {
	Out io.Writer
	// Stream, if set, stands in place of Out. It is also given what is not in the stream
	// yet and can be seen below it meanwhile.
	Stream  func(text string, ahead Ahead) error
	Width   func() int // of the terminal in columns; nil or 0: unknown
	Palette Palette
	Words   Words // nil: English
	// Live shows what is going on right now. It is called only when that changes
	// and must not call back.
	Live  func(Doing)
	Now   func() time.Time // for Live, and for what may wait a moment; nil: nobody needs the time
	ASCII bool             // the terminal shows no marks beyond ASCII
	// Spoken says that a screen reader reads the lines aloud: a table that does not fit is a list.
	Spoken bool
	// AtOnce says that what a person asks for is put in the middle of a paragraph: there is
	// nothing that could show it until that ends.
	AtOnce bool
	// ThoughtLine has what the model thinks be one line, which says how long it thought.
	ThoughtLine bool
	// Room is how many lines that wait for the end of a paragraph can be seen meanwhile;
	// nil: any number. Where there are more the paragraph is broken.
	Room func() int
	// Height is that of the screen; without it no card is taken to be taller.
	Height func() int
}

// Renderer is an [event.Sink] for a terminal. Use [New].
type Renderer struct {
	o     Options
	cards Cards

	mu      sync.Mutex // guards the fields below and the order of writing
	page    *page
	section section
	later   []func()  // draw what waits for the end of a paragraph
	aside   string    // what they draw
	tears   time.Time // when that is put, whatever it tears; zero: it is not
	above   int       // lines put since a table began to arrive
	omitted string    // the last text of which a part was not shown
	newest  string    // what the last of them does
	preview preview   // of the table that is arriving
	reply   reply
	tasks   map[string]*taskView // by id
	calls   map[callKey]*callView
	last    *callView // the call the last line is about
	status  status
	err     error // the first from Out; nothing is written after it
}

// New returns a Renderer.
func New(o Options) *Renderer {
	if o.Words == nil {
		o.Words = English{}
	}
	r := &Renderer{
		o: o, cards: Cards{Width: o.Width, Room: o.Room, Height: o.Height, Palette: o.Palette, Words: o.Words, ASCII: o.ASCII, Spoken: o.Spoken},
		page:  &page{palette: o.Palette},
		tasks: make(map[string]*taskView), calls: make(map[callKey]*callView),
		status: status{show: o.Live},
	}
	return r
}

// Cards draws questions as this Renderer would.
func (r *Renderer) Cards() Cards {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cards
}

// Recolour has what follows in the colours of p.
func (r *Renderer) Recolour(p Palette) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.o.Palette, r.cards.Palette, r.page.palette, r.page.codes = p, p, p, nil
}

// Emit writes what rec adds to the stream, in one Write.
func (r *Renderer) Emit(_ context.Context, rec event.Record) error {
	return r.write(func() {
		switch e := rec.Event.(type) {
		case event.TaskCreated:
			t := r.view(rec.Task)
			if r.nameAgent(t, e); t.parent == "" {
				r.section = begun
			}
		case event.TaskFailed:
			if r.view(rec.Task).parent == "" {
				r.breakOff()
				r.remark(ink.Bad, r.t("error: %s", r.o.Words.Said(e.Reason)))
			}
			r.forget(rec.Task)
		case event.TaskCompleted, event.TaskCanceled:
			r.forget(rec.Task)
		case event.StateChanged:
			r.status.set("")
			if e.Busy {
				r.status.set(r.t("working"))
			}
		case event.TextDelta: // those of a subtask are told by its own result; only what it does is shown
			if r.view(rec.Task).parent == "" {
				r.answer(rec.Task, e.Text)
			}
		case event.ReasoningDelta:
			if r.view(rec.Task).parent == "" {
				r.think(rec.Task, e.Text)
			}
		case event.Retrying:
			r.retrying(rec.Task, e)
		case event.MessageAdded:
			r.message(r.view(rec.Task), e)
		case event.ToolCallRequested, event.ToolStarted, event.ToolOutput, event.ToolProgress, event.ToolFinished:
			r.tool(rec)
		case event.TodosChanged:
			r.todos(rec, e)
		case event.LocalAdded:
			r.between(func() { r.local(e) })
		case event.Interrupted:
			r.breakOff()
			r.remark(ink.Warn, r.t("Cancelled by ESC")+"\n"+r.t("Stopped model stream and tool execution; todo state remains unchanged unless a tool had already completed."))
			r.status.set("")
		case event.Notice:
			role := ink.Warn
			if e.Level == event.Error {
				role = ink.Bad
			}
			r.remark(role, r.o.Words.Said(e.Text))
		case event.Waiting:
			r.waiting(e)
		case event.InteractionRequested:
			r.status.set("")
		case event.ContextReplaced:
			if e.Reason == event.Compacted && e.TokensBefore > 0 {
				r.remark(ink.Warn, r.t("the conversation was compacted: %d tokens became %d", e.TokensBefore, e.TokensAfter))
			}
		case event.ContextRestored:
			r.remark(ink.Warn, r.t("the conversation was restored"))
		case event.TaskStarted, event.ModeChanged, event.InteractionResponded, event.ToolCallCompleted, event.SessionOpened, event.ContextUsed, event.ContextRewound, event.Spent, event.Unknown:
		}
	})
}

// Insert writes text of the caller's own, such as a card, after a blank line.
// The text is written as it is and must be clean.
func (r *Renderer) Insert(text string) error { return r.write(func() { r.insert(text) }) }

// Between is [Renderer.Insert], but a paragraph that is arriving ends first.
func (r *Renderer) Between(text string) error {
	return r.write(func() { r.between(func() { r.insert(text) }) })
}

func (r *Renderer) insert(text string) {
	r.enter(nothing)
	r.section = inserted
	r.page.put(ink.Look{}, text)
	r.page.fresh()
}

// Answer writes what a command of the person's own says, below its echo, which is
// written as it is and must be clean.
func (r *Renderer) Answer(echo string, e event.LocalAdded) error {
	return r.write(func() {
		r.between(func() {
			if echo != "" {
				r.insert(echo)
			}
			r.local(e)
		})
	})
}

// local puts what a command of the person's own says.
func (r *Renderer) local(e event.LocalAdded) {
	r.enter(nothing)
	if e.Failed {
		r.page.words(r.width(), ink.Bad, sanitize.Mask(r.o.Words.Said(e.Output)))
	} else if e.Output != "" || e.Blocks != nil {
		r.own(e.Shown(), r.width())
	}
	r.section = inserted
}

// Tell writes lines of the caller's own, each broken between words for the width
// of the terminal, after a blank line. The text must be clean.
func (r *Renderer) Tell(lines ...[]ink.Span) error {
	return r.write(func() {
		r.between(func() {
			r.enter(nothing)
			r.section = inserted
			for _, line := range lines {
				r.line(line)
			}
		})
	})
}

// line puts a line of its own, broken between words that no hard blank keeps together.
func (r *Renderer) line(spans []ink.Span) {
	var text strings.Builder
	for _, s := range spans {
		text.WriteString(s.Text)
	}
	if len(spans) > 0 && strings.TrimSpace(text.String()) == "" { // one that was typed so
		r.page.newline()
		return
	}
	w := ink.Wrap{Put: r.page.softened, Width: r.width(), Indent: ink.Hanging(text.String())}
	for _, s := range spans {
		w.Write(s.Look, s.Text)
	}
	w.End()
	r.page.fresh()
}

// Recall shows an answer that was given before; bang says that a command of the
// person's own was.
func (r *Renderer) Recall(answer event.MessageAdded, bang bool) error {
	return r.write(func() {
		r.message(&taskView{prompted: true, bang: bang}, answer)
		r.status.set("")
	})
}

// RecallQuestion shows a question that was put before, and what was answered.
func (r *Renderer) RecallQuestion(q uip.Request, answer string) error {
	return r.write(func() {
		r.insert(r.cards.Draw(q))
		r.page.fresh()
		r.line([]ink.Span{{Text: "> " + answer}})
	})
}

// Break ends what the model is saying, and the line the stream is in.
func (r *Renderer) Break() error {
	return r.write(func() {
		r.endReply()
		r.page.fresh()
	})
}

func (r *Renderer) write(draw func()) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	draw()
	r.putIfBetween()
	text := r.page.take()
	if r.err == nil && (text != "" || r.o.Stream != nil) {
		var err error
		if r.o.Stream != nil { // what is begun is only asked for by who shows it
			err = r.o.Stream(text, r.ahead())
		} else {
			_, err = io.WriteString(r.o.Out, text)
		}
		if err != nil {
			r.err = fmt.Errorf("write to the terminal: %w", err)
		}
	}
	r.tell()
	return r.err
}

// t is a sentence of our own.
func (r *Renderer) t(format string, args ...any) string { return r.o.Words.T(format, args...) }

// section is a kind of passage in the stream; unlike ones stand apart.
type section uint8

const (
	nothing section = iota
	thinking
	answer
	toolLines
	listing
	remarks
	inserted
	begun // a turn has, below what was typed
)

// enter moves to the start of a line, after a blank one if the passage is of
// another kind than the last.
func (r *Renderer) enter(s section) {
	r.putLater() // no paragraph goes on
	if s == r.section {
		r.page.fresh()
	} else {
		r.page.gap()
	}
	r.section, r.last = s, nil
}

// remark puts a sentence on a line of its own, between the paragraphs of a reply that is
// arriving.
func (r *Renderer) remark(role ink.Role, text string) {
	r.between(func() {
		r.enter(remarks)
		r.page.words(r.width(), role, sanitize.Mask(text))
	})
}

// width of the terminal; 0 if nobody knows.
func (r *Renderer) width() int {
	if r.o.Width == nil {
		return 0
	}
	return r.o.Width()
}

// lasted is d with its units beside its numbers, wherever the line is broken.
func lasted(d time.Duration) string {
	return strings.ReplaceAll(display.Duration(d), " ", ink.HardBlank)
}

// mark is a sign, or what stands for it on a terminal that shows only ASCII.
func mark(ascii bool, sign, plain string) string {
	if ascii {
		return plain
	}
	return sign
}

// Package term is the face for a user at a terminal. It writes one stream that only grows: it never
// rewrites text, so scrolling back and copying give what was there. Prose is wrapped to the terminal's
// width between words, except words wider than a line that continues indented; code, diffs and the
// output of tools are not wrapped, and nothing is padded or framed.
//
// Text from others (model, tools, files) is cleaned before it is shown. Each Write is finished output:
// all styles are closed, though it may end inside a line.
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

// Options configures a Renderer. Only Out is required.
type Options struct {
	Out io.Writer
	// Stream, if set, replaces Out. It also receives what is not in the stream yet and can be shown below it
	// meanwhile.
	Stream  func(text string, ahead Ahead) error
	Width   func() int // terminal columns; nil or 0: unknown
	Palette Palette
	Words   Words // nil means English
	// Live shows the current activity. It is called only on changes and must not call back.
	Live  func(Doing)
	Now   func() time.Time // for Live, and for short delays; nil if not needed
	ASCII bool             // the terminal shows only ASCII marks
	// Spoken is set if a screen reader reads the lines: a table that does not fit becomes a list.
	Spoken bool
	// AtOnce shows what the user asks for even inside a paragraph: nothing else could show it before the
	// end.
	AtOnce bool
	// ThoughtLine has what the model thinks be one line, which says how long it thought.
	ThoughtLine bool
	// Room returns how many lines waiting for the end of a paragraph can be shown meanwhile; nil: any
	// number. More lines split the paragraph.
	Room func() int
	// Height returns the screen's height; without it no card counts as taller.
	Height func() int
}

// Renderer is an [event.Sink] for a terminal. Use [New].
type Renderer struct {
	o     Options
	cards Cards

	mu      sync.Mutex // guards the fields below and the order of writing
	page    *page
	section section
	later   []func()  // drawing functions that wait for the end of a paragraph
	aside   string    // their output
	tears   time.Time // deadline for it, even inside a line; zero: none
	above   int       // lines added since a table began to arrive
	omitted string    // the last text of which a part was not shown
	newest  string    // output of the last of them
	preview preview   // of the arriving table
	reply   reply
	tasks   map[string]*taskView // by id
	calls   map[callKey]*callView
	last    *callView // the call that the last line is about
	status  status
	err     error // the first error from Out; nothing is written after it
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

// Cards returns Cards that draw questions as this Renderer would.
func (r *Renderer) Cards() Cards {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cards
}

// Recolour changes the palette of later output.
func (r *Renderer) Recolour(p Palette) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.o.Palette, r.cards.Palette, r.page.palette, r.page.codes = p, p, p, nil
}

// Emit writes the text for rec, in one Write.
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
		case event.TextDelta: // a subtask reports in its result; only its calls are shown
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

// Insert writes the caller's text, such as a card, after a blank line. The text is written unchanged and
// must be clean.
func (r *Renderer) Insert(text string) error { return r.write(func() { r.insert(text) }) }

// Between is [Renderer.Insert], but ends an arriving paragraph first.
func (r *Renderer) Between(text string) error {
	return r.write(func() { r.between(func() { r.insert(text) }) })
}

func (r *Renderer) insert(text string) {
	r.enter(nothing)
	r.section = inserted
	r.page.put(ink.Look{}, text)
	r.page.fresh()
}

// Answer writes the output of the user's command below its echo, which is written unchanged and must be
// clean.
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

// local shows the output of the user's command.
func (r *Renderer) local(e event.LocalAdded) {
	r.enter(nothing)
	if e.Failed {
		r.page.words(r.width(), ink.Bad, sanitize.Mask(r.o.Words.Said(e.Output)))
	} else if e.Output != "" || e.Blocks != nil {
		r.own(e.Shown(), r.width())
	}
	r.section = inserted
}

// Tell writes the caller's lines, each wrapped between words to the terminal's width, after a blank
// line. The text must be clean.
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

// line adds a line, wrapped between words without a hard space.
func (r *Renderer) line(spans []ink.Span) {
	var text strings.Builder
	for _, s := range spans {
		text.WriteString(s.Text)
	}
	if len(spans) > 0 && strings.TrimSpace(text.String()) == "" { // typed as a blank line
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

// Recall shows an earlier answer; bang means that the user's command gave it.
func (r *Renderer) Recall(answer event.MessageAdded, bang bool) error {
	return r.write(func() {
		r.message(&taskView{prompted: true, bang: bang}, answer)
		r.status.set("")
	})
}

// RecallQuestion shows an earlier question and its answer.
func (r *Renderer) RecallQuestion(q uip.Request, answer string) error {
	return r.write(func() {
		r.insert(r.cards.Draw(q))
		r.page.fresh()
		r.line([]ink.Span{{Text: "> " + answer}})
	})
}

// Break ends the arriving reply and the current line.
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
		if r.o.Stream != nil { // only a Stream needs the unfinished word
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

// t translates our own sentence.
func (r *Renderer) t(format string, args ...any) string { return r.o.Words.T(format, args...) }

// section is a kind of passage in the stream; a blank line separates different kinds.
type section uint8

const (
	nothing section = iota
	thinking
	answer
	toolLines
	listing
	remarks
	inserted
	begun // the start of a turn, below the user's input
)

// enter moves to the start of a line, after a blank one if the last passage was of another kind.
func (r *Renderer) enter(s section) {
	r.putLater() // no paragraph continues
	if s == r.section {
		r.page.fresh()
	} else {
		r.page.gap()
	}
	r.section, r.last = s, nil
}

// remark adds a sentence on its own line, between the paragraphs of an arriving reply.
func (r *Renderer) remark(role ink.Role, text string) {
	r.between(func() {
		r.enter(remarks)
		r.page.words(r.width(), role, sanitize.Mask(text))
	})
}

// width returns the terminal's width; 0 if unknown.
func (r *Renderer) width() int {
	if r.o.Width == nil {
		return 0
	}
	return r.o.Width()
}

// lasted formats d, with hard spaces between numbers and units.
func lasted(d time.Duration) string {
	return strings.ReplaceAll(display.Duration(d), " ", ink.HardBlank)
}

// mark returns a sign, or its replacement on a terminal that shows only ASCII.
func mark(ascii bool, sign, plain string) string {
	if ascii {
		return plain
	}
	return sign
}

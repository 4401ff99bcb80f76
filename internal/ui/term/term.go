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
	"io"
	"strings"
	"sync"
	"time"

	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/core/sanitize"
	"coder/internal/core/uip"
	"coder/internal/ui/term/ink"
)

// Options configures a Renderer. Only Out is required.
type Options struct {
	Out io.Writer
	// Stream, if set, replaces Out. ahead is output that is not in the stream yet, for display below the stream.
	Stream     func(text string, ahead PendingOutput) error
	Width      func() int // terminal columns; nil or 0: unknown
	Palette    Palette
	Translator Translator // nil means English
	// OnActivity shows the current activity. It is called only on changes and must not call back.
	OnActivity func(Activity)
	Now        func() time.Time // for Live, and for short delays; nil if not needed
	ASCII      bool             // the terminal shows only ASCII marks
	// ScreenReader is set if a screen reader reads the lines: a table that does not fit becomes a list.
	ScreenReader bool
	// ShowImmediately shows what the user asks for even inside a paragraph: nothing else could show it before the
	// end.
	ShowImmediately bool
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
	options Options
	cards   Cards

	mu            sync.Mutex // guards the fields below and the order of writing
	page          *page
	section       section
	deferred      []func()     // drawing functions that wait for the end of a paragraph
	waitingText   string       // their output
	breakDeadline time.Time    // deadline for it, even inside a line; zero: none
	linesAbove    int          // lines added since a table began to arrive
	omitted       string       // the last text of which a part was not shown
	agents        string       // what the other agents of the turn did and said
	newest        string       // output of the last of them
	preview       tablePreview // of the arriving table
	reply         reply
	tasks         map[string]*taskView // by id
	calls         map[callKey]*callView
	lastCall      *callView // the call that the last line is about
	status        status
	err           error // the first error from Out; nothing is written after it
}

// New returns a Renderer.
func New(o Options) *Renderer {
	if o.Translator == nil {
		o.Translator = English{}
	}
	r := &Renderer{
		options: o, cards: Cards{Width: o.Width, VisibleLines: o.Room, Height: o.Height, Palette: o.Palette,
			Translator: o.Translator, ASCII: o.ASCII, ScreenReader: o.ScreenReader},
		page:  &page{palette: o.Palette},
		tasks: make(map[string]*taskView), calls: make(map[callKey]*callView),
		status: status{show: o.OnActivity},
	}
	return r
}

// Cards returns Cards that draw questions as this Renderer would.
func (r *Renderer) Cards() Cards {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cards
}

// SetPalette changes the palette of later output.
func (r *Renderer) SetPalette(p Palette) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.options.Palette, r.cards.Palette, r.page.palette, r.page.codes = p, p, p, nil
}

// Emit writes the text for rec, in one Write.
func (r *Renderer) Emit(_ context.Context, rec event.Record) error {
	return r.write(func() {
		switch e := rec.Event.(type) {
		case event.TaskCreated:
			t := r.findTask(rec.Task)
			if r.nameAgent(t, e); t.parent == "" {
				r.section, r.agents = sectionTurnStart, ""
			}
		case event.TaskFailed:
			if r.findTask(rec.Task).parent == "" {
				r.cutOffReply()
				r.writeRemark(ink.Bad, r.t("error: %s", r.options.Translator.TranslateText(e.Reason)))
			}
			r.forgetTask(rec.Task)
		case event.TaskCompleted, event.TaskCanceled:
			r.forgetTask(rec.Task)
		case event.StateChanged:
			r.status.set("")
			if e.Busy {
				r.status.set(r.t("working"))
			}
		case event.TextDelta: // a subtask reports in its result; only its calls are shown
			if r.findTask(rec.Task).parent == "" {
				r.addText(rec.Task, e.Text)
			}
		case event.ReasoningDelta:
			if r.findTask(rec.Task).parent == "" {
				r.addThought(rec.Task, e.Text)
			}
		case event.Retrying:
			r.showRetry(rec.Task, e)
		case event.MessageAdded:
			r.showMessage(r.findTask(rec.Task), e)
		case event.ToolCallRequested, event.ToolStarted, event.ToolOutput, event.ToolProgress, event.ToolFinished:
			r.showToolEvent(rec)
		case event.TodosChanged:
			r.showTodos(rec, e)
		case event.LocalAdded:
			r.drawBetween(func() { r.showLocal(e) })
		case event.Interrupted:
			r.cutOffReply()
			r.writeRemark(ink.Warn, r.t("Cancelled by ESC")+"\n"+
				r.t("Stopped model stream and tool execution; todo state remains unchanged unless a tool had already completed."))
			r.status.set("")
		case event.Notice:
			role := ink.Warn
			if e.Level == event.LevelError {
				role = ink.Bad
			}
			r.writeRemark(role, r.options.Translator.TranslateText(e.Text))
		case event.Waiting:
			r.showWait(e)
		case event.InteractionRequested:
			r.status.set("")
		case event.ContextReplaced:
			if e.Reason == event.ReplaceCompacted && e.TokensBefore > 0 {
				r.writeRemark(ink.Warn, r.t("the conversation was compacted: %d tokens became %d", e.TokensBefore, e.TokensAfter))
			}
		case event.ContextRestored:
			r.writeRemark(ink.Warn, r.t("the conversation was restored"))
		case event.TaskStarted, event.ModeChanged, event.InteractionResponded, event.ToolCallCompleted, event.SessionOpened,
			event.ContextUsed, event.ContextRewound, event.Spent, event.Unknown:
		}
	})
}

// Insert writes the caller's text, such as a card, after a blank line. The text is written unchanged and
// must be clean.
func (r *Renderer) Insert(text string) error { return r.write(func() { r.writeInserted(text) }) }

// InsertBetween is [Renderer.Insert], but ends an arriving paragraph first.
func (r *Renderer) InsertBetween(text string) error {
	return r.write(func() { r.drawBetween(func() { r.writeInserted(text) }) })
}

func (r *Renderer) writeInserted(text string) {
	r.enterSection(sectionNone)
	r.section = sectionInserted
	r.page.write(ink.Style{}, text)
	r.page.endLine()
}

// WriteAnswer writes the output of the user's command below its echo, which is written unchanged and must be
// clean.
func (r *Renderer) WriteAnswer(echo string, e event.LocalAdded) error {
	return r.write(func() {
		r.drawBetween(func() {
			if echo != "" {
				r.writeInserted(echo)
			}
			r.showLocal(e)
		})
	})
}

// showLocal shows the output of the user's command.
func (r *Renderer) showLocal(e event.LocalAdded) {
	r.enterSection(sectionNone)
	if e.Failed {
		r.page.writeWrapped(r.width(), ink.Bad, sanitize.Mask(r.options.Translator.TranslateText(e.Output)))
	} else if e.Output != "" || e.Blocks != nil {
		r.writeBlocks(e.DisplayBlocks(), r.width())
	}
	r.section = sectionInserted
}

// PrintLines writes the caller's lines, each wrapped between words to the terminal's width, after a blank
// line. The text must be clean.
func (r *Renderer) PrintLines(lines ...[]ink.Span) error {
	return r.write(func() {
		r.drawBetween(func() {
			r.enterSection(sectionNone)
			r.section = sectionInserted
			for _, line := range lines {
				r.writeLine(line)
			}
		})
	})
}

// writeLine adds a line, wrapped between words without a hard space.
func (r *Renderer) writeLine(spans []ink.Span) {
	var text strings.Builder
	for _, s := range spans {
		text.WriteString(s.Text)
	}
	if len(spans) > 0 && strings.TrimSpace(text.String()) == "" { // typed as a blank line
		r.page.newline()
		return
	}
	w := ink.Wrap{Put: r.page.writeSoft, Width: r.width(), Indent: ink.HangIndent(text.String())}
	for _, s := range spans {
		w.Write(s.Style, s.Text)
	}
	w.End()
	r.page.endLine()
}

// ShowAnswer shows an earlier answer; bang means that the user's command gave it.
func (r *Renderer) ShowAnswer(answer event.MessageAdded, bang bool) error {
	return r.write(func() {
		r.showMessage(&taskView{promptShown: true, isCommand: bang}, answer)
		r.status.set("")
	})
}

// ShowQuestion shows an earlier question and its answer.
func (r *Renderer) ShowQuestion(q uip.Request, answer string) error {
	return r.write(func() {
		r.writeInserted(r.cards.Draw(q))
		r.page.endLine()
		r.writeLine([]ink.Span{{Text: "> " + answer}})
	})
}

// EndReply ends the arriving reply and the current line.
func (r *Renderer) EndReply() error {
	return r.write(func() {
		r.endReply()
		r.page.endLine()
	})
}

func (r *Renderer) write(draw func()) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	draw()
	r.flushIfBetween()
	text := r.page.takeText()
	if r.err == nil && (text != "" || r.options.Stream != nil) {
		var err error
		if r.options.Stream != nil { // only a Stream needs the unfinished word
			err = r.options.Stream(text, r.pendingOutput())
		} else {
			_, err = io.WriteString(r.options.Out, text)
		}
		if err != nil {
			r.err = message.Errorf("write to the terminal: %w", err)
		}
	}
	r.reportActivity()
	return r.err
}

// t translates our own sentence.
func (r *Renderer) t(format string, args ...any) string {
	return r.options.Translator.T(format, args...)
}

// section is a kind of passage in the stream; a blank line separates different kinds.
type section uint8

const (
	sectionNone section = iota
	sectionThinking
	sectionAnswer
	sectionTools
	sectionListing
	sectionRemarks
	sectionInserted
	sectionTurnStart // the start of a turn, below the user's input
)

// enterSection moves to the start of a line, after a blank one if the last passage was of another kind.
func (r *Renderer) enterSection(s section) {
	r.drawDeferred() // no paragraph continues
	if s == r.section {
		r.page.endLine()
	} else {
		r.page.addBlankLine()
	}
	r.section, r.lastCall = s, nil
}

// writeRemark adds a sentence on its own line, between the paragraphs of an arriving reply.
func (r *Renderer) writeRemark(role ink.Role, text string) {
	r.drawBetween(func() {
		r.enterSection(sectionRemarks)
		r.page.writeWrapped(r.width(), role, sanitize.Mask(text))
	})
}

// width returns the terminal's width; 0 if unknown.
func (r *Renderer) width() int {
	if r.options.Width == nil {
		return 0
	}
	return r.options.Width()
}

// formatDuration formats d, with hard spaces between numbers and units.
func formatDuration(d time.Duration) string {
	return strings.ReplaceAll(display.FormatDuration(d), " ", ink.NoBreakSpace)
}

// signFor returns a sign, or its replacement on a terminal that shows only ASCII.
func signFor(ascii bool, sign, plain string) string {
	if ascii {
		return plain
	}
	return sign
}

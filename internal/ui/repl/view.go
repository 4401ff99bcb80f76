//go:build unix

package repl

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"coder/internal/core/event"
	"coder/internal/core/sanitize"
	"coder/internal/ui/cells"
	"coder/internal/ui/lineedit"
	"coder/internal/ui/term/ink"
	"coder/internal/ui/tty"
)

// The looks of what the REPL says itself.
const (
	dim  = ink.Dim
	good = ink.Good
	warn = ink.Warn
	bad  = ink.Bad
)

// patience is how long nothing may happen before the person is shown that
// something does.
const patience = time.Second

// stall is how long nothing may happen in the middle of a line before the line
// is ended, since nothing can be shown below one that is open. It is long: a
// line that is ended for good may have gone on.
const stall = 12 * time.Second

// blind is how long the same may keep a person from seeing what they type.
const blind = 5 * time.Second

// draw shows what stands below the output: a question's line, or what is going
// on and what is typed meanwhile, or the prompt.
func (r *REPL) draw() error {
	width := r.width()
	switch {
	case r.open != nil:
		r.answer.Prompt = []lineedit.Span{{Text: "> ", Style: r.sgr(good)}}
		return r.Screen.SetLive(r.answer.View(width))
	case r.turn != nil:
		if err := r.wrote.byLine(!r.editor.Empty()); err != nil {
			return err
		}
		at, open := r.wrote.last()
		if quiet := r.Now().Sub(at); quiet >= stall || quiet >= blind && open && !r.editor.Empty() {
			if err := r.render.Break(); err != nil {
				return err
			}
		}
		return r.Screen.SetLive(r.underway(width))
	}
	r.editor.Prompt = r.prompt()
	return r.Screen.SetLive(r.editor.View(width))
}

// prompt is the two lines that stand before the draft.
func (r *REPL) prompt() []lineedit.Span {
	model, mode := r.Status()
	// The wording of these two lines is fixed in every language.
	return []lineedit.Span{
		{Text: fmt.Sprintf("context: %d tokens · model: %s\n", r.Session().ContextUsed(), sanitize.Line(model, 80)), Style: r.sgr(dim)},
		{Text: fmt.Sprintf("[%s] %s> ", mode, sanitize.Line(r.Dir, 200)), Style: r.sgr(good)},
	}
}

// underway is what is shown while a turn runs: what is queued, that it goes on
// if nothing else shows it, and what is being typed.
func (r *REPL) underway(width int) (rows []string, row, col int) {
	for _, label := range r.queue.labels() {
		rows = append(rows, r.Palette.Paint(dim, fit(r.Words.T("queued: %s", oneLine(label)), width)))
	}
	if at, _ := r.wrote.last(); r.Now().Sub(at) >= patience && r.doing() != "" {
		f := frames
		if r.ASCII {
			f = asciiFrames
		}
		took := r.Now().Sub(r.turn.began).Truncate(time.Second)
		say := func(busy string) string {
			return f[r.turn.frame%len(f)] + " " + r.Words.T("%s · %s · Esc stops it", busy, took)
		}
		rows = append(rows, r.Palette.Paint(dim, fit(say(fit(oneLine(r.doing()), width-cells.Width(say("")))), width)))
	}
	if r.editor.Empty() && len(rows) == 0 {
		return nil, 0, 0
	}
	r.editor.Prompt = []lineedit.Span{{Text: "> ", Style: r.sgr(dim)}}
	draft, row, col := r.editor.View(width)
	return append(rows, draft...), len(rows) + row, col
}

// doing is what the turn is busy with, empty if nothing was said of it.
func (r *REPL) doing() string {
	if busy := r.busy.Load(); busy != nil {
		return *busy
	}
	return ""
}

var (
	frames      = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}
	asciiFrames = []string{"-", "\\", "|", "/"}
)

func oneLine(s string) string { return sanitize.Line(s, 200) }

// fit cuts a line to the width of the terminal.
func fit(s string, width int) string {
	if width <= 1 || cells.Width(s) < width {
		return s
	}
	head, _ := cells.Cut(s, width-2)
	return head + "…"
}

// sgr is the code that begins a look.
func (r *REPL) sgr(role ink.Role) string {
	painted := r.Palette.Paint(role, "x")
	head, _, _ := strings.Cut(painted, "x")
	return head
}

func (r *REPL) style() lineedit.Style {
	return lineedit.Style{Paste: r.sgr(dim), Menu: r.sgr(dim), Chosen: r.sgr(good), Note: r.sgr(dim), Search: r.sgr(dim)}
}

// failureSink notes whether what went wrong in a turn was shown as it happened.
type failureSink struct {
	event.Sink
	stopped *atomic.Bool // by Esc
	told    atomic.Bool
}

func (w *failureSink) Emit(ctx context.Context, rec event.Record) error {
	switch e := rec.Event.(type) {
	case event.TaskFailed, event.TaskCanceled, event.Interrupted:
		w.told.Store(true)
	case event.LocalAdded:
		if e.Failed {
			w.told.Store(true)
		}
	}
	if _, ok := rec.Event.(event.Interrupted); ok && !w.stopped.Load() {
		return nil // the program ends, which needs no words about Esc
	}
	return w.Sink.Emit(ctx, rec)
}

// writes passes output on to the screen and remembers when there last was any.
// While the person writes something, which cannot be seen below a line that is
// not whole, it passes on whole lines only.
type writes struct {
	screen *tty.Screen
	now    func() time.Time

	mu    sync.Mutex // guards the fields below and the order of writing
	at    time.Time
	whole bool   // only whole lines
	held  []byte // the beginning of a line
	open  bool   // the last line on the screen is not whole
}

// maxHeld is how much of a line is held back.
const maxHeld = 8 << 10

func (w *writes) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = w.now()
	w.held = append(w.held, p...)
	n := bytes.LastIndexByte(w.held, '\n') + 1
	if !w.whole || len(w.held)-n > maxHeld {
		n = len(w.held)
	}
	return len(p), w.pass(n)
}

// pass writes the first n bytes of what is held.
func (w *writes) pass(n int) error {
	if n == 0 {
		return nil
	}
	w.open = w.held[n-1] != '\n'
	_, err := w.screen.Write(w.held[:n])
	w.held = append(w.held[:0], w.held[n:]...)
	return err
}

// byLine passes on whole lines only, or all there is again.
func (w *writes) byLine(whole bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.whole = whole
	if whole {
		return nil
	}
	return w.pass(len(w.held))
}

func (w *writes) mark() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = w.now()
}

// last is when there last was any output, and whether it ended in the middle
// of a line that is on the screen.
func (w *writes) last() (at time.Time, open bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at, w.open
}

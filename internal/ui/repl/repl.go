//go:build unix

// Package repl is coder's face in a terminal: a prompt, the output, and a prompt again, all in the
// terminal's own scrollback.
//
// One goroutine, [REPL.Run], owns everything drawn below the output: the prompt and its draft, the open
// question, the spinner. A turn runs beside it and is stopped through its context. Typing never waits
// for a turn: text typed during a turn is kept, and Enter queues it for the next step.
package repl

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/ui/lineedit"
	"coder/internal/ui/term"
	"coder/internal/ui/term/ink"
	"coder/internal/ui/tty"
)

// Session is the conversation that the REPL shows.
type Session interface {
	Run(ctx context.Context, input lineedit.Draft, out event.Sink) (string, error)
	Continue(ctx context.Context, out event.Sink) (string, error)
	SwitchMode(ctx context.Context, mode string, out event.Sink) error
	// Change changes the mode during a turn, from its next step on.
	Change(ctx context.Context, mode string, out event.Sink) error
	// Looks reports whether an input can be answered during a turn, and Look answers it.
	Looks(input string) bool
	Look(ctx context.Context, input string, out event.Sink) error
	// Switches returns the mode that an input switches to, or "".
	Switches(input string) string
	// Knows reports whether an input is a known command or a shell command.
	Knows(input string) bool
	// Unknown returns why an input that looks like a command is not one.
	Unknown(input string) error
	// Leaves reports whether an input is a command that ends the program.
	Leaves(input string) bool
	// Steer sets the function with which the running turn reads more of the user's messages between its
	// steps.
	Steer(take func() []chat.Words)
	ContextUsed() int
}

// Options configures a REPL. All fields are required unless documented otherwise.
type Options struct {
	Terminal *tty.Terminal
	Screen   *tty.Screen
	Words    term.Words
	Palette  term.Palette
	Recolour func(light bool) term.Palette // optional: the palette for the terminal's reported background
	ASCII    bool                          // the terminal shows only ASCII

	Session func() Session // the current one; a command may change it
	Status  func() (model, mode string)
	// Above, which may be nil, is the line above the prompt. It is printed where it is not what
	// was printed there last.
	Above func() string
	// Compact has the prompt be one short line.
	Compact bool
	Toggle  func() string            // the mode that Tab switches to
	Next    func(from string) string // the mode that Shift+Tab switches to
	Dir     string                   // as the prompt shows it
	// After, which may be nil, is called with a finished input and its error. It may open another session.
	// Its own error ends the program.
	After func(ctx context.Context, input string, err error) error
	// Complete, which may be nil, completes the text before the cursor.
	Complete func(draft string, cursor int) (start int, choices []lineedit.Choice)
	// Suggest, which may be nil, returns what to offer while the user types, in place of the text from start
	// to the cursor. find searches beside the loop; more means that a later search may find more. A nil find
	// offers nothing.
	Suggest func(draft string, cursor int) (start int, find func() (choices []lineedit.Choice, more bool))
	// Most is the limit of completions: a list that reaches it may be incomplete.
	Most int
	// Lists, which may be nil, returns the list to show for an input, such as a command without its required
	// argument. The chosen value is an input.
	Lists func(input string) (lineedit.Picker, bool)
	// Trust, which may be nil, reports whether one letter may trust the folder: its settings have nothing
	// but checks.
	Trust func() bool
	// Direct, which may be nil, allows the commands that the user types after ! without approval, in the
	// user's settings.
	Direct func() error
	// ThoughtLine has what the model thinks be one line.
	ThoughtLine bool
	// Vim has the keys of the draft be those of vim.
	Vim bool
	// Bound are the keys of the person's own, each with the key whose work it does.
	Bound map[lineedit.Key]lineedit.Key
	// CtrlCStops makes the first Ctrl+C stop the running turn, and the second end the program.
	CtrlCStops bool
	// Keys, which may be nil, describes each key for the user.
	Keys func() [][2]string
	// Dropped, which may be nil, is what stands in the line for a paste that is nothing but
	// the paths of files. Clipboard, which may be nil, is the picture in the clipboard.
	Dropped   func(pasted string) (lineedit.Draft, error)
	Clipboard func(context.Context) (*lineedit.Picture, error)
	// Edit, which may be nil, opens text in the user's editor.
	Edit func(ctx context.Context, text string) (string, error)
	// Page, which may be nil, shows a long text in the user's pager, at this terminal.
	Page func(ctx context.Context, terminal *os.File, text string) error
	// Sent, which may be nil, is called with what the user sends; Earlier returns what was sent before,
	// newest last. Unsent, which may be nil, is called regularly and at the end with the unsent text.
	Sent    func(text string)
	Earlier func() []string
	Unsent  func(Unsent)
	// Notify, which may be nil, notifies a user who looks elsewhere.
	Notify func(text string)
	// Title, which may be nil, updates the window title: a question is open, a turn runs.
	Title func(asks, runs bool)
	// Elsewhere, which may be nil, returns what the user sent elsewhere since the last call, one message at
	// a time.
	Elsewhere func() (Remote, bool)
	// Leaving, which may be nil, is called when the user ends the program while something may still have to
	// be stopped.
	Leaving func()
	Now     func() time.Time
}

// Remote is a message that the user sent elsewhere.
type Remote struct {
	Text string
	Stop bool   // stop the turn; there is no text
	From string // where, for the user
}

// ErrInterrupted reports that the user ended the program with Ctrl+C.
var ErrInterrupted = errors.New("interrupted")

// cutTurn is an [ErrInterrupted] during a turn.
type cutTurn struct{ error }

func (c cutTurn) Unwrap() error { return c.error }

// CutTurn reports whether err is an [ErrInterrupted] during a turn.
func CutTurn(err error) bool { return errors.As(err, new(cutTurn)) }

// REPL is the interactive face. Use [New].
type REPL struct {
	Options
	render   *term.Renderer
	editor   lineedit.Editor
	answer   lineedit.Editor  // the open question's line
	begun    Answer           // answer to restore at its question
	picker   *lineedit.Picker // the open list
	typedAt  time.Time        // time of the last key with text typed
	swallow  time.Time        // ignore Enter until then: a number has just answered
	escaped  bool             // the last key was Esc, with nothing to stop or discard
	stash    lineedit.Draft   // draft saved by Ctrl+S
	stays    bool             // the last key was Ctrl+D, during a turn
	leaves   bool             // leave once the turn has stopped
	resized  bool             // the terminal's size has changed
	settling bool             // and may change again

	events  chan []tty.Event // keyboard input
	broken  chan error       // why reading ended
	reader  *reader
	pending [][]tty.Event // typed while nothing was read

	asks  chan ask      // from the turn
	lends chan lent     // from the turn
	done  chan finished // the turn is over

	turn    *turn
	busy    atomic.Pointer[term.Doing] // what the turn is doing
	open    *dialogue                  // the open question
	above   head                       // of the prompt
	queue   queue
	focused bool
	tells   bool    // the terminal reports its focus
	told    [2]bool // last title: a question is open, a turn runs
	wrote   writes
	looking sync.WaitGroup // commands answered during a turn
	looked  chan looked    // those already answered
	copied  chan copied    // what was in the clipboard
	kept    string         // last text passed to Unsent
	pastes  []string       // pastes in the restored text

	suggested suggestions
}

// turn is a running input.
type turn struct {
	input  string
	cancel context.CancelFunc
	// stopped is set if the user stopped the turn with Esc.
	stopped atomic.Bool
	began   time.Time
	frame   int
	mode    string // that the person wants from its next step on; "": the one it has
}

type finished struct {
	input string
	err   error
	told  bool // the error was shown
}

// New returns a REPL.
func New(o Options) *REPL {
	r := &REPL{
		Options: o, focused: true,
		events: make(chan []tty.Event), broken: make(chan error, 1),
		asks: make(chan ask), looked: make(chan looked), copied: make(chan copied), lends: make(chan lent), done: make(chan finished, 1),
		suggested: suggestions{found: make(chan found, 1)},
	}
	r.wrote.screen, r.wrote.ready = o.Screen, make(chan struct{}, 1)
	r.render = term.New(term.Options{
		Stream: r.wrote.stream, Width: r.width, Palette: o.Palette, Words: o.Words, Live: r.status, Now: o.Now, ASCII: o.ASCII, ThoughtLine: o.ThoughtLine, Room: r.room, Height: r.height,
	})
	for _, line := range []*lineedit.Editor{&r.editor, &r.answer} {
		line.Vim = o.Vim
		line.Complete, line.Earlier, line.Style, line.Most = o.Complete, o.Earlier, r.style(), o.Most
		line.Searching, line.NotFound, line.NoOther = o.Words.T("search history: "), o.Words.T("not in history: "), o.Words.T("no more in history: ")
	}
	r.answer.Question = true
	r.editor.Replaced = func(d lineedit.Draft) { // for the history
		if r.editor.Found(d); r.Sent != nil {
			r.Sent(d.Saved())
		}
	}
	return r
}

// Out returns the sink that shows events.
func (r *REPL) Out() event.Sink { return r.render }

// Put sets the draft, unless something is typed, and an answer for its question.
func (r *REPL) Put(typed Unsent) {
	switch {
	case !r.editor.Empty():
	case !typed.Again.Empty():
		r.editor.SetDraft(typed.Again)
	default:
		r.editor.Put(typed.Draft, typed.Pastes)
	}
	r.begun, r.pastes = typed.Answer, typed.Pastes
}

// Say prints coder's own lines, between the paragraphs of a reply.
func (r *REPL) Say(text string) error { return r.render.Between(text) }

// Recall shows an earlier answer.
func (r *REPL) Recall(answer event.MessageAdded, bang bool) error {
	return r.render.Recall(answer, bang)
}

// RecallQuestion shows an earlier question and its answer.
func (r *REPL) RecallQuestion(q uip.Request, answer string) error {
	return r.render.RecallQuestion(q, answer)
}

// Tell prints coder's own lines, wrapped between words.
func (r *REPL) Tell(lines ...[]ink.Span) error { return r.render.Tell(lines...) }

// remark prints coder's own sentences, wrapped between words.
func (r *REPL) remark(role ink.Role, sentences ...string) error {
	var lines [][]ink.Span
	for _, text := range sentences {
		for line := range strings.SplitSeq(text, "\n") {
			lines = append(lines, []ink.Span{{Look: ink.Look{Role: role}, Text: line}})
		}
	}
	return r.Tell(lines...)
}

func (r *REPL) width() int {
	cols, _ := r.Terminal.Size()
	return cols
}

func (r *REPL) height() int {
	_, rows := r.Terminal.Size()
	return rows
}

// room returns the rows available for pending output, so that running calls and the draft stay visible.
func (r *REPL) room() int {
	_, rows := r.Terminal.Size()
	return max(4, rows-9)
}

// status receives what the turn is doing from the renderer, on every change; the next tick shows the
// latest.
func (r *REPL) status(busy term.Doing) { r.busy.Store(&busy) }

// tick is the spinner's interval, frame the least time between two draws of a stream.
const (
	tick  = 120 * time.Millisecond
	frame = 16 * time.Millisecond
)

// settle is how long nothing is drawn after a resize. The terminal reflows its content, and during
// several resizes some, such as tmux, report each up to a quarter of a second late: anything drawn
// meanwhile lands anywhere.
const settle = 300 * time.Millisecond

// keepTicks is the number of ticks between saves of the unsent text.
const keepTicks = 5

// typingPause is the pause in typing before a question may be shown.
const typingPause = 600 * time.Millisecond

// elsewhereTicks is the number of ticks between polls for messages sent elsewhere.
const elsewhereTicks = 3

// Run reads and answers input until the user leaves. It returns nil after a normal exit,
// [ErrInterrupted] on Ctrl+C, or ctx's error. It runs first as if typed, unless empty; resume continues
// the unfinished turn.
func (r *REPL) Run(ctx context.Context, first lineedit.Draft, resume bool) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	r.startReading(ctx)
	err := errors.Join(r.wrote.loop(true), r.loop(ctx, first, resume))
	stop()
	r.keepDraft()
	err = errors.Join(err, r.wrote.loop(false))
	if r.Leaving != nil && errors.Is(err, ErrInterrupted) {
		r.Leaving()
	}
	r.stop()
	r.looking.Wait()
	r.stopReading()
	return errors.Join(err, r.render.Break(), r.Screen.EndLine(), r.Screen.Hide())
}

// Resume continues the unfinished turn of the current session. It is for After, when that has opened
// another session.
func (r *REPL) Resume(ctx context.Context) { r.start(ctx, "", r.Session().Continue) }

func (r *REPL) loop(ctx context.Context, first lineedit.Draft, resume bool) error {
	clock := time.NewTicker(tick)
	defer clock.Stop()
	pending := time.NewTimer(0) // fires when a draw is due
	defer pending.Stop()
	settled := time.NewTimer(0) // fires when the terminal's size is stable
	defer settled.Stop()
	drawn, due, ticks := time.Time{}, true, 0
	switch {
	case resume:
		r.start(ctx, "", r.Session().Continue)
	case !first.Empty():
		r.editor.Remember(first)
		if r.Sent != nil {
			r.Sent(first.Saved())
		}
		if err := r.begin(ctx, lineedit.Action{Kind: lineedit.Submit, Text: first.Text(), Draft: first}); err != nil {
			return err
		}
	}
	for {
		for len(r.pending) > 0 { // typed while nothing was read
			batch := r.pending[0]
			r.pending = r.pending[1:]
			if err := r.take(ctx, batch); err != nil {
				return ended(err)
			}
		}
		if r.resized {
			settled.Reset(settle)
			r.resized, r.settling = false, true
		}
		if due && !r.settling {
			if err := r.draw(); err != nil {
				return err
			}
			drawn = r.Now()
		}
		due = true
		var err error
		var withdrawn <-chan struct{}
		if r.open != nil {
			withdrawn = r.open.over
		}
		asks := r.asks
		if r.typing() { // text meant for the draft must not answer the question
			asks = nil
		}
		select {
		case batch := <-r.events:
			err = r.take(ctx, batch)
		case err = <-r.broken:
			if errors.Is(err, io.EOF) {
				return nil
			}
		case a := <-asks:
			err = r.put(ctx, a)
		case l := <-r.lends:
			err = r.lend(ctx, l)
		case l := <-r.looked:
			err = r.goOn(l)
		case c := <-r.copied:
			err = r.putCopied(c)
		case <-withdrawn: // answered elsewhere, or the asking call has stopped
			r.forgo(r.answer.Draft())
			r.open = nil
		case f := <-r.done:
			err = r.over(ctx, f)
		case f := <-r.suggested.found:
			r.offer(f)
		case <-r.wrote.ready:
			if wait := frame - r.Now().Sub(drawn); wait > 0 {
				pending.Reset(wait)
				due = false
			}
		case <-pending.C:
		case <-settled.C:
			r.settling = false
		case <-clock.C:
			if r.turn != nil {
				r.turn.frame++
			}
			r.remind()
			err = r.render.Settle()
			if ticks++; ticks%keepTicks == 0 {
				r.keepDraft()
			}
			if ticks%elsewhereTicks == 0 {
				err = errors.Join(err, r.takeElsewhere(ctx))
			}
			if r.suggested.more {
				r.suggest()
			}
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err != nil {
			return ended(err)
		}
	}
}

// ended converts the error that ends the loop.
func ended(err error) error {
	if errors.Is(err, errLeave) {
		return nil
	}
	return err
}

// errLeave ends the loop normally.
var errLeave = errors.New("leave")

// hide flushes the output and removes the live block.
func (r *REPL) hide() error { return errors.Join(r.wrote.flush(), r.Screen.Hide()) }

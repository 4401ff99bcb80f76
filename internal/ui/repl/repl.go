//go:build unix

// Package repl is the face of the program in a terminal: a prompt, what
// happens, and a prompt again, all in the terminal's own scrollback.
//
// One goroutine, [REPL.Run], owns everything that is drawn below the output:
// the prompt and its draft, the question being answered, the spinner. A turn
// runs beside it and is told to stop by its context. Typing never waits for a
// turn: what is typed while one runs is kept, and Enter queues it for the next
// step.
package repl

import (
	"context"
	"errors"
	"io"
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

// Session is the conversation the REPL is the face of.
type Session interface {
	Run(ctx context.Context, input lineedit.Draft, out event.Sink) (string, error)
	Continue(ctx context.Context, out event.Sink) (string, error)
	SwitchMode(ctx context.Context, mode string, out event.Sink) error
	// Change changes the mode while a turn runs, from its next step on.
	Change(ctx context.Context, mode string, out event.Sink) error
	// Looks reports whether an input can be answered while a turn runs, and Look
	// does so.
	Looks(input string) bool
	Look(ctx context.Context, input string, out event.Sink) error
	// Switches is the mode that an input switches to, or "".
	Switches(input string) string
	// Knows reports whether an input is a command that there is, or one for the shell.
	Knows(input string) bool
	// Unknown is why an input that looks like a command is none.
	Unknown(input string) error
	// Leaves reports whether an input is a command that ends the program.
	Leaves(input string) bool
	// Steer lets the running turn take more of the person's words between its
	// steps.
	Steer(take func() []chat.Words)
	ContextUsed() int
}

// Options are what a REPL is made of. All are required unless they say
// otherwise.
type Options struct {
	Terminal *tty.Terminal
	Screen   *tty.Screen
	Words    term.Words
	Palette  term.Palette
	Recolour func(light bool) term.Palette // optional: the palette for the background that the terminal tells
	ASCII    bool                          // the terminal shows no more than that

	Session func() Session // the one in use; a command may change it
	Status  func() (model, mode string)
	// Above, which may be nil, is the line above the prompt. It is printed where it is not what
	// was printed there last.
	Above func() string
	// Compact has the prompt be one short line.
	Compact bool
	Toggle  func() string            // the mode that Tab leads to
	Next    func(from string) string // the mode that Shift+Tab leads to
	Dir     string                   // as the prompt shows it
	// After, which may be nil, is told of a finished input and its error. It
	// may open another session. Its own error ends the program.
	After func(ctx context.Context, input string, err error) error
	// Complete, which may be nil, completes what stands before the cursor.
	Complete func(draft string, cursor int) (start int, choices []lineedit.Choice)
	// Suggest, which may be nil, says what to offer while a person types: what may
	// stand from start to the cursor. Find looks for it, beside the loop; more says
	// that it may find more later. A nil find offers nothing.
	Suggest func(draft string, cursor int) (start int, find func() (choices []lineedit.Choice, more bool))
	// Most is how many choices it offers at most: so many are not all there are.
	Most int
	// Lists, which may be nil, is what is chosen from in place of an input, such as
	// a command that wants an argument and has none. What is chosen is an input.
	Lists func(input string) (lineedit.Picker, bool)
	// Trust, which may be nil, reports whether one letter may trust the folder: it has
	// nothing that would count with it but the checks.
	Trust func() bool
	// Direct, which may be nil, sets that the commands that the person types behind ! run
	// unasked, in the person's own settings.
	Direct func() error
	// ThoughtLine has what the model thinks be one line.
	ThoughtLine bool
	// Vim has the keys of the draft be those of vim.
	Vim bool
	// Bound are the keys of the person's own, each with the key whose work it does.
	Bound map[lineedit.Key]lineedit.Key
	// CtrlCStops has the first Ctrl+C stop the turn that runs, and the second end the program.
	CtrlCStops bool
	// Keys, which may be nil, is what each key does, for people.
	Keys func() [][2]string
	// Dropped, which may be nil, is what stands in the line for a paste that is nothing but
	// the paths of files. Clipboard, which may be nil, is the picture in the clipboard.
	Dropped   func(pasted string) (lineedit.Draft, error)
	Clipboard func(context.Context) (*lineedit.Picture, error)
	// Edit, which may be nil, lets the person write text in another program.
	Edit func(ctx context.Context, text string) (string, error)
	// Sent, which may be nil, is told what the person sends; Earlier is what was
	// sent before, the newest last. Unsent, which may be nil, is told what is typed
	// and not sent, now and then and in the end.
	Sent    func(text string)
	Earlier func() []string
	Unsent  func(Unsent)
	// Notify, which may be nil, calls for a person who looks elsewhere.
	Notify func(text string)
	// Title, which may be nil, is told what there is to see from afar: that a question
	// is open, that a turn runs.
	Title func(asks, runs bool)
	// Elsewhere, which may be nil, is what the person has said in another place since
	// it was asked for last, one after the other.
	Elsewhere func() (Remote, bool)
	// Leaving, which may be nil, is told that the person ends the program while
	// something may still have to be stopped.
	Leaving func()
	Now     func() time.Time
}

// Remote is what a person said in another place.
type Remote struct {
	Text string
	Stop bool   // what runs is to be stopped; there is no text
	From string // where, for people
}

// ErrInterrupted reports that the person ended the program with Ctrl+C.
var ErrInterrupted = errors.New("interrupted")

// cutTurn is an [ErrInterrupted] while a turn ran.
type cutTurn struct{ error }

func (c cutTurn) Unwrap() error { return c.error }

// CutTurn reports whether err is an [ErrInterrupted] while a turn ran.
func CutTurn(err error) bool { return errors.As(err, new(cutTurn)) }

// REPL is the face. Use [New].
type REPL struct {
	Options
	render   *term.Renderer
	editor   lineedit.Editor
	answer   lineedit.Editor  // the line of the question that is open
	begun    Answer           // what is to stand there when that question is put
	picker   *lineedit.Picker // the list that is open
	typedAt  time.Time        // when there was something typed last
	swallow  time.Time        // until when an Enter is not taken: a number has just answered
	escaped  bool             // the last key was Esc, and there was nothing to stop or to throw away
	stash    lineedit.Draft   // that Ctrl+S put away
	stays    bool             // the last key was Ctrl+D, and a turn runs
	leaves   bool             // the person does when the turn has stopped
	resized  bool             // the terminal has another size
	settling bool             // and may be getting one more

	events  chan []tty.Event // what is typed
	broken  chan error       // why nothing is read any more
	reader  *reader
	pending [][]tty.Event // typed while nobody looked

	asks  chan ask      // from the turn
	lends chan lent     // from the turn
	done  chan finished // the turn is over

	turn    *turn
	busy    atomic.Pointer[term.Doing] // what the turn is busy with
	open    *dialogue                  // the question that is open
	above   head                       // of the prompt
	queue   queue
	focused bool
	tells   bool    // the terminal tells whether it has the focus
	told    [2]bool // what the title was last told: that something is asked, that a turn runs
	wrote   writes
	looking sync.WaitGroup // commands that are answered while a turn runs
	looked  chan looked    // those that were
	copied  chan copied    // what was in the clipboard
	kept    string         // what was last told to Unsent
	pastes  []string       // what stands as one unit in what was put back

	suggested suggestions
}

// turn is an input that is being worked on.
type turn struct {
	input  string
	cancel context.CancelFunc
	// stopped says that the person stopped it with Esc.
	stopped atomic.Bool
	began   time.Time
	frame   int
	mode    string // that the person wants from its next step on; "": the one it has
}

type finished struct {
	input string
	err   error
	told  bool // what went wrong has been shown
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
	r.editor.Replaced = func(d lineedit.Draft) { // to be found again
		if r.editor.Found(d); r.Sent != nil {
			r.Sent(d.Saved())
		}
	}
	return r
}

// Out is where what happens is shown.
func (r *REPL) Out() event.Sink { return r.render }

// Put puts a draft where the person types, unless something is there, and an answer at its
// question.
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

// Say shows lines of the program's own, between the paragraphs of what is being said.
func (r *REPL) Say(text string) error { return r.render.Between(text) }

// Recall shows an answer that was given before.
func (r *REPL) Recall(answer event.MessageAdded, bang bool) error {
	return r.render.Recall(answer, bang)
}

// RecallQuestion shows a question that was put before, and what was answered.
func (r *REPL) RecallQuestion(q uip.Request, answer string) error {
	return r.render.RecallQuestion(q, answer)
}

// Tell shows lines of the program's own, broken between words.
func (r *REPL) Tell(lines ...[]ink.Span) error { return r.render.Tell(lines...) }

// remark shows sentences of the program's own, broken between words.
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

// room is how many rows may stand between the stream and what runs, so that these and
// the draft can be seen.
func (r *REPL) room() int {
	_, rows := r.Terminal.Size()
	return max(4, rows-9)
}

// status is told by the renderer what the turn is busy with, as often as that
// changes; what is true at the next tick is shown.
func (r *REPL) status(busy term.Doing) { r.busy.Store(&busy) }

// tick is how often the spinner moves, and frame the least time between two
// pictures of what streams.
const (
	tick  = 120 * time.Millisecond
	frame = 16 * time.Millisecond
)

// settle is how long nothing is drawn after the terminal got another size. It lays out
// again what stands there, and while it gets one size after another some, such as tmux,
// tell of each up to a quarter of a second late: what is drawn meanwhile lands anywhere.
const settle = 300 * time.Millisecond

// keepTicks is how many ticks pass before what is typed is kept.
const keepTicks = 5

// typingPause is how long nothing was typed into a draft when a question may be put.
const typingPause = 600 * time.Millisecond

// elsewhereTicks is how many ticks pass before it is asked what was said elsewhere.
const elsewhereTicks = 3

// Run reads and answers until the person leaves. It returns nil if they left
// in good order, [ErrInterrupted] on Ctrl+C, or ctx's error. First, if not
// empty, is run as if it had been typed; with resume the turn that was left
// unfinished is taken up.
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

// Resume takes up the turn that the session in use was left with. It is for
// After, when it has opened another session.
func (r *REPL) Resume(ctx context.Context) { r.start(ctx, "", r.Session().Continue) }

func (r *REPL) loop(ctx context.Context, first lineedit.Draft, resume bool) error {
	clock := time.NewTicker(tick)
	defer clock.Stop()
	pending := time.NewTimer(0) // a picture is due
	defer pending.Stop()
	settled := time.NewTimer(0) // the terminal has the size it is to have
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
		for len(r.pending) > 0 { // typed while nobody looked
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
		if r.typing() { // what is meant for the draft must not answer it
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
		case <-withdrawn: // answered elsewhere, or what asked has stopped
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

// ended is the error of a loop that err ends.
func ended(err error) error {
	if errors.Is(err, errLeave) {
		return nil
	}
	return err
}

// errLeave ends the loop in good order.
var errLeave = errors.New("leave")

// hide shows what there is and takes the live block away.
func (r *REPL) hide() error { return errors.Join(r.wrote.flush(), r.Screen.Hide()) }

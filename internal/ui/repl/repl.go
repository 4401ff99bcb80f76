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
	// ChangeSettings changes the mode during a turn, from its next step on.
	ChangeSettings(ctx context.Context, mode string, out event.Sink) error
	// IsShowCommand reports whether an input can be answered during a turn, and Look answers it.
	IsShowCommand(input string) bool
	RunShowCommand(ctx context.Context, input string, out event.Sink) error
	// TargetMode returns the mode that an input switches to, or "".
	TargetMode(input string) string
	// IsKnownCommand reports whether an input is a known command or a shell command.
	IsKnownCommand(input string) bool
	// CheckUnknownCommand returns why an input that looks like a command is not one.
	CheckUnknownCommand(input string) error
	// IsExitCommand reports whether an input is a command that ends the program.
	IsExitCommand(input string) bool
	// SetSteering sets the function with which the running turn reads more of the user's messages between its
	// steps.
	SetSteering(take func() []chat.UserText)
	ContextUsed() int
}

// Options configures a REPL. All fields are required unless documented otherwise.
type Options struct {
	Terminal   *tty.Terminal
	Screen     *tty.Screen
	Translator term.Translator
	Palette    term.Palette
	PaletteFor func(light bool) term.Palette // optional: the palette for the terminal's reported background
	ASCII      bool                          // the terminal shows only ASCII

	Session func() Session // the current one; a command may change it
	Status  func() (model, mode string)
	// StatusLine, which may be nil, is the line above the prompt. It is printed where it is not what
	// was printed there last.
	StatusLine func() string
	// Compact has the prompt be one short line.
	Compact    bool
	ToggleMode func() string            // the mode that Tab switches to
	NextMode   func(from string) string // the mode that Shift+Tab switches to
	Dir        string                   // as the prompt shows it
	// AfterInput, which may be nil, is called with a finished input and its error. It may open another session.
	// Its own error ends the program.
	AfterInput func(ctx context.Context, input string, err error) error
	// Complete, which may be nil, completes the text before the cursor.
	Complete func(draft string, cursor int) (start int, choices []lineedit.Choice)
	// Suggest, which may be nil, returns what to offer while the user types, in place of the text from start
	// to the cursor. find searches beside the loop; more means that a later search may find more. A nil find
	// offers nothing.
	Suggest func(draft string, cursor int) (start int, find func() (choices []lineedit.Choice, more bool))
	// MaxCompletions is the limit of completions: a list that reaches it may be incomplete.
	MaxCompletions int
	// ListFor, which may be nil, returns the list to show for an input, such as a command without its required
	// argument. The chosen value is an input.
	ListFor func(input string) (lineedit.Picker, bool)
	// CanTrust, which may be nil, reports whether one letter may trust the folder: its settings have nothing
	// but checks.
	CanTrust func() bool
	// AllowDirect, which may be nil, allows the commands that the user types after ! without approval, in the
	// user's settings.
	AllowDirect func() error
	// ThoughtLine has what the model thinks be one line.
	ThoughtLine bool
	// Vim has the keys of the draft be those of vim.
	Vim bool
	// KeyBindings are the keys of the person's own, each with the key whose work it does.
	KeyBindings map[lineedit.Key]lineedit.Key
	// CtrlCStops makes the first Ctrl+C stop the running turn, and the second end the program.
	CtrlCStops bool
	// KeyHelp, which may be nil, describes each key for the user.
	KeyHelp func() [][2]string
	// DraftFromPaths, which may be nil, is what stands in the line for a paste that is nothing but
	// the paths of files. Clipboard, which may be nil, is the picture in the clipboard.
	DraftFromPaths func(pasted string) (lineedit.Draft, error)
	Clipboard      func(context.Context) (*lineedit.Picture, error)
	// Edit, which may be nil, opens text in the user's editor.
	Edit func(ctx context.Context, text string) (string, error)
	// Page, which may be nil, shows a long text in the user's pager, at this terminal.
	Page func(ctx context.Context, terminal *os.File, text string) error
	// OnSent, which may be nil, is called with what the user sends; Earlier returns what was sent before,
	// newest last. Unsent, which may be nil, is called regularly and at the end with the unsent text.
	OnSent     func(text string)
	Earlier    func() []string
	SaveUnsent func(UnsentText)
	// Notify, which may be nil, notifies a user who looks elsewhere.
	Notify func(text string)
	// SetTitle, which may be nil, updates the window title: a question is open, a turn runs.
	SetTitle func(asks, runs bool)
	// NextRemote, which may be nil, returns what the user sent elsewhere since the last call, one message at
	// a time.
	NextRemote func() (RemoteMessage, bool)
	// OnLeave, which may be nil, is called when the user ends the program while something may still have to
	// be stopped.
	OnLeave func()
	Now     func() time.Time
}

// RemoteMessage is a message that the user sent elsewhere.
type RemoteMessage struct {
	Text string
	Stop bool   // stop the turn; there is no text
	From string // where, for the user
}

// ErrInterrupted reports that the user ended the program with Ctrl+C.
var ErrInterrupted = errors.New("interrupted")

// turnInterrupted is an [ErrInterrupted] during a turn.
type turnInterrupted struct{ error }

func (c turnInterrupted) Unwrap() error { return c.error }

// IsTurnInterrupted reports whether err is an [ErrInterrupted] during a turn.
func IsTurnInterrupted(err error) bool { return errors.As(err, new(turnInterrupted)) }

// REPL is the interactive face. Use [New].
type REPL struct {
	Options
	renderer         *term.Renderer
	editor           lineedit.Editor
	answer           lineedit.Editor  // the open question's line
	restoredAnswer   Answer           // answer to restore at its question
	picker           *lineedit.Picker // the open list
	typedAt          time.Time        // time of the last key with text typed
	ignoreEnterUntil time.Time        // ignore Enter until then: a number has just answered
	escPressed       bool             // the last key was Esc, with nothing to stop or discard
	stash            lineedit.Draft   // draft saved by Ctrl+S
	ctrlDPressed     bool             // the last key was Ctrl+D, during a turn
	leaveAfterTurn   bool             // leave once the turn has stopped
	resized          bool             // the terminal's size has changed
	resizing         bool             // and may change again

	events  chan []tty.Event // keyboard input
	readErr chan error       // why reading ended
	reader  *reader
	pending [][]tty.Event // typed while nothing was read

	questions    chan pendingQuestion // from the turn
	lendRequests chan lendRequest     // from the turn
	turnDone     chan turnResult      // the turn is over

	turn         *turn
	activity     atomic.Pointer[term.Activity] // what the turn is doing
	question     *dialogue                     // the open question
	header       headerLine                    // of the prompt
	queue        queue
	focused      bool
	reportsFocus bool    // the terminal reports its focus
	lastTitle    [2]bool // last title: a question is open, a turn runs
	output       outputBuffer
	showCommands sync.WaitGroup        // commands answered during a turn
	showResults  chan showResult       // those already answered
	clipboard    chan clipboardPicture // what was in the clipboard
	savedText    string                // last text passed to Unsent
	pastes       []string              // pastes in the restored text

	completions completionSearch
}

// turn is a running input.
type turn struct {
	input  string
	cancel context.CancelFunc
	// stopped is set if the user stopped the turn with Esc.
	stopped atomic.Bool
	started time.Time
	frame   int
	mode    string // mode that the user chose for the next step; "" keeps the current mode
}

type turnResult struct {
	input    string
	err      error
	errShown bool // the error was shown
}

// New returns a REPL.
func New(o Options) *REPL {
	r := &REPL{
		Options: o, focused: true,
		events: make(chan []tty.Event), readErr: make(chan error, 1),
		questions: make(chan pendingQuestion), showResults: make(chan showResult), clipboard: make(chan clipboardPicture),
		lendRequests: make(chan lendRequest), turnDone: make(chan turnResult, 1),
		completions: completionSearch{results: make(chan completion, 1)},
	}
	r.output.screen, r.output.ready = o.Screen, make(chan struct{}, 1)
	r.renderer = term.New(term.Options{
		Stream: r.output.add, Width: r.width, Palette: o.Palette, Translator: o.Translator, OnActivity: r.setActivity,
		Now: o.Now, ASCII: o.ASCII, ThoughtLine: o.ThoughtLine, Room: r.pendingRows, Height: r.height,
	})
	for _, line := range []*lineedit.Editor{&r.editor, &r.answer} {
		line.Vim = o.Vim
		line.Complete, line.Earlier, line.Style, line.MaxChoices = o.Complete, o.Earlier, r.editorStyle(), o.MaxCompletions
		line.SearchLabel, line.NotFoundLabel, line.NoOtherLabel = o.Translator.T("search history: "),
			o.Translator.T("not in history: "), o.Translator.T("no more in history: ")
	}
	r.answer.IsQuestion = true
	r.editor.OnReplaced = func(d lineedit.Draft) { // for the history
		if r.editor.AddSearchable(d); r.OnSent != nil {
			r.OnSent(d.DiskText())
		}
	}
	return r
}

// Sink returns the sink that shows events.
func (r *REPL) Sink() event.Sink { return r.renderer }

// RestoreUnsent sets the draft, unless something is typed, and an answer for its question.
func (r *REPL) RestoreUnsent(typed UnsentText) {
	switch {
	case !r.editor.IsEmpty():
	case !typed.Again.IsEmpty():
		r.editor.SetDraft(typed.Again)
	default:
		r.editor.SetFolded(typed.Draft, typed.Pastes)
	}
	r.restoredAnswer, r.pastes = typed.Answer, typed.Pastes
}

// Print prints coder's own lines, between the paragraphs of a reply.
func (r *REPL) Print(text string) error { return r.renderer.InsertBetween(text) }

// ShowAnswer shows an earlier answer.
func (r *REPL) ShowAnswer(answer event.MessageAdded, bang bool) error {
	return r.renderer.ShowAnswer(answer, bang)
}

// ShowQuestion shows an earlier question and its answer.
func (r *REPL) ShowQuestion(q uip.Request, answer string) error {
	return r.renderer.ShowQuestion(q, answer)
}

// PrintLines prints coder's own lines, wrapped between words.
func (r *REPL) PrintLines(lines ...[]ink.Span) error { return r.renderer.PrintLines(lines...) }

// printNote prints coder's own sentences, wrapped between words.
func (r *REPL) printNote(role ink.Role, sentences ...string) error {
	var lines [][]ink.Span
	for _, text := range sentences {
		for line := range strings.SplitSeq(text, "\n") {
			lines = append(lines, []ink.Span{{Style: ink.Style{Role: role}, Text: line}})
		}
	}
	return r.PrintLines(lines...)
}

func (r *REPL) width() int {
	cols, _ := r.Terminal.Size()
	return cols
}

func (r *REPL) height() int {
	_, rows := r.Terminal.Size()
	return rows
}

// pendingRows returns the rows available for pending output, so that running calls and the draft stay visible.
func (r *REPL) pendingRows() int {
	_, rows := r.Terminal.Size()
	return max(4, rows-9)
}

// setActivity receives what the turn is doing from the renderer, on every change; the next tick shows the
// latest.
func (r *REPL) setActivity(busy term.Activity) { r.activity.Store(&busy) }

// tickInterval is the spinner's interval, frame the least time between two draws of a stream.
const (
	tickInterval  = 120 * time.Millisecond
	frameInterval = 16 * time.Millisecond
)

// resizeDelay is how long nothing is drawn after a resize. The terminal reflows its content, and during
// several resizes some, such as tmux, report each up to a quarter of a second late: anything drawn
// meanwhile lands anywhere.
const resizeDelay = 300 * time.Millisecond

// saveTicks is the number of ticks between saves of the unsent text.
const saveTicks = 5

// typingPause is the pause in typing before a question may be shown.
const typingPause = 600 * time.Millisecond

// remoteTicks is the number of ticks between polls for messages sent elsewhere.
const remoteTicks = 3

// Run reads and answers input until the user leaves. It returns nil after a normal exit,
// [ErrInterrupted] on Ctrl+C, or ctx's error. It runs first as if typed, unless empty; resume continues
// the unfinished turn.
func (r *REPL) Run(ctx context.Context, first lineedit.Draft, resume bool) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	r.startReading(ctx)
	err := errors.Join(r.output.setLoop(true), r.loop(ctx, first, resume))
	stop()
	r.saveDraft()
	err = errors.Join(err, r.output.setLoop(false))
	if r.OnLeave != nil && errors.Is(err, ErrInterrupted) {
		r.OnLeave()
	}
	r.endTurn()
	r.showCommands.Wait()
	r.stopReading()
	return errors.Join(err, r.renderer.EndReply(), r.Screen.EndLine(), r.Screen.Hide())
}

// Resume continues the unfinished turn of the current session. It is for After, when that has opened
// another session.
func (r *REPL) Resume(ctx context.Context) { r.startTurn(ctx, "", r.Session().Continue) }

func (r *REPL) loop(ctx context.Context, first lineedit.Draft, resume bool) error {
	clock := time.NewTicker(tickInterval)
	defer clock.Stop()
	pending := time.NewTimer(0) // fires when a draw is due
	defer pending.Stop()
	settled := time.NewTimer(0) // fires when the terminal's size is stable
	defer settled.Stop()
	drawn, due, ticks := time.Time{}, true, 0
	switch {
	case resume:
		r.startTurn(ctx, "", r.Session().Continue)
	case !first.IsEmpty():
		r.editor.Remember(first)
		if r.OnSent != nil {
			r.OnSent(first.DiskText())
		}
		if err := r.startInput(ctx, lineedit.Action{Kind: lineedit.Submit, Text: first.Text(), Draft: first}); err != nil {
			return err
		}
	}
	for {
		for len(r.pending) > 0 { // typed while nothing was read
			batch := r.pending[0]
			r.pending = r.pending[1:]
			if err := r.handleEvents(ctx, batch); err != nil {
				return loopError(err)
			}
		}
		if r.resized {
			settled.Reset(resizeDelay)
			r.resized, r.resizing = false, true
		}
		if due && !r.resizing {
			if err := r.draw(); err != nil {
				return err
			}
			drawn = r.Now()
		}
		due = true
		var err error
		var withdrawn <-chan struct{}
		if r.question != nil {
			withdrawn = r.question.withdrawn
		}
		asks := r.questions
		if r.isTyping() { // text meant for the draft must not answer the question
			asks = nil
		}
		select {
		case batch := <-r.events:
			err = r.handleEvents(ctx, batch)
		case err = <-r.readErr:
			if errors.Is(err, io.EOF) {
				return nil
			}
		case a := <-asks:
			err = r.openQuestion(ctx, a)
		case l := <-r.lendRequests:
			err = r.lend(ctx, l)
		case l := <-r.showResults:
			err = r.reopenQuestion(l)
		case c := <-r.clipboard:
			err = r.insertClipboard(c)
		case <-withdrawn: // answered elsewhere, or the asking call has stopped
			r.keepUnused(r.answer.Draft())
			r.question = nil
		case f := <-r.turnDone:
			err = r.handleTurnEnd(ctx, f)
		case f := <-r.completions.results:
			r.showCompletions(f)
		case <-r.output.ready:
			if wait := frameInterval - r.Now().Sub(drawn); wait > 0 {
				pending.Reset(wait)
				due = false
			}
		case <-pending.C:
		case <-settled.C:
			r.resizing = false
		case <-clock.C:
			if r.turn != nil {
				r.turn.frame++
			}
			r.remindQuestion()
			err = r.renderer.FlushOverdue()
			if ticks++; ticks%saveTicks == 0 {
				r.saveDraft()
			}
			if ticks%remoteTicks == 0 {
				err = errors.Join(err, r.takeRemote(ctx))
			}
			if r.completions.incomplete {
				r.searchCompletions()
			}
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err != nil {
			return loopError(err)
		}
	}
}

// loopError converts the error that ends the loop.
func loopError(err error) error {
	if errors.Is(err, errLeave) {
		return nil
	}
	return err
}

// errLeave ends the loop normally.
var errLeave = errors.New("leave")

// hideLive flushes the output and removes the live block.
func (r *REPL) hideLive() error { return errors.Join(r.output.flush(), r.Screen.Hide()) }

//go:build unix

// Package tty is the terminal: raw mode, keys as events, and the one writer to
// the screen.
//
// What it promises:
//   - Whoever calls [Terminal.Restore], at any time and any number of times,
//     has the terminal back as it was found.
//   - No goroutine outlives the call that needed it.
//   - [Screen] writes everything once and in order into the terminal's own
//     scrollback. Only the block being edited is ever drawn again, and the
//     cursor never goes above it.
package tty

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// ErrNotTerminal says that input or output is a file or a pipe.
var ErrNotTerminal = errors.New("not a terminal")

const (
	escDelay = 50 * time.Millisecond

	// stopDelay is how long a signal that stops us may take to do so.
	stopDelay = 250 * time.Millisecond

	// What a terminal is asked for: to tell pastes from typing, and to say
	// when its window gets and loses the focus.
	asksOn  = "\x1b[?2004h\x1b[?1004h"
	asksOff = "\x1b[?2004l\x1b[?1004l"

	// And to tell Shift+Enter from Enter, in either of the two ways that some
	// know.
	keysOn  = "\x1b[>1u\x1b[>4;1m"
	keysOff = "\x1b[<u\x1b[>4;0m"

	// The title of the window is kept before ours is shown, and shown again in the end.
	titleKept = "\x1b[22;0t"
	titleBack = "\x1b[23;0t"

	// The colour behind the text. Nobody waits for the answer; one that is under way when
	// the terminal is let go of is waited for so long, lest it be typed into what comes next.
	askBackground = "\x1b]11;?\x1b\\"
	answerTime    = 500 * time.Millisecond
	answerDelay   = 100 * time.Millisecond

	fallbackCols, fallbackRows = 80, 24
)

// Options of a terminal. The zero Options are good for a local one.
type Options struct {
	// EscDelay is how long an escape character waits for the rest of a
	// sequence before it is the Esc key; 50 ms if zero. Over a slow line it
	// must be longer than the gaps between bytes.
	EscDelay time.Duration
	// Keys says that the terminal can be asked to tell keys apart that are the same
	// to others.
	Keys bool
	// Title, if set, is what the title of the window says meanwhile: see [Terminal.Title].
	Title string
	// Lines says that no more than lines are printed: the terminal is asked for
	// nothing, and ends lines by itself.
	Lines bool
	// Background says to ask for the colour behind the text. The answer is an event.
	Background bool
	// Writer, if set, is what writes to the terminal, which may give up on one
	// that takes nothing.
	Writer io.Writer
}

// Terminal is where a person sits. Its methods may be called by several
// goroutines, except that only one at a time may [Terminal.Read].
type Terminal struct {
	in           *os.File
	out          io.Writer
	inFD, outFD  int
	delay        time.Duration
	lines, echo  bool                       // see Options.Lines; it showed what was typed
	on, off      string                     // what it is asked for, and what takes that back
	entering     sync.Mutex                 // raw mode
	found        atomic.Pointer[term.State] // how it was before raw mode; nil if not raw
	signals      chan os.Signal             // the window changed, or the process goes on
	happened     chan Event                 // what they meant, to be told by the next Read
	wakeR, wakeW *os.File                   // a byte in it wakes the reader
	decoder      Decoder
	escaped      time.Time // when a bare Esc was last made out by waiting
	ask          bool      // for the background
	asked        time.Time // when it was and no answer has come; zero otherwise
}

// Open takes hold of a terminal. It changes nothing about it yet.
func Open(in, out *os.File, o Options) (*Terminal, error) {
	t := &Terminal{in: in, out: out, inFD: int(in.Fd()), outFD: int(out.Fd()), delay: o.EscDelay, lines: o.Lines, ask: o.Background}
	if t.delay <= 0 {
		t.delay = escDelay
	}
	if o.Writer != nil {
		t.out = o.Writer
	}
	if t.on, t.off = asksOn, asksOff; o.Keys {
		t.on, t.off = asksOn+keysOn, asksOff+keysOff
	}
	if o.Lines {
		t.on, t.off = "", ""
	}
	if o.Title != "" {
		t.on, t.off = t.on+titleKept+titled(o.Title), t.off+titleBack
	}
	if !term.IsTerminal(t.inFD) || !term.IsTerminal(t.outFD) {
		return nil, ErrNotTerminal
	}
	modes, err := unix.IoctlGetTermios(t.inFD, getModes)
	if err != nil {
		return nil, fmt.Errorf("open terminal: %w", err)
	}
	t.echo = modes.Lflag&unix.ECHO != 0
	if t.wakeR, t.wakeW, err = os.Pipe(); err != nil {
		return nil, fmt.Errorf("open terminal: %w", err)
	}
	t.signals = make(chan os.Signal, 4)
	t.happened = make(chan Event, 4)
	signal.Notify(t.signals, unix.SIGWINCH, unix.SIGCONT)
	return t, nil
}

// Close restores the terminal and lets go of it. No Read may be under way.
func (t *Terminal) Close() error {
	signal.Stop(t.signals)
	for left := answerTime - time.Since(t.asked); !t.asked.IsZero() && left > 0 && t.found.Load() != nil; { // an answer may be under way
		_, input, err := t.poll(min(left, answerDelay))
		if !input || err != nil {
			break
		}
		t.take()
	}
	err := t.Restore()
	t.wakeR.Close()
	t.wakeW.Close()
	return err
}

// Raw makes the terminal give every key as it is pressed, and tell pastes from
// typing. It does nothing if that is so already.
func (t *Terminal) Raw() error {
	t.entering.Lock()
	defer t.entering.Unlock()
	if t.found.Load() != nil {
		return nil
	}
	found, err := term.GetState(t.inFD)
	if err != nil {
		return fmt.Errorf("read the terminal mode: %w", err)
	}
	t.found.Store(found) // first, so that there is no moment from which Restore could not return
	if err := t.enter(); err != nil {
		t.found.Store(nil)
		return fmt.Errorf("set raw mode: %w", err)
	}
	if t.ask {
		t.ask, t.asked = false, time.Now()
		return t.say(t.on + askBackground)
	}
	return t.say(t.on)
}

// enter sets raw mode. Where lines are printed the terminal still ends them.
func (t *Terminal) enter() error {
	if _, err := term.MakeRaw(t.inFD); err != nil || !t.lines {
		return err
	}
	modes, err := unix.IoctlGetTermios(t.inFD, getModes)
	if err != nil {
		return err
	}
	modes.Oflag |= unix.OPOST
	return unix.IoctlSetTermios(t.inFD, setModes, modes)
}

// Echoed reports whether the terminal showed what was typed when it was opened:
// those that are part of an editor do so themselves.
func (t *Terminal) Echoed() bool { return t.echo }

// Restore gives the terminal back as it was before [Terminal.Raw]. It does
// nothing if that is so already, and takes no lock: it may be called on any way
// out, a panic included.
func (t *Terminal) Restore() error {
	found := t.found.Swap(nil)
	if found == nil {
		return nil
	}
	err := term.Restore(t.inFD, found)
	if err != nil {
		err = fmt.Errorf("restore terminal: %w", err)
	}
	return errors.Join(err, t.say(t.off))
}

// Title has the title of the window say something else, if it was given one.
func (t *Terminal) Title(text string) error {
	if !strings.Contains(t.off, titleBack) || t.found.Load() == nil {
		return nil
	}
	return t.say(titled(text))
}

// titled is what gives the window a title, which is text and nothing else.
func titled(text string) string {
	return "\x1b]0;" + strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, text) + "\x1b\\"
}

func (t *Terminal) say(s string) error {
	if _, err := io.WriteString(t.out, s); err != nil {
		return fmt.Errorf("write to terminal: %w", err)
	}
	return nil
}

// Size is the terminal's size now; 80 by 24 if it does not know.
func (t *Terminal) Size() (cols, rows int) {
	cols, rows, err := term.GetSize(t.outFD)
	if err != nil || cols <= 0 || rows <= 0 {
		return fallbackCols, fallbackRows
	}
	return cols, rows
}

// Suspend restores the terminal, stops the process and its group as Ctrl+Z
// does, and sets raw mode again when it goes on, which the next Read tells as
// [Resumed]. Where nobody could let it go on it does not stop.
func (t *Terminal) Suspend() error {
	wasRaw := t.found.Load() != nil
	if err := t.Restore(); err != nil {
		return err
	}
	goesOn := make(chan os.Signal, 1)
	signal.Notify(goesOn, unix.SIGCONT)
	defer signal.Stop(goesOn)
	if err := unix.Kill(0, unix.SIGTSTP); err != nil {
		return fmt.Errorf("suspend: %w", err)
	}
	if !stopped(goesOn) {
		t.note(Resumed{}) // nobody else will say so
	}
	if !wasRaw {
		return nil
	}
	return t.Raw()
}

// Forget drops that the process was stopped and went on, while no Read was under way: another
// program had the terminal, and what stands there is about to be drawn.
func (t *Terminal) Forget() {
	for range len(t.signals) {
		select {
		case s := <-t.signals:
			if s != unix.SIGCONT {
				t.note(Resize{})
			}
		default:
		}
	}
}

// stopped waits until the process goes on, and reports whether it was stopped
// at all. The second wait is for the signal of a process that has just gone on,
// to which it seems that the first wait has taken a long time.
func stopped(goesOn <-chan os.Signal) bool {
	for range 2 {
		select {
		case <-goesOn:
			return true
		case <-time.After(stopDelay):
		}
	}
	return false
}

// Read waits for input and returns all that arrived together, so that the
// screen need be drawn only once for it. It ends with ctx's error when ctx
// ends, and with [io.EOF] when the terminal is gone.
func (t *Terminal) Read(ctx context.Context) ([]Event, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	done := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() { t.watch(ctx, done) })
	defer watcher.Wait()
	defer close(done)
	for {
		events, err := t.next(ctx)
		if len(events) > 0 || err != nil {
			return events, err
		}
	}
}

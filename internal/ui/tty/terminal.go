//go:build unix

// Package tty handles the terminal: raw mode, keys as events, and the only writer to the screen.
//
// Guarantees:
//   - [Terminal.Restore], called at any time and any number of times,
//     returns the terminal to its original state.
//   - No goroutine outlives the call that needed it.
//   - [Screen] writes everything once and in order into the terminal's own
//     scrollback. Only the block being edited is ever redrawn, and the
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

// ErrNotTerminal reports that input or output is a file or a pipe.
var ErrNotTerminal = errors.New("not a terminal")

const (
	escDelay = 50 * time.Millisecond

	// stopDelay is how long a stop signal may take to stop the process.
	stopDelay = 250 * time.Millisecond

	// Requests to the terminal: bracketed pastes, and reports of the window's focus.
	asksOn  = "\x1b[?2004h\x1b[?1004h"
	asksOff = "\x1b[?2004l\x1b[?1004l"

	// Also distinguish Shift+Enter from Enter, in either of the two ways that some terminals support.
	keysOn  = "\x1b[>1u\x1b[>4;1m"
	keysOff = "\x1b[<u\x1b[>4;0m"

	// The window title is saved before ours is shown, and restored at the end.
	titleKept = "\x1b[22;0t"
	titleBack = "\x1b[23;0t"

	// The background color. Nothing waits for the reply; only on release does the terminal wait this long
	// for a pending one, so that it is not typed into the next program.
	askBackground = "\x1b]11;?\x1b\\"
	answerTime    = 500 * time.Millisecond
	answerDelay   = 100 * time.Millisecond

	fallbackCols, fallbackRows = 80, 24
)

// Options of a terminal. The zero Options suit a local one.
type Options struct {
	// EscDelay is how long an escape character waits for the rest of a sequence before it counts as the Esc
	// key; 0 means 50 ms. Over a slow line it must exceed the gaps between bytes.
	EscDelay time.Duration
	// Keys requests that the terminal distinguish keys that otherwise send the same bytes.
	Keys bool
	// Title, if set, is the window title meanwhile: see [Terminal.Title].
	Title string
	// Lines limits the terminal to printed lines: it receives no requests, and ends lines by itself.
	Lines bool
	// Background requests the background color. The reply is an event.
	Background bool
	// Writer, if set, writes to the terminal. It may give up on a terminal that accepts no output.
	Writer io.Writer
}

// Terminal is the user's terminal. Its methods are safe for concurrent use, except that only one
// goroutine at a time may [Terminal.Read].
type Terminal struct {
	in           *os.File
	out          io.Writer
	inFD, outFD  int
	delay        time.Duration
	lines, echo  bool                       // see Options.Lines; it echoed typed text
	on, off      string                     // the requests, and their reverse
	entering     sync.Mutex                 // guards entering raw mode
	found        atomic.Pointer[term.State] // the state before raw mode; nil if not raw
	signals      chan os.Signal             // the window changed, or the process continues
	happened     chan Event                 // their events, for the next Read
	wakeR, wakeW *os.File                   // a byte in the pipe wakes the reader
	decoder      Decoder
	escaped      time.Time // when a timeout last decided that an Esc was bare
	ask          bool      // request the background
	asked        time.Time // time of the unanswered request; otherwise zero
}

// Open opens a terminal. It changes nothing about it yet.
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

// Close restores and releases the terminal. No Read may be running.
func (t *Terminal) Close() error {
	signal.Stop(t.signals)
	for left := answerTime - time.Since(t.asked); !t.asked.IsZero() && left > 0 && t.found.Load() != nil; { // a reply may be pending
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

// Raw makes the terminal send every key as it is pressed, and distinguish pastes from typing. It does
// nothing if raw mode is on.
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
	t.found.Store(found) // first, so that Restore can undo it at any moment
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

// enter sets raw mode. With printed lines the terminal still ends them.
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

// Echoed reports whether the terminal echoed typed text when it was opened: a terminal inside an editor
// echoes by itself.
func (t *Terminal) Echoed() bool { return t.echo }

// Restore returns the terminal to its state before [Terminal.Raw]. It does nothing if raw mode is off,
// and takes no lock: it may be called on any way out, including a panic.
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

// Title changes the window title, if it was set.
func (t *Terminal) Title(text string) error {
	if !strings.Contains(t.off, titleBack) || t.found.Load() == nil {
		return nil
	}
	return t.say(titled(text))
}

// titled returns the sequence that sets the window title, which is plain text.
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

// Size returns the terminal's current size; 80 by 24 if unknown.
func (t *Terminal) Size() (cols, rows int) {
	cols, rows, err := term.GetSize(t.outFD)
	if err != nil || cols <= 0 || rows <= 0 {
		return fallbackCols, fallbackRows
	}
	return cols, rows
}

// Suspend restores the terminal, stops the process and its group as Ctrl+Z does, and sets raw mode again
// on continuation, which the next Read reports as [Resumed]. If nobody could continue the process it
// does not stop.
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
		t.note(Resumed{}) // no signal reports it
	}
	if !wasRaw {
		return nil
	}
	return t.Raw()
}

// Forget drops the event of a stop and continuation while no Read was running: another program had the
// terminal, and everything is about to be redrawn.
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

// stopped waits until the process continues, and reports whether it was stopped at all. The second wait
// is for a process that has just continued: its first wait may have timed out before the signal.
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

// Read waits for input and returns everything that arrived together, so that the screen is redrawn only
// once for it. It ends with ctx's error when ctx ends, and with [io.EOF] when the terminal is lost.
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

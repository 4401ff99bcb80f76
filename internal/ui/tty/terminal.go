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
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"coder/internal/core/message"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// ErrNotTerminal reports that input or output is a file or a pipe.
var ErrNotTerminal = errors.New("not a terminal")

const (
	escDelay = 50 * time.Millisecond

	// stopTimeout is how long a stop signal may take to stop the process.
	stopTimeout = 250 * time.Millisecond

	// Requests to the terminal: bracketed pastes, and reports of the window's focus.
	reportsOn  = "\x1b[?2004h\x1b[?1004h"
	reportsOff = "\x1b[?2004l\x1b[?1004l"

	// Also distinguish Shift+Enter from Enter, in either of the two ways that some terminals support.
	keyProtocolOn  = "\x1b[>1u\x1b[>4;1m"
	keyProtocolOff = "\x1b[<u\x1b[>4;0m"

	// The window title is saved before ours is shown, and restored at the end.
	saveTitle    = "\x1b[22;0t"
	restoreTitle = "\x1b[23;0t"

	// The background color. Nothing waits for the reply; only on release does the terminal wait this long
	// for a pending one, so that it is not typed into the next program.
	askBackground = "\x1b]11;?\x1b\\"
	answerTimeout = 500 * time.Millisecond
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
	// Title, if set, is the window title meanwhile: see [Terminal.SetTitle].
	Title string
	// LinesOnly limits the terminal to printed lines: it receives no requests, and ends lines by itself.
	LinesOnly bool
	// Background requests the background color. The reply is an event.
	Background bool
	// Writer, if set, writes to the terminal. It may give up on a terminal that accepts no output.
	Writer io.Writer
}

// Terminal is the user's terminal. Its methods are safe for concurrent use, except that only one
// goroutine at a time may [Terminal.Read].
type Terminal struct {
	in                    *os.File
	out                   io.Writer
	inFD, outFD           int
	delay                 time.Duration
	linesOnly, echoed     bool                       // see Options.LinesOnly; it echoed typed text
	enableSeq, disableSeq string                     // the requests, and their reverse
	rawMu                 sync.Mutex                 // guards entering raw mode
	savedState            atomic.Pointer[term.State] // the state before raw mode; nil if not raw
	signals               chan os.Signal             // the window changed, or the process continues
	events                chan Event                 // their events, for the next Read
	wakeR, wakeW          *os.File                   // a byte in the pipe wakes the reader
	decoder               Decoder
	escapedAt             time.Time // when a timeout last decided that an Esc was bare
	wantsBackground       bool      // request the background
	askedAt               time.Time // time of the unanswered request; otherwise zero
}

// Open opens a terminal. It changes nothing about it yet.
func Open(in, out *os.File, o Options) (*Terminal, error) {
	t := &Terminal{in: in, out: out, inFD: int(in.Fd()), outFD: int(out.Fd()), delay: o.EscDelay, linesOnly: o.LinesOnly,
		wantsBackground: o.Background}
	if t.delay <= 0 {
		t.delay = escDelay
	}
	if o.Writer != nil {
		t.out = o.Writer
	}
	if t.enableSeq, t.disableSeq = reportsOn, reportsOff; o.Keys {
		t.enableSeq, t.disableSeq = reportsOn+keyProtocolOn, reportsOff+keyProtocolOff
	}
	if o.LinesOnly {
		t.enableSeq, t.disableSeq = "", ""
	}
	if o.Title != "" {
		t.enableSeq, t.disableSeq = t.enableSeq+saveTitle+titleSequence(o.Title), t.disableSeq+restoreTitle
	}
	if !term.IsTerminal(t.inFD) || !term.IsTerminal(t.outFD) {
		return nil, ErrNotTerminal
	}
	modes, err := unix.IoctlGetTermios(t.inFD, ioctlGetModes)
	if err != nil {
		return nil, message.Errorf("open terminal: %w", err)
	}
	t.echoed = modes.Lflag&unix.ECHO != 0
	if t.wakeR, t.wakeW, err = os.Pipe(); err != nil {
		return nil, message.Errorf("open terminal: %w", err)
	}
	t.signals = make(chan os.Signal, 4)
	t.events = make(chan Event, 4)
	signal.Notify(t.signals, unix.SIGWINCH, unix.SIGCONT)
	return t, nil
}

// Close restores and releases the terminal. No Read may be running.
func (t *Terminal) Close() error {
	signal.Stop(t.signals)
	// a reply may be pending
	for left := answerTimeout - time.Since(t.askedAt); !t.askedAt.IsZero() && left > 0 && t.savedState.Load() != nil; {
		_, input, err := t.poll(min(left, answerDelay))
		if !input || err != nil {
			break
		}
		t.readInput()
	}
	err := t.Restore()
	t.wakeR.Close()
	t.wakeW.Close()
	return err
}

// SetRaw makes the terminal send every key as it is pressed, and distinguish pastes from typing. It does
// nothing if raw mode is on.
func (t *Terminal) SetRaw() error {
	t.rawMu.Lock()
	defer t.rawMu.Unlock()
	if t.savedState.Load() != nil {
		return nil
	}
	found, err := term.GetState(t.inFD)
	if err != nil {
		return message.Errorf("read the terminal mode: %w", err)
	}
	t.savedState.Store(found) // first, so that Restore can undo it at any moment
	if err := t.enterRaw(); err != nil {
		t.savedState.Store(nil)
		return message.Errorf("set raw mode: %w", err)
	}
	if t.wantsBackground {
		t.wantsBackground, t.askedAt = false, time.Now()
		return t.writeString(t.enableSeq + askBackground)
	}
	return t.writeString(t.enableSeq)
}

// enterRaw sets raw mode. With printed lines the terminal still ends them.
func (t *Terminal) enterRaw() error {
	if _, err := term.MakeRaw(t.inFD); err != nil || !t.linesOnly {
		return err
	}
	modes, err := unix.IoctlGetTermios(t.inFD, ioctlGetModes)
	if err != nil {
		return err
	}
	modes.Oflag |= unix.OPOST
	return unix.IoctlSetTermios(t.inFD, ioctlSetModes, modes)
}

// HadEcho reports whether the terminal echoed typed text when it was opened: a terminal inside an editor
// echoes by itself.
func (t *Terminal) HadEcho() bool { return t.echoed }

// Restore returns the terminal to its state before [Terminal.SetRaw]. It does nothing if raw mode is off,
// and takes no lock: it may be called on any way out, including a panic.
func (t *Terminal) Restore() error {
	found := t.savedState.Swap(nil)
	if found == nil {
		return nil
	}
	err := term.Restore(t.inFD, found)
	if err != nil {
		err = message.Errorf("restore terminal: %w", err)
	}
	return errors.Join(err, t.writeString(t.disableSeq))
}

// SetTitle changes the window title, if it was set.
func (t *Terminal) SetTitle(text string) error {
	if !strings.Contains(t.disableSeq, restoreTitle) || t.savedState.Load() == nil {
		return nil
	}
	return t.writeString(titleSequence(text))
}

// titleSequence returns the sequence that sets the window title, which is plain text.
func titleSequence(text string) string {
	return "\x1b]0;" + strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, text) + "\x1b\\"
}

func (t *Terminal) writeString(s string) error {
	if _, err := io.WriteString(t.out, s); err != nil {
		return message.Errorf("write to terminal: %w", err)
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
	wasRaw := t.savedState.Load() != nil
	if err := t.Restore(); err != nil {
		return err
	}
	goesOn := make(chan os.Signal, 1)
	signal.Notify(goesOn, unix.SIGCONT)
	defer signal.Stop(goesOn)
	if err := unix.Kill(0, unix.SIGTSTP); err != nil {
		return message.Errorf("suspend: %w", err)
	}
	if !waitStopped(goesOn) {
		t.queueEvent(Resumed{}) // no signal reports it
	}
	if !wasRaw {
		return nil
	}
	return t.SetRaw()
}

// DropResume drops the event of a stop and continuation while no Read was running: another program had the
// terminal, and everything is about to be redrawn.
func (t *Terminal) DropResume() {
	for range len(t.signals) {
		select {
		case s := <-t.signals:
			if s != unix.SIGCONT {
				t.queueEvent(Resize{})
			}
		default:
		}
	}
}

// waitStopped waits until the process continues, and reports whether it was stopped at all. The second wait
// is for a process that has just continued: its first wait may have timed out before the signal.
func waitStopped(goesOn <-chan os.Signal) bool {
	for range 2 {
		select {
		case <-goesOn:
			return true
		case <-time.After(stopTimeout):
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
		events, err := t.readEvents(ctx)
		if len(events) > 0 || err != nil {
			return events, err
		}
	}
}

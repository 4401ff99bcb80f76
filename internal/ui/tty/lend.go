//go:build unix

package tty

import (
	"bytes"
	"errors"
	"os"
	"os/signal"
	"sync"

	"coder/internal/core/message"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// Sequences that mark or undo what a program may leave behind: the alternate screen, a hidden cursor,
// colors, mouse and paste reports, other key modes.
const (
	altScreen    = "\x1b[?1049h"
	mainScreen   = "\x1b[?1049l"
	defaultModes = "\x1b[0m\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[?1l\x1b>"
)

// Lend lends the terminal to a program during use: keys go to the program and its output is shown, as it
// comes. The program gets its own terminal shown on ours, so that ours can be restored whatever happens
// to it. No Read may be running, and raw mode must be off.
func (t *Terminal) Lend(use func(terminal *os.File) error) error {
	ours, theirs, err := pty.Open()
	if err != nil {
		return message.Errorf("hand over the terminal: %w", err)
	}
	defer ours.Close()
	found, err := term.MakeRaw(t.inFD)
	if err != nil {
		theirs.Close()
		return message.Errorf("hand over the terminal: %w", err)
	}
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, unix.SIGWINCH)
	_ = pty.InheritSize(t.in, ours) // before the program looks at it; a lost terminal has none

	var helpers sync.WaitGroup
	done := make(chan struct{})
	helpers.Go(func() {
		for {
			select {
			case <-resized:
				_ = pty.InheritSize(t.in, ours) // a finished program needs no size
			case <-done:
				return
			}
		}
	})
	helpers.Go(func() { t.forwardKeys(ours) })
	shown := programOutput{terminal: t}
	var shows sync.WaitGroup
	shows.Go(func() { shown.copyFrom(ours) })

	err = use(theirs)
	theirs.Close()
	shows.Wait() // all of its output has arrived
	close(done)
	signal.Stop(resized)
	_, _ = t.wakeW.Write([]byte{0}) // ends forwardKeys
	helpers.Wait()
	return errors.Join(err, term.Restore(t.inFD, found), t.writeString(shown.restoreText()))
}

// SaveMode saves the mode of a terminal before a program uses it, and returns a function that restores the mode,
// because a killed program leaves the terminal in another mode.
func SaveMode(terminal *os.File) (putRight func()) {
	found, err := term.GetState(int(terminal.Fd()))
	if err != nil { // not a terminal
		return func() {}
	}
	return func() { _ = term.Restore(int(terminal.Fd()), found) } // a lost terminal has no mode
}

// forwardKeys forwards keys until the reader is woken.
func (t *Terminal) forwardKeys(to *os.File) {
	buf := make([]byte, readSize)
	for {
		woken, input, err := t.poll(waitForever)
		if woken {
			_, _ = t.wakeR.Read(make([]byte, 1))
		}
		if err != nil || woken {
			return
		}
		if !input {
			continue
		}
		n, err := unix.Read(t.inFD, buf)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
			continue
		case err != nil || n <= 0:
			_, _ = to.Write([]byte{4}) // the terminal is lost: no more input will come
			_, _ = t.wakeR.Read(make([]byte, 1))
			return
		}
		_, _ = to.Write(buf[:n])
	}
}

// programOutput shows a program's output and tracks the state in which it leaves the terminal.
type programOutput struct {
	terminal    *Terminal
	tail        []byte // the end of the output
	onAltScreen bool   // on the alternate screen
	wroteMain   bool   // anything was shown on the main screen
}

func (w *programOutput) copyFrom(from *os.File) {
	buf := make([]byte, readSize)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			text := append(w.tail, buf[:n]...)
			on, off := bytes.LastIndex(text, []byte(altScreen)), bytes.LastIndex(text, []byte(mainScreen))
			if on != off {
				w.onAltScreen = on > off
			}
			w.wroteMain = w.wroteMain || on < 0 && off < 0 && !w.onAltScreen
			w.tail = append(w.tail[:0:0], text[max(0, len(text)-len(altScreen)):]...)
			_, _ = w.terminal.out.Write(buf[:n]) // a lost terminal ends the program by itself
		}
		if err != nil {
			return // the other end is closed
		}
	}
}

// restoreText returns the text that restores the terminal: the main screen, the usual modes, and the start of
// a line.
func (w *programOutput) restoreText() string {
	text := defaultModes
	if w.onAltScreen {
		text = mainScreen + text
	}
	if w.wroteMain && !bytes.HasSuffix(w.tail, []byte("\n")) {
		text += "\r\n"
	}
	return text
}

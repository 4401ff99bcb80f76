//go:build unix

package tty

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// Sequences that mark or undo what a program may leave behind: the alternate screen, a hidden cursor,
// colors, mouse and paste reports, other key modes.
const (
	otherScreen = "\x1b[?1049h"
	firstScreen = "\x1b[?1049l"
	usualModes  = "\x1b[0m\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[?1l\x1b>"
)

// Lend lends the terminal to a program during use: keys go to the program and its output is shown, as it
// comes. The program gets its own terminal shown on ours, so that ours can be restored whatever happens
// to it. No Read may be running, and raw mode must be off.
func (t *Terminal) Lend(use func(terminal *os.File) error) error {
	ours, theirs, err := pty.Open()
	if err != nil {
		return fmt.Errorf("hand over the terminal: %w", err)
	}
	defer ours.Close()
	found, err := term.MakeRaw(t.inFD)
	if err != nil {
		theirs.Close()
		return fmt.Errorf("hand over the terminal: %w", err)
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
	helpers.Go(func() { t.typeInto(ours) })
	shown := borrowed{to: t}
	var shows sync.WaitGroup
	shows.Go(func() { shown.copy(ours) })

	err = use(theirs)
	theirs.Close()
	shows.Wait() // all of its output has arrived
	close(done)
	signal.Stop(resized)
	_, _ = t.wakeW.Write([]byte{0}) // ends typeInto
	helpers.Wait()
	return errors.Join(err, term.Restore(t.inFD, found), t.say(shown.after()))
}

// Keep saves the mode of a terminal before a program uses it, and returns a function that restores it: a
// killed program leaves its own.
func Keep(terminal *os.File) (putRight func()) {
	found, err := term.GetState(int(terminal.Fd()))
	if err != nil { // not a terminal
		return func() {}
	}
	return func() { _ = term.Restore(int(terminal.Fd()), found) } // a lost terminal has no mode
}

// typeInto forwards keys until the reader is woken.
func (t *Terminal) typeInto(to *os.File) {
	buf := make([]byte, readSize)
	for {
		woken, input, err := t.poll(forever)
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

// borrowed shows a program's output and tracks the state in which it leaves the terminal.
type borrowed struct {
	to    *Terminal
	tail  []byte // the end of the output
	other bool   // on the alternate screen
	used  bool   // anything was shown on the main screen
}

func (w *borrowed) copy(from *os.File) {
	buf := make([]byte, readSize)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			text := append(w.tail, buf[:n]...)
			on, off := bytes.LastIndex(text, []byte(otherScreen)), bytes.LastIndex(text, []byte(firstScreen))
			if on != off {
				w.other = on > off
			}
			w.used = w.used || on < 0 && off < 0 && !w.other
			w.tail = append(w.tail[:0:0], text[max(0, len(text)-len(otherScreen)):]...)
			_, _ = w.to.out.Write(buf[:n]) // a lost terminal ends the program by itself
		}
		if err != nil {
			return // the other end is closed
		}
	}
}

// after returns the text that restores the terminal: the main screen, the usual modes, and the start of
// a line.
func (w *borrowed) after() string {
	text := usualModes
	if w.other {
		text = firstScreen + text
	}
	if w.used && !bytes.HasSuffix(w.tail, []byte("\n")) {
		text += "\r\n"
	}
	return text
}

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

// What a program may leave behind: another screen, no cursor, colours, reports of
// the mouse and of pastes, other keys.
const (
	otherScreen = "\x1b[?1049h"
	firstScreen = "\x1b[?1049l"
	usualModes  = "\x1b[0m\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[?1l\x1b>"
)

// Lend lets a program have the terminal while use runs: what is typed goes to it
// and what it writes is shown, as it comes. It is a terminal of its own that is
// shown on ours, so that whatever becomes of the program ours can be put right.
// No Read may be under way, and raw mode must be off.
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
	_ = pty.InheritSize(t.in, ours) // before anybody looks at it; a terminal that is gone has none

	var helpers sync.WaitGroup
	done := make(chan struct{})
	helpers.Go(func() {
		for {
			select {
			case <-resized:
				_ = pty.InheritSize(t.in, ours) // a program that is gone needs no size
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
	shows.Wait() // all that it wrote is there
	close(done)
	signal.Stop(resized)
	_, _ = t.wakeW.Write([]byte{0}) // ends typeInto
	helpers.Wait()
	return errors.Join(err, term.Restore(t.inFD, found), t.say(shown.after()))
}

// Keep notes the mode of a terminal before a program has it, and returns what brings that
// back: one that is killed leaves its own.
func Keep(terminal *os.File) (putRight func()) {
	found, err := term.GetState(int(terminal.Fd()))
	if err != nil { // it is none
		return func() {}
	}
	return func() { _ = term.Restore(int(terminal.Fd()), found) } // one that is gone has no mode
}

// typeInto passes on what is typed until the reader is woken.
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
			_, _ = to.Write([]byte{4}) // the terminal is gone: nothing more will be typed
			_, _ = t.wakeR.Read(make([]byte, 1))
			return
		}
		_, _ = to.Write(buf[:n])
	}
}

// borrowed shows what a program writes and remembers in what state it leaves the
// terminal.
type borrowed struct {
	to    *Terminal
	tail  []byte // the end of what was shown
	other bool   // on the other screen
	used  bool   // anything was shown on the first one
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
			_, _ = w.to.out.Write(buf[:n]) // a terminal that is gone ends the program by itself
		}
		if err != nil {
			return // nobody has the other end any more
		}
	}
}

// after is what puts the terminal right: the first screen, the usual modes, and
// the start of a line.
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

//go:build unix

package tty

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"coder/internal/core/message"
	"coder/internal/ui/lineedit"

	"golang.org/x/sys/unix"
)

const (
	readSize    = 32 << 10
	waitForever = -1
)

// watch wakes the reader once if ctx ends or a signal arrives before done.
func (t *Terminal) watch(ctx context.Context, done <-chan struct{}) {
	select {
	case <-done:
		return
	case <-ctx.Done():
	case s := <-t.signals:
		if s == unix.SIGCONT {
			t.queueEvent(Resumed{})
		} else {
			t.queueEvent(Resize{})
		}
	}
	_, _ = t.wakeW.Write([]byte{0}) // one byte per Read: the pipe is never full
}

// queueEvent queues e for the next Read. If there is no room, the same event is queued already.
func (t *Terminal) queueEvent(e Event) {
	select {
	case t.events <- e:
	default:
	}
}

// readEvents returns the next events, or none if the input had no meaning.
func (t *Terminal) readEvents(ctx context.Context) ([]Event, error) {
	select {
	case e := <-t.events:
		if _, ok := e.(Resumed); ok && t.savedState.Load() != nil {
			// Another program may have left the terminal in another mode.
			if err := t.enterRaw(); err != nil {
				return nil, message.Errorf("set raw mode again: %w", err)
			}
			if err := t.writeString(t.enableSeq); err != nil {
				return nil, err
			}
		}
		return []Event{e}, nil
	default:
	}
	wait := time.Duration(waitForever)
	if t.decoder.HasPending() {
		wait = t.delay
	}
	woken, input, err := t.poll(wait)
	switch {
	case err != nil:
		return nil, message.Errorf("wait for the terminal: %w", err)
	case woken:
		_, _ = t.wakeR.Read(make([]byte, 1))
		return nil, ctx.Err()
	case input:
		return t.readInput()
	}
	events := t.decoder.Flush()
	if len(events) > 0 && events[len(events)-1] == namedKey(lineedit.Escape) {
		t.escapedAt = time.Now()
	}
	return events, nil
}

// readInput reads the available input.
func (t *Terminal) readInput() ([]Event, error) {
	buf := make([]byte, readSize)
	n, err := unix.Read(t.inFD, buf)
	switch {
	case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
		return nil, nil
	case errors.Is(err, unix.EIO), err == nil && n <= 0:
		return nil, io.EOF
	case err != nil:
		return nil, message.Errorf("read from the terminal: %w", err)
	}
	events := t.decoder.Feed(t.dropTail(buf[:n]))
	if slices.ContainsFunc(events, func(e Event) bool { _, ok := e.(Background); return ok }) {
		t.askedAt = time.Time{}
	}
	return events, nil
}

// lateTailDelay is how long after an Esc the rest of an escape sequence may still arrive over a slow line. It
// is too late to be the key, but it is not text either.
const lateTailDelay = time.Second

// dropTail drops the rest of an escape sequence whose beginning was treated as an Esc.
func (t *Terminal) dropTail(p []byte) []byte {
	if t.escapedAt.IsZero() || time.Since(t.escapedAt) > lateTailDelay {
		return p
	}
	t.escapedAt = time.Time{}
	return p[tailLength(p):]
}

// tailLength returns the length of the rest of an escape sequence at the start of p, without its escape
// character; 0 if there is none.
func tailLength(p []byte) int {
	switch {
	case len(p) == 2 && p[0] == 'O' && p[1] >= 'A' && p[1] <= 'Z':
		return 2
	case len(p) < 2 || p[0] != '[':
		return 0
	}
	for i, b := range p[1:] {
		switch {
		case b >= 0x40 && b <= 0x7e:
			return i + 2
		case b < 0x20 || b > 0x3f:
			return 0
		}
	}
	return 0
}

// poll waits until the reader is woken, input arrives or the time is over.
func (t *Terminal) poll(wait time.Duration) (woken, input bool, err error) {
	fds := []unix.PollFd{
		{Fd: int32(t.wakeR.Fd()), Events: unix.POLLIN},
		{Fd: int32(t.inFD), Events: unix.POLLIN},
	}
	start := time.Now()
	for {
		left := waitForever
		if wait >= 0 {
			left = int(max(0, wait-time.Since(start)).Milliseconds())
		}
		_, err := unix.Poll(fds, left)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return fds[0].Revents != 0, fds[1].Revents != 0, err
	}
}

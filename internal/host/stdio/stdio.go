// Package stdio handles the program's input and output outside the full terminal: lines typed or piped
// in, text written to a pipe or a screen. A context ends every wait, both for input that never comes and
// for output that nobody reads.
package stdio

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"coder/internal/core/message"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// ErrTooLong reports input longer than the caller's limit.
var ErrTooLong = errors.New("the input is too long")

// readSize is the size of one read if no other process reads the rest.
const readSize = 32 << 10

// Reader reads the program's input. It is not safe for concurrent use. Use [NewReader].
type Reader struct {
	in       io.Reader
	size     int
	buf      []byte // read but not yet returned
	err      error  // why no more input comes
	skipping bool   // drop the rest of a line that was too long
	pending  chan chunk
	file     *os.File // in, if it supports polling
}

type chunk struct {
	data []byte
	err  error
}

// NewReader returns a Reader of in. From a terminal it reads no byte more than it returns, so that the
// next reader of the terminal finds the rest.
func NewReader(in io.Reader) *Reader {
	r := &Reader{in: in, size: readSize}
	f, ok := in.(*os.File)
	if !ok {
		return r
	}
	if term.IsTerminal(int(f.Fd())) {
		r.size = 1
	}
	r.file = f
	return r
}

// ReadLine returns the next line without its end. The last one may have none; after it the error is
// [io.EOF]. A line of more than limit bytes is [ErrTooLong]; the next call returns the line after it.
func (r *Reader) ReadLine(ctx context.Context, limit int) (string, error) {
	if err := r.skipLine(ctx); err != nil {
		return "", err
	}
	from := 0
	for {
		if i := bytes.IndexByte(r.buf[from:], '\n'); i >= 0 && from+i <= limit {
			return r.consume(from+i, 1), nil
		}
		if len(r.buf) > limit {
			r.skipping = true
			return "", ErrTooLong
		}
		from = len(r.buf)
		if err := r.fill(ctx); err != nil {
			if errors.Is(err, io.EOF) && len(r.buf) > 0 {
				return r.consume(len(r.buf), 0), nil
			}
			return "", err
		}
	}
}

// skipLine drops the rest of a line that was too long.
func (r *Reader) skipLine(ctx context.Context) error {
	for r.skipping {
		if i := bytes.IndexByte(r.buf, '\n'); i >= 0 {
			r.consume(i, 1)
			r.skipping = false
			break
		}
		r.buf = nil
		if err := r.fill(ctx); err != nil {
			return err
		}
	}
	return nil
}

// ReadRest returns all remaining input, if it is at most limit bytes.
func (r *Reader) ReadRest(ctx context.Context, limit int) (string, error) {
	for len(r.buf) <= limit {
		if err := r.fill(ctx); errors.Is(err, io.EOF) {
			return r.consume(len(r.buf), 0), nil
		} else if err != nil {
			return "", err
		}
	}
	return "", ErrTooLong
}

// consume returns the first n bytes and also drops the next drop bytes.
func (r *Reader) consume(n, drop int) string {
	text := string(r.buf[:n])
	if r.buf = r.buf[n+drop:]; len(r.buf) == 0 {
		r.buf = nil
	}
	return text
}

// fill reads more input.
func (r *Reader) fill(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if r.err != nil {
		return r.err
	}
	var c chunk
	if r.file != nil {
		if err := waitReadable(ctx, r.file); err != nil {
			return err
		}
		c = r.readChunk()
	} else {
		// Input without polling is read in the background; what arrives after ctx ends is kept for the next
		// call.
		if r.pending == nil {
			r.pending = make(chan chunk, 1)
			go func(to chan<- chunk) { to <- r.readChunk() }(r.pending)
		}
		select {
		case c = <-r.pending:
			r.pending = nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	r.buf, r.err = append(r.buf, c.data...), c.err
	if len(c.data) > 0 {
		return nil
	}
	return r.err
}

func (r *Reader) readChunk() chunk {
	data := make([]byte, r.size)
	n, err := r.in.Read(data)
	return chunk{data[:n], err}
}

// waitReadable waits until a read from f would not block.
func waitReadable(ctx context.Context, f *os.File) error {
	fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}
	if ready, err := poll(fds, 0); ready || err != nil {
		return err
	}
	ended, wake, err := os.Pipe()
	if err != nil {
		return message.Errorf("wait for input: %w", err)
	}
	defer ended.Close()
	defer wake.Close()
	defer context.AfterFunc(ctx, func() { _ = wake.Close() })() // closing this end wakes the poll on the other
	fds = append(fds, unix.PollFd{Fd: int32(ended.Fd()), Events: unix.POLLIN})
	if _, err := poll(fds, -1); err != nil {
		return err
	}
	return ctx.Err()
}

func poll(fds []unix.PollFd, timeout int) (ready bool, err error) {
	for {
		n, err := unix.Poll(fds, timeout)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return false, message.Errorf("wait for input: %w", err)
		}
		return n > 0, nil
	}
}

// stalledError reports output that nobody read.
type stalledError struct{}

func (stalledError) Error() string { return "nobody takes the output" }

// Is makes stalled output match [context.Canceled], since output is abandoned only after cancellation.
func (stalledError) Is(target error) bool { return target == context.Canceled }

// ErrStalled reports output that nobody read although the program should end.
var ErrStalled error = stalledError{}

// Grace is how long output may take once the program should end.
const Grace = 300 * time.Millisecond

// Writer forwards what is written to it. Once its context has ended, it abandons output that nobody
// reads within [Grace], with [ErrStalled], and all output after it. It is safe for concurrent use. Use
// [NewWriter].
type Writer struct {
	ctx context.Context
	out io.Writer

	mu      sync.Mutex // guards the field below and the order of writes
	stalled bool
}

// NewWriter returns a Writer to out that lasts until ctx ends.
func NewWriter(ctx context.Context, out io.Writer) *Writer { return &Writer{ctx: ctx, out: out} }

func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stalled {
		return 0, ErrStalled
	}
	type outcome struct {
		n   int
		err error
	}
	done := make(chan outcome, 1)
	own := bytes.Clone(p) // an abandoned write still uses it
	go func() {
		n, err := w.out.Write(own)
		done <- outcome{n, err}
	}()
	select {
	case o := <-done:
		return o.n, o.err
	case <-w.ctx.Done():
	}
	late := time.NewTimer(Grace)
	defer late.Stop()
	select {
	case o := <-done:
		return o.n, o.err
	case <-late.C:
		w.stalled = true
		return 0, ErrStalled
	}
}

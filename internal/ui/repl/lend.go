//go:build unix

package repl

import (
	"context"
	"errors"
	"os"

	"coder/internal/ui/tty"
)

// lendRequest is a request for the terminal.
type lendRequest struct {
	ready    chan struct{} // closed when it may be used
	refused  chan struct{} // closed if it may not be used
	returned chan struct{} // closed when it is returned
}

// Lend lends the terminal to the running turn during use.
func (r *REPL) Lend(ctx context.Context, use func(terminal *os.File) error) error {
	return borrow(ctx, r.lendRequests, r.Terminal, use)
}

// Lend lends the terminal to the running turn during use.
func (l *LineREPL) Lend(ctx context.Context, use func(terminal *os.File) error) error {
	return borrow(ctx, l.lendRequests, l.Terminal, use)
}

func borrow(ctx context.Context, from chan<- lendRequest, terminal *tty.Terminal,
	use func(terminal *os.File) error) error {
	l := lendRequest{make(chan struct{}), make(chan struct{}), make(chan struct{})}
	select {
	case from <- l:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer close(l.returned)
	select {
	case <-l.ready:
		return terminal.Lend(use)
	case <-l.refused:
		return context.Canceled
	}
}

// lend lends the terminal and waits until it is back. The borrower ends with the program.
func (r *REPL) lend(ctx context.Context, l lendRequest) error {
	r.stopReading()
	defer r.startReading(ctx)
	if err := errors.Join(r.hideLive(), r.Terminal.Restore()); err != nil {
		close(l.refused)
		return err
	}
	close(l.ready)
	select {
	case <-l.returned:
	case <-ctx.Done():
		r.turn.cancel()
		<-l.returned
	}
	return errors.Join(r.Terminal.SetRaw(), r.Screen.Show())
}

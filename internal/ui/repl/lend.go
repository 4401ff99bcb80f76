//go:build unix

package repl

import (
	"context"
	"errors"
	"os"

	"coder/internal/ui/tty"
)

// lent is a request for the terminal.
type lent struct {
	ready   chan struct{} // closed when it may be used
	refused chan struct{} // closed if it may not be used
	back    chan struct{} // closed when it is returned
}

// Lend lends the terminal to the running turn during use.
func (r *REPL) Lend(ctx context.Context, use func(terminal *os.File) error) error {
	return borrow(ctx, r.lends, r.Terminal, use)
}

// Lend lends the terminal to the running turn during use.
func (l *Lines) Lend(ctx context.Context, use func(terminal *os.File) error) error {
	return borrow(ctx, l.lends, l.Terminal, use)
}

func borrow(ctx context.Context, from chan<- lent, terminal *tty.Terminal, use func(terminal *os.File) error) error {
	l := lent{make(chan struct{}), make(chan struct{}), make(chan struct{})}
	select {
	case from <- l:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer close(l.back)
	select {
	case <-l.ready:
		return terminal.Lend(use)
	case <-l.refused:
		return context.Canceled
	}
}

// lend lends the terminal and waits until it is back. The borrower ends with the program.
func (r *REPL) lend(ctx context.Context, l lent) error {
	r.stopReading()
	defer r.startReading(ctx)
	if err := errors.Join(r.hide(), r.Terminal.Restore()); err != nil {
		close(l.refused)
		return err
	}
	close(l.ready)
	select {
	case <-l.back:
	case <-ctx.Done():
		r.turn.cancel()
		<-l.back
	}
	return errors.Join(r.Terminal.Raw(), r.Screen.Show())
}

//go:build unix

package repl

import (
	"context"
	"errors"
	"os"
)

// lent is the terminal on its way to somebody else and back.
type lent struct {
	ready   chan struct{} // closed when it may be used
	refused chan struct{} // closed if it may not be
	back    chan struct{} // closed when it is given back
}

// Lend lets the turn that runs have the terminal while use runs.
func (r *REPL) Lend(ctx context.Context, use func(terminal *os.File) error) error {
	l := lent{make(chan struct{}), make(chan struct{}), make(chan struct{})}
	select {
	case r.lends <- l:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer close(l.back)
	select {
	case <-l.ready:
		return r.Terminal.Lend(use)
	case <-l.refused:
		return context.Canceled
	}
}

// lend gives the terminal away and waits until it is back. The end of the
// program ends what has it.
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

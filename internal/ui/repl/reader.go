//go:build unix

package repl

import (
	"context"

	"coder/internal/ui/tty"
)

// reader is the goroutine that reads what is typed.
type reader struct {
	cancel context.CancelFunc
	done   chan struct{}
}

func (r *REPL) startReading(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	r.reader = &reader{cancel, make(chan struct{})}
	go func(done chan<- struct{}) {
		defer close(done)
		if err := r.read(ctx, r.events); ctx.Err() == nil {
			r.broken <- err
		}
	}(r.reader.done)
}

// stopReading lets somebody else have the keyboard. What was typed before is
// kept.
func (r *REPL) stopReading() {
	r.reader.cancel()
	for {
		select {
		case batch := <-r.events:
			r.pending = append(r.pending, batch)
		case <-r.reader.done:
			return
		}
	}
}

// read hands on what is typed.
func (r *REPL) read(ctx context.Context, to chan<- []tty.Event) error {
	for {
		batch, err := r.Terminal.Read(ctx)
		if err != nil {
			return err
		}
		select {
		case to <- batch:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

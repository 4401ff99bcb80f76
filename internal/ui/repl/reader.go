//go:build unix

package repl

import "context"

// reader is the goroutine that reads the keyboard.
type reader struct {
	cancel context.CancelFunc
	done   chan struct{}
}

func (r *REPL) startReading(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	r.reader = &reader{cancel, make(chan struct{})}
	go func(done chan<- struct{}) {
		defer close(done)
		for {
			batch, err := r.Terminal.Read(ctx)
			if err != nil {
				if ctx.Err() == nil {
					r.readErr <- err
				}
				return
			}
			select {
			case r.events <- batch:
			case <-ctx.Done():
				return
			}
		}
	}(r.reader.done)
}

// stopReading releases the keyboard. It keeps what was typed before.
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

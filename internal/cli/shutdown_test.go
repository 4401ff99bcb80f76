package cli

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestWhatIsStuckIsLeftBehind when the program was told to end: soon where no
// session is open, after the time it takes to close one where one is, and at
// once when it is told again. The terminal is given back.
func TestWhatIsStuckIsLeftBehind(t *testing.T) {
	for name, tt := range map[string]struct {
		open, again, key bool
		after            time.Duration
	}{
		"no session":        {after: idleTimeout},
		"a session":         {open: true, after: closingTimeout},
		"told again":        {open: true, again: true, after: time.Second},
		"a key":             {key: true, after: idleTimeout},
		"a key, in session": {key: true, open: true, after: closingTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				again, cancelAgain := context.WithCancel(t.Context())
				defer cancel()
				defer cancelAgain()
				w := &shutdown{leaving: make(chan struct{})}
				stuck, given := make(chan struct{}), false
				defer close(stuck)
				w.setRestore(func() { given = true })
				if tt.open {
					w.markSessionOpen()
				}
				start := time.Now()
				go func() {
					if tt.key {
						w.markLeaving()
						w.markLeaving()
					} else {
						cancel()
					}
					if tt.again {
						time.Sleep(time.Second)
						cancelAgain()
					}
				}()
				err := w.run(ctx, again, func() error { <-stuck; return nil })
				if !errors.Is(err, errStuck) || ExitCode(err) != ExitInterrupted || !given {
					t.Errorf("err %v, terminal given back: %v", err, given)
				}
				if took := time.Since(start); took != tt.after {
					t.Errorf("it took %v, want %v", took, tt.after)
				}
			})
		})
	}
}

func TestWhatEndsByItselfIsNotHurried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := &shutdown{leaving: make(chan struct{})}
		w.markSessionOpen()
		broken := errors.New("broken")
		err := w.run(ctx, t.Context(), func() error {
			cancel()
			time.Sleep(closingTimeout - time.Second)
			return broken
		})
		if err != broken {
			t.Errorf("got %v", err)
		}
	})
}

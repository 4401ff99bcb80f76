package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"coder/internal/core/message"
)

// notifySignals returns a context that ends at the first stop signal, and one that ends at the second. Signals
// close together count as one: a lost terminal signals through the kernel and through the shell.
func notifySignals(parent context.Context) (first, again context.Context, stop func()) {
	// A lost reader causes an error on the next write, which ends the turn cleanly; it must not kill the
	// process.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	told := make(chan os.Signal, 1)
	signal.Notify(told, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	first, cancel := context.WithCancel(parent)
	again, cancelAgain := context.WithCancel(context.WithoutCancel(parent))
	go func() {
		awaitSignal(again, told)
		cancel()
		select {
		case <-time.After(signalMergeWindow):
		case <-again.Done():
		}
		select {
		case <-told:
		default:
		}
		awaitSignal(again, told)
		cancelAgain()
	}()
	return first, again, func() {
		signal.Stop(told)
		cancel()
		cancelAgain()
	}
}

// signalMergeWindow is the longest time between signals that count as one.
const signalMergeWindow = 500 * time.Millisecond

// awaitSignal waits for a signal, or for the end of ctx.
func awaitSignal(ctx context.Context, told <-chan os.Signal) {
	select {
	case <-told:
	case <-ctx.Done():
	}
}

// How long the program may take to stop. Without an open session there is nothing to close.
const (
	closingTimeout = 6 * time.Second
	idleTimeout    = 300 * time.Millisecond
	// drivenTimeout is how long a driving program waits at most.
	drivenTimeout = 900 * time.Millisecond
)

// shutdown ends the program even if part of it is stuck: opening a pipe without a writer, on a dead
// network drive. By then every effect is on record; the next process finishes the rest, as after a
// crash. A nil shutdown watches nothing.
type shutdown struct {
	timeoutFactor   int           // time factor for an open session
	leaving         chan struct{} // closed when the user leaves
	once            sync.Once
	sessionOpen     atomic.Bool            // a session is open
	isDriven        atomic.Bool            // by a program
	restoreTerminal atomic.Pointer[func()] // restores the terminal
}

// markLeaving records that the user is leaving.
func (w *shutdown) markLeaving() {
	if w != nil {
		w.once.Do(func() { close(w.leaving) })
	}
}

// markSessionOpen records that a session is open, which takes time to close.
func (w *shutdown) markSessionOpen() {
	if w != nil {
		w.sessionOpen.Store(true)
	}
}

// setRestore sets how to restore the terminal if nothing else does.
func (w *shutdown) setRestore(back func()) {
	if w != nil {
		w.restoreTerminal.Store(&back)
	}
}

// errStuck reports that part of the program did not stop.
var errStuck = message.Errorf("asked to stop: %w", context.Canceled)

// run runs work. It returns errStuck and abandons work if that does not return in time after ctx ends,
// or immediately when again ends.
func (w *shutdown) run(ctx, again context.Context, work func() error) error {
	done := make(chan error, 1)
	go func() { done <- work() }()
	select {
	case err := <-done:
		return err
	case <-w.leaving:
	case <-ctx.Done():
	}
	patience := idleTimeout
	if w.sessionOpen.Load() {
		patience = closingTimeout * time.Duration(max(1, w.timeoutFactor))
	}
	if w.isDriven.Load() {
		patience = min(patience, drivenTimeout)
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case err := <-done:
		return err
	case <-again.Done():
	case <-late.C:
	}
	if back := w.restoreTerminal.Load(); back != nil {
		(*back)()
	}
	return errStuck
}

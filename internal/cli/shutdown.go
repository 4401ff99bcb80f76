package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// signals returns a context that ends when the program is told to stop, and
// one that ends when it is told so again. Signals that come together are one: a
// terminal that goes away says so through the kernel and through the shell.
func signals(parent context.Context) (first, again context.Context, stop func()) {
	// A reader that goes away gives an error on the next write, which ends the
	// turn in good order; it must not end the process.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	told := make(chan os.Signal, 1)
	signal.Notify(told, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	first, cancel := context.WithCancel(parent)
	again, cancelAgain := context.WithCancel(context.WithoutCancel(parent))
	go func() {
		awaitSignal(again, told)
		cancel()
		select {
		case <-time.After(together):
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

// together is how far apart signals may come that mean the same.
const together = 500 * time.Millisecond

// awaitSignal waits for a signal, or for the end of ctx.
func awaitSignal(ctx context.Context, told <-chan os.Signal) {
	select {
	case <-told:
	case <-ctx.Done():
	}
}

// How long the program may take to end once it was told to. Where no session is
// open there is nothing to close.
const (
	closingTime = 6 * time.Second
	idleTime    = 300 * time.Millisecond
	// drivenTime is how long a program that drives the session waits at most.
	drivenTime = 900 * time.Millisecond
)

// shutdown is how the program ends even though something in it is stuck: in
// opening a pipe that nobody writes to, on a dead network drive. Whatever was
// acted on is on record by then; what is left is brought to an end by the next
// process, as after a crash. The nil shutdown watches nothing.
type shutdown struct {
	patience int           // how many times as long as usual an open session has
	leaving  chan struct{} // closed when the person is leaving
	once     sync.Once
	keeping  atomic.Bool            // a session is open
	driven   atomic.Bool            // by a program
	restore  atomic.Pointer[func()] // gives the terminal back
}

// leave says that the person is leaving.
func (w *shutdown) leave() {
	if w != nil {
		w.once.Do(func() { close(w.leaving) })
	}
}

// opened says that there is a session whose books take time to close.
func (w *shutdown) opened() {
	if w != nil {
		w.keeping.Store(true)
	}
}

// onStuck says how the terminal is given back if nobody else does.
func (w *shutdown) onStuck(back func()) {
	if w != nil {
		w.restore.Store(&back)
	}
}

// errStuck is the end of a program in which something did not end.
var errStuck = fmt.Errorf("asked to stop: %w", context.Canceled)

// watch does work. It comes back with errStuck and leaves work behind
// if that does not end in time after ctx has, or at once when again ends.
func (w *shutdown) watch(ctx, again context.Context, work func() error) error {
	done := make(chan error, 1)
	go func() { done <- work() }()
	select {
	case err := <-done:
		return err
	case <-w.leaving:
	case <-ctx.Done():
	}
	patience := idleTime
	if w.keeping.Load() {
		patience = closingTime * time.Duration(max(1, w.patience))
	}
	if w.driven.Load() {
		patience = min(patience, drivenTime)
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case err := <-done:
		return err
	case <-again.Done():
	case <-late.C:
	}
	if back := w.restore.Load(); back != nil {
		(*back)()
	}
	return errStuck
}

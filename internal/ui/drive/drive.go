// Package drive is what every way for a program to drive a session has in
// common: what the program says is taken one after the other, a turn can be
// stopped, and questions to the program are answered in any order, or by nobody
// once it is gone.
package drive

import (
	"context"
	"strings"
	"sync"

	"coder/internal/agent/orchestrator"
	"coder/internal/core/chat"
)

// Message is something that the program says in the person's place.
type Message struct {
	orchestrator.Said
	ID string // the program's own, if it has one
	// Soon says that a turn which runs takes it up between its steps, where it is
	// words alone. Otherwise it waits for a turn of its own.
	Soon bool
	// Do, if set, is done when it is the message's turn, and nothing else of it
	// counts.
	Do func(context.Context) error
}

// Queue runs what a program says, one message at a time. Its methods may be
// called by several goroutines. Use [NewQueue].
type Queue struct {
	mu      sync.Mutex // guards the fields below
	waiting []Message
	stop    context.CancelFunc // ends the turn that runs; nil if none does
	closed  bool
	news    chan struct{} // closed when one of the fields has changed
}

// NewQueue returns an empty Queue.
func NewQueue() *Queue { return &Queue{news: make(chan struct{})} }

// change does something to the queue, and says so.
func (q *Queue) change(do func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	do()
	close(q.news)
	q.news = make(chan struct{})
}

// Add takes a message.
func (q *Queue) Add(m Message) { q.change(func() { q.waiting = append(q.waiting, m) }) }

// Finish says that no more messages come. Those that wait are still run.
func (q *Queue) Finish() { q.change(func() { q.closed = true }) }

// Interrupt stops the turn that runs, and reports whether one does.
func (q *Queue) Interrupt() (running bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.stop == nil {
		return false
	}
	q.stop()
	return true
}

// State tells whether a turn runs, and how many messages wait.
func (q *Queue) State() (running bool, waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.stop != nil, len(q.waiting)
}

// Drop forgets the messages that wait, and tells which they are.
func (q *Queue) Drop() (waited []Message) {
	q.change(func() { waited, q.waiting = q.waiting, nil })
	return waited
}

// Soon is the words that the running turn may take up now.
func (q *Queue) Soon() (words []chat.Words) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waiting) > 0 {
		m := q.waiting[0]
		first := strings.TrimSpace(m.Text())
		if !m.Soon || m.Do != nil || len(m.Pictures) > 0 || !m.AsWritten && (strings.HasPrefix(first, "/") || strings.HasPrefix(first, "!")) {
			break
		}
		words, q.waiting = append(words, m.Words), q.waiting[1:]
	}
	return words
}

// Serve runs each message by turn, until no more come, ctx ends, or turn has an error.
func (q *Queue) Serve(ctx context.Context, turn func(context.Context, Message) error) error {
	for {
		m, ok := q.next(ctx)
		if !ok {
			return ctx.Err()
		}
		running, stop := context.WithCancel(ctx)
		q.change(func() { q.stop = stop })
		do := m.Do
		if do == nil {
			do = func(ctx context.Context) error { return turn(ctx, m) }
		}
		err := do(running)
		q.change(func() { q.stop = nil })
		stop()
		if err != nil {
			return err
		}
	}
}

// next waits for a message.
func (q *Queue) next(ctx context.Context) (m Message, ok bool) {
	for {
		q.mu.Lock()
		news, closed := q.news, q.closed
		if len(q.waiting) > 0 && ctx.Err() == nil {
			m, q.waiting = q.waiting[0], q.waiting[1:]
			q.mu.Unlock()
			return m, true
		}
		q.mu.Unlock()
		if closed || ctx.Err() != nil {
			return m, false
		}
		select {
		case <-news:
		case <-ctx.Done():
		}
	}
}

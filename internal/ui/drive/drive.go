// Package drive is the common part of the faces for programs: it runs the program's messages in order,
// can stop a turn, and asks the program questions that it may answer in any order. If the program is
// gone, questions stay unanswered.
package drive

import (
	"context"
	"strings"
	"sync"

	"coder/internal/agent/orchestrator"
	"coder/internal/core/chat"
)

// Message is a message from the program, which acts for the user.
type Message struct {
	orchestrator.Said
	ID string // the program's id, if any
	// Soon lets a running turn read the message between its steps, if it is only text. Otherwise the message
	// gets its own turn.
	Soon bool
	// Do, if set, runs instead of a turn; the other fields are ignored.
	Do func(context.Context) error
}

// Queue runs a program's messages one at a time. Its methods are safe for concurrent use. Use
// [NewQueue].
type Queue struct {
	mu      sync.Mutex // guards the fields below
	waiting []Message
	stop    context.CancelFunc // stops the running turn; nil if none runs
	closed  bool
	news    chan struct{} // closed when one of the fields has changed
}

// NewQueue returns an empty Queue.
func NewQueue() *Queue { return &Queue{news: make(chan struct{})} }

// change runs do under the lock and wakes the waiters.
func (q *Queue) change(do func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	do()
	close(q.news)
	q.news = make(chan struct{})
}

// Add queues a message.
func (q *Queue) Add(m Message) { q.change(func() { q.waiting = append(q.waiting, m) }) }

// Finish closes the queue. Waiting messages still run.
func (q *Queue) Finish() { q.change(func() { q.closed = true }) }

// Interrupt stops the running turn, and reports whether one was running.
func (q *Queue) Interrupt() (running bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.stop == nil {
		return false
	}
	q.stop()
	return true
}

// State reports whether a turn is running and how many messages wait.
func (q *Queue) State() (running bool, waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.stop != nil, len(q.waiting)
}

// Drop removes and returns the waiting messages.
func (q *Queue) Drop() (waited []Message) {
	q.change(func() { waited, q.waiting = q.waiting, nil })
	return waited
}

// Soon removes and returns the messages that the running turn may read now.
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

// Serve runs the messages in order until the queue is closed and empty, ctx ends or turn fails.
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

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
	orchestrator.Input
	ID string // the program's id, if any
	// MidTurn lets a running turn read the message between its steps, if it is only text. Otherwise the message
	// gets its own turn.
	MidTurn bool
	// Action, if set, runs instead of a turn; the other fields are ignored.
	Action func(context.Context) error
}

// Queue runs a program's messages one at a time. Its methods are safe for concurrent use. Use
// [NewQueue].
type Queue struct {
	mu         sync.Mutex // guards the fields below
	messages   []Message
	cancelTurn context.CancelFunc // stops the running turn; nil if none runs
	closed     bool
	changed    chan struct{} // closed when one of the fields has changed
}

// NewQueue returns an empty Queue.
func NewQueue() *Queue { return &Queue{changed: make(chan struct{})} }

// update runs do under the lock and wakes the waiters.
func (q *Queue) update(do func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	do()
	close(q.changed)
	q.changed = make(chan struct{})
}

// Add queues a message.
func (q *Queue) Add(m Message) { q.update(func() { q.messages = append(q.messages, m) }) }

// Finish closes the queue. Waiting messages still run.
func (q *Queue) Finish() { q.update(func() { q.closed = true }) }

// Interrupt stops the running turn, and reports whether one was running.
func (q *Queue) Interrupt() (running bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.cancelTurn == nil {
		return false
	}
	q.cancelTurn()
	return true
}

// State reports whether a turn is running and how many messages wait.
func (q *Queue) State() (running bool, waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.cancelTurn != nil, len(q.messages)
}

// TakeAll removes and returns the waiting messages.
func (q *Queue) TakeAll() (waited []Message) {
	q.update(func() { waited, q.messages = q.messages, nil })
	return waited
}

// TakeMidTurn removes and returns the messages that the running turn may read now.
func (q *Queue) TakeMidTurn() (words []chat.UserText) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.messages) > 0 {
		m := q.messages[0]
		first := strings.TrimSpace(m.Text())
		if !m.MidTurn || m.Action != nil || len(m.Pictures) > 0 || !m.Verbatim &&
			(strings.HasPrefix(first, "/") || strings.HasPrefix(first, "!")) {
			break
		}
		words, q.messages = append(words, m.UserText), q.messages[1:]
	}
	return words
}

// Serve runs the messages in order until the queue is closed and empty, ctx ends or turn fails.
func (q *Queue) Serve(ctx context.Context, turn func(context.Context, Message) error) error {
	for {
		m, ok := q.nextMessage(ctx)
		if !ok {
			return ctx.Err()
		}
		running, stop := context.WithCancel(ctx)
		q.update(func() { q.cancelTurn = stop })
		do := m.Action
		if do == nil {
			do = func(ctx context.Context) error { return turn(ctx, m) }
		}
		err := do(running)
		q.update(func() { q.cancelTurn = nil })
		stop()
		if err != nil {
			return err
		}
	}
}

// nextMessage waits for a message.
func (q *Queue) nextMessage(ctx context.Context) (m Message, ok bool) {
	for {
		q.mu.Lock()
		news, closed := q.changed, q.closed
		if len(q.messages) > 0 && ctx.Err() == nil {
			m, q.messages = q.messages[0], q.messages[1:]
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

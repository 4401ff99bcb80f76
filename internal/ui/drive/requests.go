package drive

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"

	"coder/internal/core/uip"
)

// ErrGone reports that the program that should answer is gone.
var ErrGone = errors.New("the program driving the session is gone")

// Requests are the open requests to the program. The zero value is ready to use.
type Requests struct {
	mu      sync.Mutex // guards the fields below
	lastID  int
	pending map[string]chan answer
	closed  bool
}

type answer struct {
	text json.RawMessage
	err  error
}

// Do sends a request under a new id and waits for the response. If ctx ends first it withdraws the
// request.
func (r *Requests) Do(ctx context.Context, send, withdraw func(id string) error) (json.RawMessage, error) {
	id, reply, err := r.register()
	if err != nil {
		return nil, err
	}
	defer r.unregister(id)
	if err := send(id); err != nil {
		return nil, err
	}
	if sent, ok := ctx.Value(sentKey{}).(func()); ok {
		sent()
	}
	select {
	case a := <-reply:
		return a.text, a.err
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), withdraw(id))
	}
}

func (r *Requests) register() (id string, reply chan answer, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return "", nil, ErrGone
	}
	if r.pending == nil {
		r.pending = make(map[string]chan answer)
	}
	r.lastID++
	id, reply = strconv.Itoa(r.lastID), make(chan answer, 1)
	r.pending[id] = reply
	return id, reply, nil
}

func (r *Requests) unregister(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pending, id)
}

// Deliver delivers a response and reports whether the request exists. A response that nothing waits for
// any more is ignored.
func (r *Requests) Deliver(id string, text json.RawMessage, err error) (known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if reply, ok := r.pending[id]; ok {
		reply <- answer{text, err}
		delete(r.pending, id)
	}
	n, bad := strconv.Atoi(id)
	return bad == nil && n > 0 && n <= r.lastID
}

// Close means that the program answers no more.
func (r *Requests) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for id, reply := range r.pending {
		reply <- answer{err: ErrGone}
		delete(r.pending, id)
	}
}

// sentKey is the context key of the function to call once a request is sent.
type sentKey struct{}

// NewInteractor returns an Interactor that asks with one, a question at a time: it asks the parts of a card
// concurrently, in order. If the program is gone, nobody is asked.
func NewInteractor(one func(context.Context, uip.Request) (uip.Response, error)) uip.Interactor {
	put := func(ctx context.Context, q uip.Request) (uip.Response, error) {
		a, err := one(ctx, q)
		if errors.Is(err, ErrGone) {
			return uip.NoAnswer(q), nil
		}
		a.ID, a.Author = q.ID, "user"
		return a, err
	}
	return uip.InteractorFunc(func(ctx context.Context, q uip.Request) (uip.Response, error) {
		if q.Purpose != uip.PurposeConfirmRiskyAction || len(q.Parts) == 0 {
			return put(ctx, q)
		}
		all := uip.Response{ID: q.ID, Author: "user", Parts: make([]uip.Response, len(q.Parts))}
		errs := make([]error, len(q.Parts))
		var asking sync.WaitGroup
		for i, part := range q.Parts {
			out := make(chan struct{})
			sent := sync.OnceFunc(func() { close(out) })
			asking.Go(func() {
				defer sent() // if the request is never sent
				all.Parts[i], errs[i] = put(context.WithValue(ctx, sentKey{}, sent), part)
			})
			<-out
		}
		asking.Wait()
		all.AnsweredBy = all.Parts[0].AnsweredBy
		return all, errors.Join(errs...)
	})
}

// Package broker puts questions to whoever is in charge, one at a time, and on
// the record: a request is written down before anyone waits for its answer,
// and every request that is not withdrawn gets exactly one response.
//
// A question that was open when an earlier process died is put again as it
// was, under the same id; an answer given then still counts, for the call it
// was given for and no other.
package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"coder/internal/event"
	"coder/internal/uip"
)

// Nobody is the actor of an answer given because there was no one to ask.
const Nobody = "nobody"

// Broker serves the questions of one session. Use [New].
type Broker struct {
	person uip.Interactor
	slot   chan struct{} // holds the one open interaction

	mu   sync.Mutex // guards the fields below
	past map[string]exchange
}

type exchange struct {
	request  uip.Request
	response *uip.Response
}

// New returns a Broker that asks person.
func New(person uip.Interactor) *Broker {
	return &Broker{person: person, slot: make(chan struct{}, 1), past: make(map[string]exchange)}
}

// Recall tells b what the record says about a call that has not run yet: that
// q was asked, and what was answered if anything was.
func (b *Broker) Recall(q uip.Request, a *uip.Response) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.past[q.CallID()] = exchange{q, a}
}

// On returns an Interactor that keeps its questions and answers in sink.
func (b *Broker) On(sink event.Sink) uip.Interactor {
	return uip.Func(func(ctx context.Context, q uip.Request) (uip.Response, error) {
		return b.ask(ctx, sink, q)
	})
}

func (b *Broker) ask(ctx context.Context, sink event.Sink, q uip.Request) (uip.Response, error) {
	select {
	case b.slot <- struct{}{}:
		defer func() { <-b.slot }()
	case <-ctx.Done():
		return uip.Response{}, ctx.Err()
	}
	if x, ok := b.recalled(q.CallID()); ok {
		if x.response != nil {
			return *x.response, nil
		}
		q = x.request
	} else if err := record(ctx, sink, q.TaskID, q.Author, event.InteractionRequested{Request: q}); err != nil {
		return uip.Response{}, err
	}
	a, err := b.put(ctx, q)
	if err != nil {
		return uip.Response{}, err
	}
	return a, record(ctx, sink, q.TaskID, a.Author, event.InteractionResponded{Response: a})
}

// recalled takes what is known of a call from before, once.
func (b *Broker) recalled(callID string) (exchange, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	x, ok := b.past[callID]
	if ok && callID != "" {
		delete(b.past, callID)
		return x, true
	}
	return exchange{}, false
}

// put asks the person and makes sure that what comes back answers q. Where
// there is nobody, or the answer does not fit, the answer is no.
func (b *Broker) put(ctx context.Context, q uip.Request) (uip.Response, error) {
	a, err := b.person.Ask(ctx, q)
	switch {
	case ctx.Err() != nil:
		return uip.Response{}, ctx.Err()
	case errors.Is(err, uip.ErrNobody):
		return refusal(q, Nobody, uip.ErrNobody.Error()), nil
	case err != nil:
		return uip.Response{}, fmt.Errorf("ask %q: %w", q.Display.Title, err)
	}
	if err := uip.Check(q, a); err != nil {
		return refusal(q, "broker", "the answer was not accepted: "+err.Error()), nil
	}
	a.TaskID = q.TaskID
	return a, nil
}

func refusal(q uip.Request, by, why string) uip.Response {
	a := uip.Response{ID: q.ID, TaskID: q.TaskID, Author: by, Comment: why}
	if q.Kind == uip.Confirm {
		a.Option = uip.Reject
	}
	return a
}

func record(ctx context.Context, sink event.Sink, task, actor string, e event.Event) error {
	return sink.Emit(ctx, event.Record{Task: task, Actor: actor, Event: e})
}

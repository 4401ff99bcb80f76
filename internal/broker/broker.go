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

// Recall tells b what the record says about calls that have not run yet: that
// q was asked about them, and what was answered if anything was.
func (b *Broker) Recall(q uip.Request, a *uip.Response) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if q.CallID() != "" {
		b.past[q.CallID()] = exchange{q, a}
		return
	}
	for _, part := range q.Parts {
		x := exchange{request: q}
		if a != nil {
			answer := a.Part(part)
			x.response = &answer
		}
		b.past[part.CallID()] = x
	}
}

// On returns an Interactor that keeps its questions and answers in sink.
func (b *Broker) On(sink event.Sink) uip.Interactor {
	return uip.Func(func(ctx context.Context, q uip.Request) (uip.Response, error) {
		select {
		case b.slot <- struct{}{}:
			defer func() { <-b.slot }()
		case <-ctx.Done():
			return uip.Response{}, ctx.Err()
		}
		if q.Kind == uip.Composite && q.CallID() == "" {
			return b.askAll(ctx, sink, q)
		}
		return b.ask(ctx, sink, q)
	})
}

// ask puts one question, or finds its answer in the past.
func (b *Broker) ask(ctx context.Context, sink event.Sink, q uip.Request) (uip.Response, error) {
	x, ok := b.recalled(q.CallID())
	switch {
	case !ok:
		return b.askNew(ctx, sink, q)
	case x.response != nil:
		return *x.response, nil
	}
	a, err := b.put(ctx, sink, x.request)
	if err != nil || x.request.CallID() != "" {
		return a, err
	}
	b.Recall(x.request, &a) // a card: the other calls on it have their answers now
	x, _ = b.recalled(q.CallID())
	return *x.response, nil
}

// askAll puts the parts of a card that were not asked about before as one
// question, and finds the answers to the others in the past.
func (b *Broker) askAll(ctx context.Context, sink event.Sink, q uip.Request) (uip.Response, error) {
	answer := uip.Response{ID: q.ID, TaskID: q.TaskID}
	var fresh []uip.Request
	for _, part := range q.Parts {
		if !b.knows(part.CallID()) {
			fresh = append(fresh, part)
			continue
		}
		a, err := b.ask(ctx, sink, part)
		if err != nil {
			return uip.Response{}, err
		}
		answer.Author, a.ID = a.Author, part.ID
		answer.Parts = append(answer.Parts, a)
	}
	switch len(fresh) {
	case 0:
		return answer, nil
	case len(q.Parts):
		return b.askNew(ctx, sink, q)
	}
	q.Parts = fresh
	a, err := b.askNew(ctx, sink, q)
	for _, part := range fresh {
		answer.Author = a.Author
		answer.Parts = append(answer.Parts, a.Part(part))
	}
	return answer, err
}

func (b *Broker) knows(callID string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.past[callID]
	return ok && callID != ""
}

// askNew puts a question that is not on record yet.
func (b *Broker) askNew(ctx context.Context, sink event.Sink, q uip.Request) (uip.Response, error) {
	if err := record(ctx, sink, q.TaskID, q.Author, event.InteractionRequested{Request: q}); err != nil {
		return uip.Response{}, err
	}
	return b.put(ctx, sink, q)
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

// put asks the person, makes sure that what comes back answers q, and puts it
// on record. Where there is nobody, or the answer does not fit, the answer is
// no. A question that is parked stays open.
func (b *Broker) put(ctx context.Context, sink event.Sink, q uip.Request) (uip.Response, error) {
	a, err := b.person.Ask(ctx, q)
	switch {
	case ctx.Err() != nil:
		return uip.Response{}, ctx.Err()
	case errors.Is(err, uip.ErrParked):
		return uip.Response{}, &uip.Waiting{Request: q}
	case errors.Is(err, uip.ErrNobody):
		a = refusal(q, Nobody, uip.ErrNobody.Error())
	case err != nil:
		return uip.Response{}, fmt.Errorf("ask %q: %w", q.Display.Title, err)
	default:
		if err := uip.Check(q, a); err != nil {
			a = refusal(q, "broker", "the answer was not accepted: "+err.Error())
		}
	}
	a.TaskID = q.TaskID
	return a, record(ctx, sink, q.TaskID, a.Author, event.InteractionResponded{Response: a})
}

func refusal(q uip.Request, by, why string) uip.Response {
	a := uip.Response{ID: q.ID, TaskID: q.TaskID, Author: by, Comment: why}
	if q.Kind == uip.Confirm || q.Purpose == uip.ConfirmRiskyAction {
		a.Option = uip.Reject
	}
	return a
}

func record(ctx context.Context, sink event.Sink, task, actor string, e event.Event) error {
	return sink.Emit(ctx, event.Record{Task: task, Actor: actor, Event: e})
}

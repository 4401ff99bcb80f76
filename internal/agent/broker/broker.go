// Package broker puts questions to whoever is in charge, one at a time, and on
// the record: a request is written down before anyone waits for its answer,
// and every request that is not withdrawn gets exactly one response.
//
// What is asked is always the question as it is made now. One that was open
// when an earlier process died is put again under the same id if it is still
// the same question; an answer given then still counts, for the call it was
// given for and no other. A question on record that is no longer the one to be
// asked is void.
package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"coder/internal/core/event"
	"coder/internal/core/uip"
)

// Itself is the actor of an answer that closes a question which does not count.
const Itself = "broker"

// Broker serves the questions of one session. Use [New].
type Broker struct {
	person uip.Interactor
	slot   chan struct{} // holds the one open interaction

	mu   sync.Mutex // guards the fields below
	past map[string]exchange
}

// exchange is what the record says was asked about a call, and answered.
type exchange struct {
	whole    uip.Request   // as it was put: about this call, or a card
	part     uip.Request   // of it, about this call
	response *uip.Response // to part
}

// New returns a Broker that asks person.
func New(person uip.Interactor) *Broker {
	return &Broker{person: person, slot: make(chan struct{}, 1), past: make(map[string]exchange)}
}

// Recall tells b what the record says about a call that has not run yet: that q
// was the last that was asked about it, alone or with others, and what was
// answered if anything was. A question that is about no call goes by its own id. The caller makes sure that the answer is one that
// this user gave to q.
func (b *Broker) Recall(callID string, q uip.Request, a *uip.Response) {
	if a != nil && a.Author == Itself {
		return // q was void, and the call is asked about anew
	}
	x := exchange{q, q, a}
	for _, part := range q.Parts {
		if q.CallID() == callID || part.CallID() != callID {
			continue
		}
		x.part = part
		if a != nil {
			answer := a.Part(part)
			x.response = &answer
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.past[callID] = x
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
		if x, ok := b.recalled(cmp.Or(q.CallID(), q.ID)); ok { // its answer may be in the past
			switch {
			case x.response != nil && q.Same(x.part):
				return renamed(*x.response, x.part, q), nil
			case q.Same(x.whole):
				return b.putAgain(ctx, sink, q, x.whole)
			}
			if err := b.void(ctx, sink, x, q); err != nil {
				return uip.Response{}, err
			}
		}
		return b.askNew(ctx, sink, q)
	})
}

// askAll puts the parts of a card that have no answer in the past as one
// question: under its own id if that was open, and is still the same.
func (b *Broker) askAll(ctx context.Context, sink event.Sink, q uip.Request) (uip.Response, error) {
	answer := uip.Response{ID: q.ID, TaskID: q.TaskID}
	var fresh []uip.Request
	for _, part := range q.Parts {
		x, ok := b.recalled(part.CallID())
		switch {
		case !ok:
		case x.response != nil && part.Same(x.part):
			answer.Author = x.response.Author
			a := *x.response
			a.ID = part.ID
			answer.Parts = append(answer.Parts, a)
			continue
		case q.Same(x.whole):
			b.Forget(x.whole)
			return b.putAgain(ctx, sink, q, x.whole)
		default:
			if err := b.void(ctx, sink, x, part); err != nil {
				return uip.Response{}, err
			}
		}
		fresh = append(fresh, part)
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

// putAgain puts q under the ids that it was asked under.
func (b *Broker) putAgain(ctx context.Context, sink event.Sink, q, asked uip.Request) (uip.Response, error) {
	a, err := b.put(ctx, sink, q.Under(asked))
	return renamed(a, asked, q), err
}

// renamed is an answer to asked with the ids of q and its parts, which is otherwise the
// same.
func renamed(a uip.Response, asked, q uip.Request) uip.Response {
	parts := make([]uip.Response, len(q.Parts))
	for i, part := range q.Parts {
		parts[i] = a.Part(asked.Parts[i])
		parts[i].ID = part.ID
	}
	a.ID, a.Parts = q.ID, parts
	return a
}

// What is said of a question on record that is not the one to be asked: about a call, or else.
const (
	voided  = "the recorded question about %s is void: the call has changed and needs approval again"
	changed = "asked again because something changed: %s"
)

// void puts aside what the record says about a call: it was asked about
// another, or as something else. A question that was open is closed.
func (b *Broker) void(ctx context.Context, sink event.Sink, x exchange, q uip.Request) error {
	b.Forget(x.whole)
	text := fmt.Sprintf(voided, q.Display.Title)
	if q.Purpose != uip.ConfirmRiskyAction {
		text = fmt.Sprintf(changed, q.Display.Title)
	}
	if x.response == nil {
		a := x.whole.RefusedBy(Itself, text)
		if err := record(ctx, sink, q.TaskID, a.Author, event.InteractionResponded{Response: a}); err != nil {
			return err
		}
	}
	return record(ctx, sink, q.TaskID, Itself, event.Notice{Level: event.Warn, Text: text})
}

// Forget drops what is known of a question that is open, for all its calls.
func (b *Broker) Forget(asked uip.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.past, func(_ string, x exchange) bool { return x.response == nil && x.whole.ID == asked.ID })
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
	case err != nil:
		return uip.Response{}, fmt.Errorf("ask %q: %w", q.Display.Title, err)
	case a.Unanswered():
		a = uip.NoAnswer(q)
	default:
		if err := uip.Check(q, a); err != nil {
			a = q.RefusedBy(Itself, "the answer was not accepted: "+err.Error())
		}
	}
	a.TaskID = q.TaskID
	return a, record(ctx, sink, q.TaskID, a.Author, event.InteractionResponded{Response: a})
}

func record(ctx context.Context, sink event.Sink, task, actor string, e event.Event) error {
	return sink.Emit(ctx, event.Record{Task: task, Actor: actor, Event: e})
}

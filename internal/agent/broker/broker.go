// Package broker asks the user questions, one at a time, and records them: it records a request before
// anyone waits for its answer, and every request that is not withdrawn gets exactly one response.
//
// A question always shows the current request. If a question was open when an earlier process died and
// is still the same, the broker asks it again under the same id; an answer to the earlier question
// still counts, but only for its own call. A recorded question that no longer matches its call is void.
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

// Itself is the actor of an answer that closes a void question or replaces an invalid answer.
const Itself = "broker"

// Broker asks the questions of one session. Use [New].
type Broker struct {
	person uip.Interactor
	slot   chan struct{} // holds the one open interaction

	mu   sync.Mutex // guards the fields below
	past map[string]exchange
}

// exchange is a recorded question about a call, and its answer.
type exchange struct {
	whole    uip.Request   // as it was asked: about this call, or a card
	part     uip.Request   // the part about this call
	response *uip.Response // the answer to part
}

// New returns a Broker that asks person.
func New(person uip.Interactor) *Broker {
	return &Broker{person: person, slot: make(chan struct{}, 1), past: make(map[string]exchange)}
}

// Recall gives b the recorded question and answer for a call that has not run yet: q is the
// last question about the call, alone or on a card, and a is its answer, if any. A question
// without a call goes by its own id. The caller makes sure that this user gave a to q.
func (b *Broker) Recall(callID string, q uip.Request, a *uip.Response) {
	if a != nil && a.Author == Itself {
		return // q was void; the call needs a new question
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

// On returns an Interactor that records its questions and answers in sink.
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
		if x, ok := b.recalled(cmp.Or(q.CallID(), q.ID)); ok { // it may have been answered already
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

// askAll asks the parts of a card without a recorded answer as one
// question: under its own id if it was open and is still the same.
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

// putAgain asks q under the ids of the earlier question.
func (b *Broker) putAgain(ctx context.Context, sink event.Sink, q, asked uip.Request) (uip.Response, error) {
	a, err := b.put(ctx, sink, q.Under(asked))
	return renamed(a, asked, q), err
}

// renamed returns a copy of a, the answer to asked, with the ids of q and its parts.
func renamed(a uip.Response, asked, q uip.Request) uip.Response {
	parts := make([]uip.Response, len(q.Parts))
	for i, part := range q.Parts {
		parts[i] = a.Part(asked.Parts[i])
		parts[i].ID = part.ID
	}
	a.ID, a.Parts = q.ID, parts
	return a
}

// Notices for a recorded question that is no longer valid: about a call, and about anything else.
const (
	voided  = "the recorded question about %s is void: the call has changed and needs approval again"
	changed = "asked again because something changed: %s"
)

// void discards the recorded question about a call, because it was about
// another call or its text changed. It closes the question if it was open.
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

// Forget drops an open question for all its calls.
func (b *Broker) Forget(asked uip.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.past, func(_ string, x exchange) bool { return x.response == nil && x.whole.ID == asked.ID })
}

// askNew records and asks a new question.
func (b *Broker) askNew(ctx context.Context, sink event.Sink, q uip.Request) (uip.Response, error) {
	if err := record(ctx, sink, q.TaskID, q.Author, event.InteractionRequested{Request: q}); err != nil {
		return uip.Response{}, err
	}
	return b.put(ctx, sink, q)
}

// recalled returns the recorded exchange about a call and removes it.
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

// put asks the user, checks that the response answers q, and records it. Without a user,
// or if the response does not fit, the answer is no. A parked question stays open.
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

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
	"coder/internal/core/message"
	"coder/internal/core/uip"
)

// ActorBroker is the actor of an answer that closes a void question or replaces an invalid answer.
const ActorBroker = "broker"

// Broker asks the questions of one session. Use [New].
type Broker struct {
	user uip.Interactor
	slot chan struct{} // holds the one open interaction

	mu       sync.Mutex // guards the fields below
	recorded map[string]exchange
}

// exchange is a recorded question about a call, and its answer.
type exchange struct {
	request  uip.Request   // as it was asked: about this call, or a card
	part     uip.Request   // the part about this call
	response *uip.Response // the answer to part
}

// New returns a Broker that asks person.
func New(person uip.Interactor) *Broker {
	return &Broker{user: person, slot: make(chan struct{}, 1), recorded: make(map[string]exchange)}
}

// Restore gives b the recorded question and answer for a call that has not run yet: q is the
// last question about the call, alone or on a card, and a is its answer, if any. A question
// without a call goes by its own id. The caller makes sure that this user gave a to q.
func (b *Broker) Restore(callID string, q uip.Request, a *uip.Response) {
	if a != nil && a.Author == ActorBroker {
		return // q was void; the call needs a new question
	}
	x := exchange{q, q, a}
	for _, part := range q.Parts {
		if q.CallID() == callID || part.CallID() != callID {
			continue
		}
		x.part = part
		if a != nil {
			answer := a.PartAnswer(part)
			x.response = &answer
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.recorded[callID] = x
}

// WithSink returns an Interactor that records its questions and answers in sink.
func (b *Broker) WithSink(sink event.Sink) uip.Interactor {
	return uip.InteractorFunc(func(ctx context.Context, q uip.Request) (uip.Response, error) {
		select {
		case b.slot <- struct{}{}:
			defer func() { <-b.slot }()
		case <-ctx.Done():
			return uip.Response{}, ctx.Err()
		}
		if q.Kind == uip.KindComposite && q.CallID() == "" {
			return b.askAll(ctx, sink, q)
		}
		if x, ok := b.takeRecorded(cmp.Or(q.CallID(), q.ID)); ok { // it may have been answered already
			switch {
			case x.response != nil && q.IsSame(x.part):
				return withIDsOf(*x.response, x.part, q), nil
			case q.IsSame(x.request):
				return b.reask(ctx, sink, q, x.request)
			}
			if err := b.discard(ctx, sink, x, q); err != nil {
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
		x, ok := b.takeRecorded(part.CallID())
		switch {
		case !ok:
		case x.response != nil && part.IsSame(x.part):
			answer.Author = x.response.Author
			a := *x.response
			a.ID = part.ID
			answer.Parts = append(answer.Parts, a)
			continue
		case q.IsSame(x.request):
			b.Forget(x.request)
			return b.reask(ctx, sink, q, x.request)
		default:
			if err := b.discard(ctx, sink, x, part); err != nil {
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
		answer.Parts = append(answer.Parts, a.PartAnswer(part))
	}
	return answer, err
}

// reask asks q under the ids of the earlier question.
func (b *Broker) reask(ctx context.Context, sink event.Sink, q, asked uip.Request) (uip.Response, error) {
	a, err := b.askAndRecord(ctx, sink, q.WithIDsOf(asked))
	return withIDsOf(a, asked, q), err
}

// withIDsOf returns a copy of a, the answer to asked, with the ids of q and its parts.
func withIDsOf(a uip.Response, asked, q uip.Request) uip.Response {
	parts := make([]uip.Response, len(q.Parts))
	for i, part := range q.Parts {
		parts[i] = a.PartAnswer(asked.Parts[i])
		parts[i].ID = part.ID
	}
	a.ID, a.Parts = q.ID, parts
	return a
}

// Notices for a recorded question that is no longer valid: about a call, and about anything else.
const (
	voidedNotice  = "the recorded question about %s is void: the call has changed and needs approval again"
	changedNotice = "asked again because something changed: %s"
)

// discard discards the recorded question about a call, because it was about
// another call or its text changed. It closes the question if it was open.
func (b *Broker) discard(ctx context.Context, sink event.Sink, x exchange, q uip.Request) error {
	b.Forget(x.request)
	text := fmt.Sprintf(voidedNotice, q.Display.Title)
	if q.Purpose != uip.PurposeConfirmRiskyAction {
		text = fmt.Sprintf(changedNotice, q.Display.Title)
	}
	if x.response == nil {
		a := x.request.Refusal(ActorBroker, text)
		if err := record(ctx, sink, q.TaskID, a.Author, event.InteractionResponded{Response: a}); err != nil {
			return err
		}
	}
	return record(ctx, sink, q.TaskID, ActorBroker, event.Notice{Level: event.LevelWarn, Text: text})
}

// Forget drops an open question for all its calls.
func (b *Broker) Forget(asked uip.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.recorded, func(_ string, x exchange) bool { return x.response == nil && x.request.ID == asked.ID })
}

// askNew records and asks a new question.
func (b *Broker) askNew(ctx context.Context, sink event.Sink, q uip.Request) (uip.Response, error) {
	if err := record(ctx, sink, q.TaskID, q.Author, event.InteractionRequested{Request: q}); err != nil {
		return uip.Response{}, err
	}
	return b.askAndRecord(ctx, sink, q)
}

// takeRecorded returns the recorded exchange about a call and removes it.
func (b *Broker) takeRecorded(callID string) (exchange, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	x, ok := b.recorded[callID]
	if ok && callID != "" {
		delete(b.recorded, callID)
		return x, true
	}
	return exchange{}, false
}

// askAndRecord asks the user, checks that the response answers q, and records it. Without a user,
// or if the response does not fit, the answer is no. A parked question stays open.
func (b *Broker) askAndRecord(ctx context.Context, sink event.Sink, q uip.Request) (uip.Response, error) {
	a, err := b.user.Ask(ctx, q)
	switch {
	case ctx.Err() != nil:
		return uip.Response{}, ctx.Err()
	case errors.Is(err, uip.ErrAnswerPending):
		return uip.Response{}, &uip.PendingError{Request: q}
	case err != nil:
		return uip.Response{}, message.Errorf("ask %q: %w", q.Display.Title, err)
	case a.IsUnanswered():
		a = uip.NoAnswer(q)
	default:
		if err := uip.CheckResponse(q, a); err != nil {
			a = q.Refusal(ActorBroker, "the answer was not accepted: "+err.Error())
		}
	}
	a.TaskID = q.TaskID
	return a, record(ctx, sink, q.TaskID, a.Author, event.InteractionResponded{Response: a})
}

func record(ctx context.Context, sink event.Sink, task, actor string, e event.Event) error {
	return sink.Emit(ctx, event.Record{Task: task, Actor: actor, Event: e})
}

package provider

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"
)

// Lookup finds out how many tokens a server takes.
type Lookup struct {
	// Ask asks the server; 0 means that it does not say.
	Ask func(ctx context.Context, model string) int
	// Keep is told what was found out, in that way or from a refusal.
	Keep func(model string, tokens int)
}

// mostAsked is how often a server that does not say is asked: one that loads a
// model with the first request may know by the next.
const mostAsked = 3

// Learn wraps p so that the server is asked beside the first request for a
// model how many tokens it takes. The request does not wait for that.
func Learn(p Provider, l Lookup) Provider {
	return &learner{next: p, Lookup: l, asked: make(map[string]int)}
}

type learner struct {
	Lookup
	next Provider

	mu    sync.Mutex     // guards the field below
	asked map[string]int // how often, by model
}

func (l *learner) Stream(ctx context.Context, req Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		answer, stop := l.begin(ctx, req.Model)
		defer stop()
		for d, err := range l.next.Stream(ctx, req) {
			_, whole := d.(Done)
			if tokens := l.answered(ctx, req.Model, answer, whole); tokens > 0 && !yield(Window(tokens), nil) {
				return
			}
			if e, ok := errors.AsType[*Error](err); ok && e.Window > 0 {
				l.learnt(req.Model, e.Window)
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// grace is how long the end of a reply waits for an answer that is not there
// yet. One that takes longer is not asked for again.
const grace = time.Second

// answered is the answer about a model if it has just come; 0 if not.
func (l *learner) answered(ctx context.Context, model string, answer <-chan int, whole bool) (tokens int) {
	select {
	case tokens = <-answer:
	default:
		if answer == nil || !whole {
			return 0
		}
		late := time.NewTimer(grace)
		defer late.Stop()
		select {
		case tokens = <-answer:
		case <-ctx.Done():
		case <-late.C:
			l.enough(model)
		}
	}
	if tokens > 0 {
		l.learnt(model, tokens)
	}
	return tokens
}

// begin asks for the window of a model, if that is still to be done. Stop ends
// the asking.
func (l *learner) begin(ctx context.Context, model string) (answer <-chan int, stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asked[model]++; l.asked[model] > mostAsked {
		return nil, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	told := make(chan int, 1)
	go func() {
		defer close(told) // there is one answer
		told <- l.Ask(ctx, model)
	}()
	return told, func() {
		cancel()
		for range told { // until it has ended
		}
	}
}

// learnt keeps what was found out: it need not be asked for again.
func (l *learner) learnt(model string, tokens int) {
	l.enough(model)
	l.Keep(model, tokens)
}

func (l *learner) enough(model string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked[model] = mostAsked
}

package provider

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"coder/internal/core/clock"
)

// Lookup finds out how many tokens a server takes.
type Lookup struct {
	// Ask asks the server; 0 means that it does not say.
	Ask func(ctx context.Context, model string) int
	// Keep is told what was found out, in that way or from a refusal.
	Keep func(model string, tokens int)
	// Patience is how long the first request for a model waits for the answer: a
	// request that is too long for a server nearby is then never sent.
	Patience time.Duration
}

// margin is how far our estimate of a request may fall short.
const margin = 1.25

// mostAsked is how often a server that does not say is asked: one that loads a
// model with the first request may know by the next.
const mostAsked = 3

// Learn wraps p so that the server is asked beside the first request for a
// model how many tokens it takes. The request waits for that no longer than
// Patience, and not at all once anything is known.
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
		if tokens := l.wait(ctx, req.Model, answer); tokens > 0 {
			if float64(req.Estimate)*margin > float64(tokens) {
				yield(nil, &Error{Kind: ErrContextTooLong, Window: tokens, Err: fmt.Errorf("a request of about %d tokens was not sent: the server takes %d", req.Estimate, tokens)})
				return
			}
			if !yield(Window(tokens), nil) {
				return
			}
		}
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

// wait is the answer about a model if it comes before the first request must go;
// 0 if not.
func (l *learner) wait(ctx context.Context, model string, answer <-chan int) (tokens int) {
	l.mu.Lock()
	first := l.asked[model] == 1
	l.mu.Unlock()
	if answer == nil || l.Patience == 0 || !first {
		return 0
	}
	late := time.NewTimer(l.Patience)
	defer late.Stop()
	select {
	case tokens = <-answer:
	case <-late.C:
	case <-ctx.Done():
	}
	if tokens > 0 {
		l.learnt(model, tokens)
	}
	return tokens
}

// beside is how long after a request the server is asked, so that the request goes
// first.
const beside = 3 * time.Millisecond

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
	later := beside
	if l.Patience > 0 && l.asked[model] == 1 {
		later = 0
	}
	go func() {
		defer close(told) // there is one answer
		if clock.Sleep(ctx, later) == nil {
			told <- l.Ask(ctx, model)
		}
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

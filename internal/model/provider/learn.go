package provider

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"
)

// Lookup finds a server's context window.
type Lookup struct {
	// Due reports whether to ask the server, during a request of about estimate tokens.
	Due func(model string, estimate int) bool
	// Ask asks the server; 0 means that the server does not report it.
	Ask func(ctx context.Context, model string) int
	// Keep saves an answer, including 0, or the figure in a refusal.
	Keep func(model string, tokens int)
	// Replied records which model replied, and reports whether another one did before.
	Replied func(model, by string) bool
	// Beside runs Ask.
	Beside *Beside
}

// margin is the factor by which the estimate of a request may be too low.
const margin = 1.25

// mostRounds limits how often a process asks about a model, whatever the server does.
const mostRounds = 3

// Learn wraps p and asks its server for a model's context window when that is
// due. It asks when the reply begins: by then the server has loaded the model. No
// request waits for the answer, which applies from the next request on.
func Learn(p Provider, l Lookup) Provider {
	return &learner{
		next: p, Lookup: l,
		rounds: make(map[string]int), asking: make(map[string]bool), heard: make(map[string]int),
	}
}

type learner struct {
	Lookup
	next Provider

	mu     sync.Mutex // guards the fields below, each by model
	rounds map[string]int
	asking map[string]bool
	heard  map[string]int // answers not yet emitted in a request
}

func (l *learner) Stream(ctx context.Context, req Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		tokens := l.announce(req.Model)
		if tokens > 0 && float64(req.Estimate)*margin > float64(tokens) {
			err := fmt.Errorf("a request of about %d tokens was not sent: the server accepts %d", req.Estimate, tokens)
			yield(nil, &Error{Kind: ErrContextTooLong, Window: tokens, Err: err})
			return
		}
		if tokens > 0 && !yield(Window(tokens), nil) {
			return
		}
		begun := false
		for d, err := range l.next.Stream(ctx, req) {
			if _, waiting := d.(Waiting); !waiting {
				l.consider(req, d, err, !begun)
				begun = true
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// consider asks the server if a part of its reply is a reason to.
func (l *learner) consider(req Request, d Delta, err error, first bool) {
	e, _ := errors.AsType[*Error](err)
	done, whole := d.(Done)
	switch {
	case e != nil && e.Window > 0:
		l.refused(req.Model, e.Window)
	case errors.Is(err, ErrContextTooLong):
		l.ask(req.Model)
	case err != nil:
	case first && l.Due(req.Model, req.Estimate):
		l.ask(req.Model)
	case whole && l.Replied(req.Model, done.Model):
		l.ask(req.Model)
	}
}

// announce returns the answer about a model if it is new, or 0.
func (l *learner) announce(model string) (tokens int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	tokens = l.heard[model]
	delete(l.heard, model)
	return tokens
}

// refused saves the figure in a refusal. A later answer does not replace it.
func (l *learner) refused(model string, tokens int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.asking, model)
	delete(l.heard, model)
	l.Keep(model, tokens)
}

// ask asks about a model in the background, unless it is already doing so.
func (l *learner) ask(model string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asking[model] || l.rounds[model] == mostRounds {
		return
	}
	l.rounds[model]++
	l.asking[model] = true
	l.Beside.Go(func(ctx context.Context) {
		tokens := l.Ask(ctx, model)
		l.mu.Lock()
		defer l.mu.Unlock()
		if !l.asking[model] {
			return
		}
		delete(l.asking, model)
		l.Keep(model, tokens)
		if tokens > 0 {
			l.heard[model] = tokens
		}
	})
}

// Beside runs a session's background work. The zero value is ready for use.
type Beside struct {
	mu   sync.Mutex // guards the fields below
	ctx  context.Context
	stop context.CancelFunc
	work sync.WaitGroup
}

// Go runs do in the background. do must return when its context ends.
func (b *Beside) Go(do func(context.Context)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stop == nil {
		b.ctx, b.stop = context.WithCancel(context.Background())
	}
	ctx := b.ctx
	b.work.Go(func() { do(ctx) })
}

// grace is how long Close waits for work to finish, so that a short session learns something, too.
const grace = 200 * time.Millisecond

// Close cancels the work and waits for it to end. New work may be started afterwards.
func (b *Beside) Close() error {
	b.mu.Lock()
	stop := b.stop
	b.stop = nil
	b.mu.Unlock()
	if stop != nil {
		late := time.AfterFunc(grace, stop)
		b.work.Wait()
		late.Stop()
		stop()
	}
	return nil
}

package provider

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"
)

// Lookup finds out how many tokens a server takes.
type Lookup struct {
	// Due reports whether the server should be asked, beside a request of about estimate tokens.
	Due func(model string, estimate int) bool
	// Ask asks the server; 0 means that the server does not say.
	Ask func(ctx context.Context, model string) int
	// Keep remembers an answer, 0 included, or the figure in a refusal.
	Keep func(model string, tokens int)
	// Replied notes which model replied, and reports whether another one did before.
	Replied func(model, by string) bool
	// Beside runs Ask.
	Beside *Beside
}

// margin is how far our estimate of a request may fall short.
const margin = 1.25

// mostRounds bounds how often a process asks about a model, whatever the server does.
const mostRounds = 3

// Learn wraps p and asks its server how many tokens a model takes, if that is due.
// The asking begins with the reply: by then the server has loaded the model. No request
// waits for the answer, which counts from the next request on.
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
	heard  map[string]int // answers that no request has announced yet
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

// consider asks the server if a part of its reply gives a reason to.
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

// announce is the answer about a model if it is news; 0 if not.
func (l *learner) announce(model string) (tokens int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	tokens = l.heard[model]
	delete(l.heard, model)
	return tokens
}

// refused keeps the figure in a refusal. An answer that is still to come does not replace it.
func (l *learner) refused(model string, tokens int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.asking, model)
	delete(l.heard, model)
	l.Keep(model, tokens)
}

// ask asks about a model beside everything else, unless that is under way.
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

// Beside owns what a session does beside its requests. The zero value is ready for use.
type Beside struct {
	mu   sync.Mutex // guards the fields below
	ctx  context.Context
	stop context.CancelFunc
	work sync.WaitGroup
}

// Go runs do, which must return when its context ends.
func (b *Beside) Go(do func(context.Context)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stop == nil {
		b.ctx, b.stop = context.WithCancel(context.Background())
	}
	ctx := b.ctx
	b.work.Go(func() { do(ctx) })
}

// grace is how long Close lets work end by itself: a short session learns something, too.
const grace = 200 * time.Millisecond

// Close cancels the work and waits for its end. Work may be started again afterwards.
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

package provider

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"coder/internal/core/message"
)

// WindowLookup finds a server's context window.
type WindowLookup struct {
	// IsDue reports whether to ask the server, during a request of about estimate tokens.
	IsDue func(model string, estimate int) bool
	// Ask asks the server; 0 means that the server does not report it.
	Ask func(ctx context.Context, model string) int
	// Save saves an answer, including 0, or the figure in a refusal.
	Save func(model string, tokens int)
	// RecordReply records which model replied, and reports whether another one did before.
	RecordReply func(model, by string) bool
	// Background runs Ask.
	Background *Background
}

// margin is the factor by which the estimate of a request may be too low.
const margin = 1.25

// maxRounds limits how often a process asks about a model, whatever the server does.
const maxRounds = 3

// LearnWindows wraps p and asks its server for a model's context window when that is
// due. It asks when the reply begins: by then the server has loaded the model. No
// request waits for the answer, which applies from the next request on.
func LearnWindows(p Provider, l WindowLookup) Provider {
	return &windowLearner{
		next: p, WindowLookup: l,
		rounds: make(map[string]int), asking: make(map[string]bool), answers: make(map[string]int),
	}
}

type windowLearner struct {
	WindowLookup
	next Provider

	mu      sync.Mutex // guards the fields below, each by model
	rounds  map[string]int
	asking  map[string]bool
	answers map[string]int // answers not yet emitted in a request
}

func (l *windowLearner) Stream(ctx context.Context, req Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		tokens := l.takeAnswer(req.Model)
		if tokens > 0 && float64(req.Estimate)*margin > float64(tokens) {
			err := message.Errorf("a request of about %d tokens was not sent: the server accepts %d", req.Estimate,
				tokens)
			yield(nil, &Error{Kind: ErrContextTooLong, Window: tokens, Err: err})
			return
		}
		if tokens > 0 && !yield(Window(tokens), nil) {
			return
		}
		begun := false
		for d, err := range l.next.Stream(ctx, req) {
			if _, waiting := d.(Waiting); !waiting {
				l.maybeAsk(req, d, err, !begun)
				begun = true
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// maybeAsk asks the server if a part of its reply is a reason to.
func (l *windowLearner) maybeAsk(req Request, d Delta, err error, first bool) {
	e, _ := errors.AsType[*Error](err)
	done, whole := d.(Done)
	switch {
	case e != nil && e.Window > 0:
		l.saveRefused(req.Model, e.Window)
	case errors.Is(err, ErrContextTooLong):
		l.ask(req.Model)
	case err != nil:
	case first && l.IsDue(req.Model, req.Estimate):
		l.ask(req.Model)
	case whole && l.RecordReply(req.Model, done.Model):
		l.ask(req.Model)
	}
}

// takeAnswer returns the answer about a model if it is new, or 0.
func (l *windowLearner) takeAnswer(model string) (tokens int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	tokens = l.answers[model]
	delete(l.answers, model)
	return tokens
}

// saveRefused saves the figure in a refusal. A later answer does not replace it.
func (l *windowLearner) saveRefused(model string, tokens int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.asking, model)
	delete(l.answers, model)
	l.Save(model, tokens)
}

// ask asks about a model in the background, unless it is already doing so.
func (l *windowLearner) ask(model string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asking[model] || l.rounds[model] == maxRounds {
		return
	}
	l.rounds[model]++
	l.asking[model] = true
	l.Background.Go(func(ctx context.Context) {
		tokens := l.Ask(ctx, model)
		l.mu.Lock()
		defer l.mu.Unlock()
		if !l.asking[model] {
			return
		}
		delete(l.asking, model)
		l.Save(model, tokens)
		if tokens > 0 {
			l.answers[model] = tokens
		}
	})
}

// Background runs a session's background work. The zero value is ready for use.
type Background struct {
	mu   sync.Mutex // guards the fields below
	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup
}

// Go runs do in the background. do must return when its context ends.
func (b *Background) Go(do func(context.Context)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stop == nil {
		b.ctx, b.stop = context.WithCancel(context.Background())
	}
	ctx := b.ctx
	b.wg.Go(func() { do(ctx) })
}

// closeGrace is how long Close waits for work to finish, so that a short session learns something, too.
const closeGrace = 200 * time.Millisecond

// Close cancels the work and waits for it to end. New work may be started afterwards.
func (b *Background) Close() error {
	b.mu.Lock()
	stop := b.stop
	b.stop = nil
	b.mu.Unlock()
	if stop != nil {
		late := time.AfterFunc(closeGrace, stop)
		b.wg.Wait()
		late.Stop()
		stop()
	}
	return nil
}

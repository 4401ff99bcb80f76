package provider

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"coder/internal/core/clock"
	"coder/internal/core/message"
)

// Backoff configures retries. Zero fields mean the defaults.
type Backoff struct {
	Retries       int                                              // attempts after the first
	FirstWait     time.Duration                                    // wait before the first retry; doubles each time
	MaxWait       time.Duration                                    // longest wait that coder chooses
	MaxServerWait time.Duration                                    // longest wait that a provider may ask for
	Jitter        func() float64                                   // in [0,1); nil means none
	Sleep         func(ctx context.Context, d time.Duration) error // nil means real time
}

const (
	defaultFirstWait     = 500 * time.Millisecond
	defaultMaxWait       = 20 * time.Second
	defaultMaxServerWait = 60 * time.Second

	// While a server loads its model, coder asks it again at this interval, up to this limit.
	loadingInterval = 2 * time.Second
	loadingTimeout  = 10 * time.Minute
)

// Retry wraps p and retries failures that may pass. The sequence announces each new attempt with a [Restart].
// If a provider asks for a longer wait than b.Obey, the request fails at once. A server that is loading its
// model is waited for; that is not an attempt, and the sequence reports it with [Waiting].
func Retry(p Provider, b Backoff) Provider {
	b.FirstWait = cmp.Or(max(b.FirstWait, 0), defaultFirstWait)
	b.MaxWait = cmp.Or(max(b.MaxWait, 0), defaultMaxWait)
	b.MaxServerWait = cmp.Or(max(b.MaxServerWait, 0), defaultMaxServerWait)
	if b.Sleep == nil {
		b.Sleep = clock.Sleep
	}
	return retrier{p, b}
}

type retrier struct {
	next    Provider
	backoff Backoff
}

func (r retrier) Stream(ctx context.Context, req Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		var loading time.Duration
		for attempt := 1; ; attempt++ {
			failure, goOn := r.tryOnce(ctx, req, yield)
			if !goOn {
				return
			}
			if errors.Is(failure, ErrLoading) && loading < loadingTimeout {
				if !yield(Waiting{Elapsed: loading, Loading: true}, nil) {
					return
				}
				if err := r.backoff.Sleep(ctx, loadingInterval); err != nil {
					yield(nil, err)
					return
				}
				loading += loadingInterval
				attempt--
				continue
			}
			wait, again := r.retryDelay(failure, attempt)
			if !again {
				yield(nil, failure)
				return
			}
			if !yield(Restart{Attempt: attempt + 1, MaxAttempts: r.backoff.Retries + 1, Wait: wait, Err: failure}, nil) {
				return
			}
			if err := r.backoff.Sleep(ctx, wait); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// tryOnce passes on one attempt. goOn is false when the sequence is
// over: the reply is complete, the consumer left, or ctx ended.
func (r retrier) tryOnce(ctx context.Context, req Request, yield func(Delta, error) bool) (failure error, goOn bool) {
	for d, err := range r.next.Stream(ctx, req) {
		if err != nil {
			if ctx.Err() != nil {
				yield(nil, ctx.Err())
				return nil, false
			}
			return err, true
		}
		if !yield(d, nil) {
			return nil, false
		}
		if _, whole := d.(Done); whole {
			return nil, false
		}
	}
	return &Error{Kind: ErrCutOff, Retryable: true, Err: errors.New("the stream ended early")}, true
}

// retryDelay decides whether to try again after failure, and how long to wait.
func (r retrier) retryDelay(failure error, attempt int) (time.Duration, bool) {
	e, ok := errors.AsType[*Error](failure)
	if attempt > r.backoff.Retries || !ok || !e.Retryable || errors.Is(failure, ErrLoading) {
		return 0, false
	}
	if e.RetryAfter > 0 {
		return e.RetryAfter, e.RetryAfter <= r.backoff.MaxServerWait
	}
	d := r.backoff.MaxWait
	if shift := attempt - 1; shift < 16 {
		d = min(r.backoff.FirstWait<<shift, r.backoff.MaxWait)
	}
	if r.backoff.Jitter != nil {
		d = d/2 + time.Duration(r.backoff.Jitter()*float64(d/2))
	}
	return d, true
}

// Fallback wraps p and tries other models in turn if the requested model is
// unavailable. It announces each with a [Restart]. It does not resend an invalid
// request or a request with a rejected key, which would fail everywhere.
func Fallback(p Provider, models ...string) Provider {
	if len(models) == 0 {
		return p
	}
	return fallback{p, models}
}

type fallback struct {
	next   Provider
	models []string
}

func (f fallback) Stream(ctx context.Context, req Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		asked := req.Model
		var failure error
		for i, model := range append([]string{asked}, f.models...) {
			if i > 0 && model == asked {
				continue
			}
			if i > 0 && !yield(Restart{Attempt: i + 1, MaxAttempts: len(f.models) + 1,
				Err: message.Errorf("%w; trying %s instead", failure, model)}, nil) {
				return
			}
			req.Model = model
			// The end of a reply names its model, if not the requested one.
			signed := func(d Delta, err error) bool {
				if done, ok := d.(Done); ok && model != asked {
					done.Model = model
					d = done
				}
				return yield(d, err)
			}
			var goOn bool
			if failure, goOn = (retrier{next: f.next}).tryOnce(ctx, req, signed); !goOn {
				return
			}
			e, ok := errors.AsType[*Error](failure)
			if !(ok && e.Status >= 500) && !slices.ContainsFunc(fallbackErrors,
				func(kind error) bool { return errors.Is(failure, kind) }) {
				break
			}
		}
		yield(nil, failure)
	}
}

// fallbackErrors are failures of one model that another may not have.
var fallbackErrors = []error{ErrUnknownModel, ErrOverloaded, ErrLoading, ErrRateLimited, ErrUnreachable, ErrCutOff}

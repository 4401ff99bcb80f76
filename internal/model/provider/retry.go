package provider

import (
	"context"
	"errors"
	"iter"
	"time"
)

// Backoff says how to try again. Zero fields mean the defaults.
type Backoff struct {
	Retries int                                              // attempts after the first
	First   time.Duration                                    // wait before the first retry; doubles each time
	Most    time.Duration                                    // longest wait of our own choosing
	Obey    time.Duration                                    // longest wait a provider may ask for
	Jitter  func() float64                                   // in [0,1); nil means none
	Sleep   func(ctx context.Context, d time.Duration) error // nil means real time
}

const (
	firstWait = 500 * time.Millisecond
	mostWait  = 20 * time.Second
	obeyWait  = 60 * time.Second
)

// Retry wraps p so that failures which may pass are tried again. The sequence
// it yields announces each new attempt with a [Restart]. A provider that asks
// for a longer wait than we obey fails at once.
func Retry(p Provider, b Backoff) Provider {
	b.First = cmpOr(b.First, firstWait)
	b.Most = cmpOr(b.Most, mostWait)
	b.Obey = cmpOr(b.Obey, obeyWait)
	if b.Sleep == nil {
		b.Sleep = sleep
	}
	return retrier{p, b}
}

func cmpOr(d, def time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return def
}

type retrier struct {
	next Provider
	b    Backoff
}

func (r retrier) Stream(ctx context.Context, req Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		for attempt := 1; ; attempt++ {
			failure, goOn := r.once(ctx, req, yield)
			if !goOn {
				return
			}
			wait, again := r.wait(failure, attempt)
			if !again {
				yield(nil, failure)
				return
			}
			if !yield(Restart{Attempt: attempt + 1, Of: r.b.Retries + 1, Wait: wait, Err: failure}, nil) {
				return
			}
			if err := r.b.Sleep(ctx, wait); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// once passes one attempt on. goOn is false when the sequence is over: the
// reply is whole, the consumer left, or ctx ended.
func (r retrier) once(ctx context.Context, req Request, yield func(Delta, error) bool) (failure error, goOn bool) {
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

// wait decides whether to try again after failure, and how long to wait.
func (r retrier) wait(failure error, attempt int) (time.Duration, bool) {
	var e *Error
	if attempt > r.b.Retries || !errors.As(failure, &e) || !e.Retryable {
		return 0, false
	}
	if e.RetryAfter > 0 {
		return e.RetryAfter, e.RetryAfter <= r.b.Obey
	}
	d := r.b.Most
	if shift := attempt - 1; shift < 16 {
		d = min(r.b.First<<shift, r.b.Most)
	}
	if r.b.Jitter != nil {
		d = d/2 + time.Duration(r.b.Jitter()*float64(d/2))
	}
	return d, true
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

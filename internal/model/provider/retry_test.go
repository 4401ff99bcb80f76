package provider_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"coder/internal/model/provider"
)

// failing is a provider that fails in given ways and then answers.
type failing struct {
	failures []error
	asked    int
}

func (f *failing) Stream(ctx context.Context, _ provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		if ctx.Err() != nil {
			yield(nil, ctx.Err())
			return
		}
		f.asked++
		if !yield(provider.TextDelta(fmt.Sprint("try ", f.asked)), nil) {
			return
		}
		if f.asked <= len(f.failures) {
			if err := f.failures[f.asked-1]; err != nil {
				yield(nil, err)
			}
			return
		}
		yield(provider.Done{Stop: provider.StopEnd}, nil)
	}
}

func fallbackErrors(wait time.Duration) error {
	return &provider.Error{Kind: provider.ErrRateLimited, Retryable: true, RetryAfter: wait, Err: errors.New("slow down")}
}

func TestRetry(t *testing.T) {
	lasting := &provider.Error{Kind: provider.ErrAuth, Err: errors.New("no")}
	for _, tc := range []struct {
		name     string
		failures []error
		b        provider.Backoff
		waits    []time.Duration
		err      error
		text     string
	}{
		{"no failure", nil, provider.Backoff{Retries: 3}, nil, nil, "try 1"},
		{"waits double", []error{fallbackErrors(0), fallbackErrors(0), fallbackErrors(0)}, provider.Backoff{Retries: 3, FirstWait: time.Second}, []time.Duration{1e9, 2e9, 4e9}, nil, "try 4"},
		{"waits have a limit", []error{fallbackErrors(0), fallbackErrors(0), fallbackErrors(0)}, provider.Backoff{Retries: 3, FirstWait: time.Second, MaxWait: 2 * time.Second}, []time.Duration{1e9, 2e9, 2e9}, nil, "try 4"},
		{"by default", []error{fallbackErrors(0), fallbackErrors(0)}, provider.Backoff{Retries: 3}, []time.Duration{5e8, 1e9}, nil, "try 3"},
		{"jitter", []error{fallbackErrors(0), fallbackErrors(0)}, provider.Backoff{Retries: 3, FirstWait: time.Second, Jitter: func() float64 { return 0.5 }}, []time.Duration{75e7, 15e8}, nil, "try 3"},
		{"the provider says how long", []error{fallbackErrors(7 * time.Second), fallbackErrors(0)}, provider.Backoff{Retries: 3, FirstWait: time.Second}, []time.Duration{7e9, 2e9}, nil, "try 3"},
		{"too long", []error{fallbackErrors(time.Hour)}, provider.Backoff{Retries: 3}, nil, provider.ErrRateLimited, "try 1"},
		{"too often", []error{fallbackErrors(0), fallbackErrors(0), fallbackErrors(0)}, provider.Backoff{Retries: 2, FirstWait: time.Second}, []time.Duration{1e9, 2e9}, provider.ErrRateLimited, "try 3"},
		{"no retries", []error{fallbackErrors(0)}, provider.Backoff{}, nil, provider.ErrRateLimited, "try 1"},
		{"a failure that lasts", []error{lasting}, provider.Backoff{Retries: 3}, nil, provider.ErrAuth, "try 1"},
		{"a stream that just ends", []error{nil}, provider.Backoff{Retries: 3, FirstWait: time.Second}, []time.Duration{1e9}, nil, "try 2"},
		{"many failures", repeat(fallbackErrors(0), 30), provider.Backoff{Retries: 30, FirstWait: time.Hour, MaxWait: time.Hour}, repeat(time.Hour, 30), nil, "try 31"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				var waits []time.Duration
				r, err := provider.Collect(provider.Retry(&failing{failures: tc.failures}, tc.b).Stream(t.Context(), provider.Request{}), func(d provider.Delta) error {
					if again, ok := d.(provider.Restart); ok {
						waits = append(waits, again.Wait)
						if again.Attempt != len(waits)+1 || again.MaxAttempts != tc.b.Retries+1 || again.Err == nil {
							t.Errorf("restart %+v", again)
						}
					}
					return nil
				})
				if !errors.Is(err, tc.err) || r.Message.Text() != tc.text || !reflect.DeepEqual(waits, tc.waits) {
					t.Errorf("%q, %v, waits %v", r.Message.Text(), err, waits)
				}
				var total time.Duration
				for _, w := range tc.waits {
					total += w
				}
				if took := time.Since(start); took != total {
					t.Errorf("took %v, want %v", took, total)
				}
			})
		})
	}
}

func repeat[T any](v T, n int) []T {
	var all []T
	for range n {
		all = append(all, v)
	}
	return all
}

func TestRetryStopsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		f := &failing{failures: repeat(fallbackErrors(0), 30)}
		_, err := provider.Collect(provider.Retry(f, provider.Backoff{Retries: 30, FirstWait: 2 * time.Second, MaxWait: 2 * time.Second}).Stream(ctx, provider.Request{}), unwatched)
		if err != context.DeadlineExceeded || f.asked != 2 {
			t.Errorf("%v after %d attempts", err, f.asked)
		}
	})
}

func TestRetryStopsWhenNobodyListens(t *testing.T) {
	f := &failing{failures: repeat(fallbackErrors(0), 30)}
	for d := range provider.Retry(f, provider.Backoff{Retries: 30}).Stream(t.Context(), provider.Request{}) {
		if _, again := d.(provider.Restart); again {
			break
		}
	}
	if f.asked != 1 {
		t.Errorf("%d attempts", f.asked)
	}
}

// A server that loads its model is waited for: that is no attempt, it is told,
// and it has an end.
func TestAServerThatLoadsItsModelIsWaitedFor(t *testing.T) {
	loading := &provider.Error{Kind: provider.ErrLoading, Status: 503, Retryable: true, Err: errors.New("Loading model")}
	for _, tc := range []struct {
		name     string
		failures []error
		took     time.Duration
		err      error
	}{
		{"for a minute", repeat(error(loading), 30), time.Minute, nil},
		{"then busy", append(repeat(error(loading), 5), fallbackErrors(0)), 11 * time.Second, nil},
		{"busy, then loading", append([]error{fallbackErrors(0)}, repeat(error(loading), 5)...), 11 * time.Second, nil},
		{"for ever", repeat(error(loading), 1000), 10 * time.Minute, provider.ErrLoading},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				var told time.Duration
				_, err := provider.Collect(provider.Retry(&failing{failures: tc.failures}, provider.Backoff{Retries: 1, FirstWait: time.Second}).Stream(t.Context(), provider.Request{}), func(d provider.Delta) error {
					if w, ok := d.(provider.Waiting); ok {
						if !w.Loading || w.Elapsed != told {
							t.Errorf("told %+v, want %v", w, told)
						}
						told += 2 * time.Second
					}
					return nil
				})
				if took := time.Since(start); !errors.Is(err, tc.err) || took != tc.took {
					t.Errorf("%v after %v, want %v", err, took, tc.took)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := provider.Collect(provider.Retry(&failing{failures: repeat(error(loading), 1000)}, provider.Backoff{}).Stream(ctx, provider.Request{}), unwatched); err != context.DeadlineExceeded {
			t.Errorf("cancelled: %v", err)
		}
	})
}

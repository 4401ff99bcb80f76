package provider_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
	"testing/synctest"

	"coder/internal/model/provider"
)

// waiting is a provider whose reply comes when it is let go.
type waiting struct {
	begin chan struct{}
	err   error
}

func (w waiting) Stream(ctx context.Context, _ provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		select {
		case <-w.begin:
		case <-ctx.Done():
			yield(nil, ctx.Err())
			return
		}
		if w.err != nil {
			yield(nil, w.err)
			return
		}
		_ = yield(provider.TextDelta("hi"), nil) && yield(provider.Done{Stop: provider.StopEnd}, nil)
	}
}

func deltas(ctx context.Context, p provider.Provider, model string) (all []provider.Delta, err error) {
	for d, err := range p.Stream(ctx, provider.Request{Model: model}) {
		if err != nil {
			return all, err
		}
		all = append(all, d)
	}
	return all, nil
}

func TestTheWindowIsLearntBesideTheFirstRequest(t *testing.T) {
	w := waiting{begin: make(chan struct{}, 100)}
	kept := map[string]int{}
	asked := 0
	p := provider.Learn(w, provider.Lookup{
		Ask: func(_ context.Context, model string) int {
			asked++
			defer func() { w.begin <- struct{}{} }() // the reply comes when this is known, and before or after it is told
			return map[string]int{"small": 4096}[model]
		},
		Keep: func(model string, n int) { kept[model] = n },
	})
	got, err := deltas(t.Context(), p, "small")
	if !slices.Contains(got, provider.Delta(provider.Window(4096))) || err != nil || kept["small"] != 4096 || len(got) != 3 {
		t.Fatalf("%v %v %v", got, err, kept)
	}
	w.begin <- struct{}{}
	if got, err := deltas(t.Context(), p, "small"); err != nil || len(got) != 2 || asked != 1 {
		t.Errorf("what is known was asked for again: %v %v, %d times", got, err, asked)
	}
	asked = 0
	for range 5 {
		w.begin <- struct{}{}
		if got, err := deltas(t.Context(), p, "silent"); err != nil || len(got) != 2 {
			t.Errorf("%v %v", got, err)
		}
	}
	if asked != 3 || kept["silent"] != 0 {
		t.Errorf("a server that does not say was asked %d times, and %v is kept", asked, kept)
	}
}

func TestALookUpEndsWithTheRequest(t *testing.T) {
	synctest.Test(t, lookUpEnds)
}

func lookUpEnds(t *testing.T) {
	w := waiting{begin: make(chan struct{}, 1)}
	w.begin <- struct{}{}
	ended := 0
	p := provider.Learn(w, provider.Lookup{Ask: func(ctx context.Context, _ string) int { <-ctx.Done(); ended++; return 0 }})
	if got, err := deltas(t.Context(), p, "m"); err != nil || len(got) != 2 || ended != 1 {
		t.Errorf("%v %v, ended %d", got, err, ended)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := deltas(ctx, p, "another"); err != context.Canceled || ended != 1 {
		t.Errorf("who has left already is asked for: %v, ended %d", err, ended)
	}
	w.begin <- struct{}{}
	if _, err := deltas(t.Context(), p, "m"); err != nil || ended != 1 {
		t.Errorf("what takes too long was asked for again: %v, %d", err, ended)
	}
}

func TestARefusalTellsTheWindow(t *testing.T) {
	refusal := &provider.Error{Kind: provider.ErrContextTooLong, Window: 8192, Err: errors.New("too long")}
	w := waiting{begin: make(chan struct{}, 2), err: refusal}
	w.begin <- struct{}{}
	w.begin <- struct{}{}
	var kept []int
	asked := 0
	p := provider.Learn(w, provider.Lookup{Ask: func(context.Context, string) int { asked++; return 0 }, Keep: func(_ string, n int) { kept = append(kept, n) }})
	for range 2 {
		if _, err := deltas(t.Context(), p, "m"); !errors.Is(err, refusal) {
			t.Error(err)
		}
	}
	if !slices.Equal(kept, []int{8192, 8192}) || asked > 1 { // a refusal may come first
		t.Errorf("%v, asked %d times", kept, asked)
	}
}

// Package providertest holds what every provider promises, as tests. An
// implementation passes by serving the replies it is given in its own way.
package providertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"coder/internal/core/chat"
	"coder/internal/model/provider"

	"go.uber.org/goleak"
)

// Open makes a provider that answers the n'th request with the n'th reply. How
// a reply is cut into deltas is up to the provider. A reply that does not end
// in Done breaks off after its last delta.
//
// What Open starts must be stopped by t.Cleanup.
type Open func(t *testing.T, replies ...[]provider.Delta) provider.Provider

// TestProvider runs the suite.
func TestProvider(t *testing.T, open Open) {
	for _, tc := range []struct {
		name string
		run  func(*testing.T, Open)
	}{
		{"a reply arrives whole", whole},
		{"replies come in order", inOrder},
		{"Done is last", doneLast},
		{"a reply that breaks off ends in one error", oneError},
		{"leaving early is the end", leaving},
		{"a sequence that nobody reads asks nothing", unread},
		{"the context's end is the error, as it is", cancelled},
		{"a context that has ended asks nothing", dead},
		{"a deadline is told from a cancellation", deadline},
		{"requests may run side by side", sideBySide},
		{"requests are not changed", unchanged},
	} {
		t.Run(tc.name, func(t *testing.T) {
			leaks := goleak.IgnoreCurrent()
			t.Cleanup(func() { goleak.VerifyNone(t, leaks) }) // runs after the cleanups of open
			tc.run(t, open)
		})
	}
}

// ask is the request the suite makes.
func ask() provider.Request {
	return provider.Request{
		Model: "m", System: "be brief",
		Messages: []chat.Message{chat.TextMessage(chat.User, "hello")},
		Tools:    []provider.ToolSpec{{Name: "read", Doc: "reads", Schema: []byte(`{"type":"object"}`)}},
	}
}

func ignore(provider.Delta) error { return nil }

func say(texts ...string) []provider.Delta {
	var ds []provider.Delta
	for _, t := range texts {
		ds = append(ds, provider.TextDelta(t))
	}
	return append(ds, provider.Done{Stop: provider.StopEnd})
}

func whole(t *testing.T, open Open) {
	p := open(t, []provider.Delta{
		provider.ReasoningDelta{Text: "let me ", Field: "reasoning_content"},
		provider.ReasoningDelta{Text: "see", Field: "reasoning_content"},
		provider.TextDelta("Looking, "), provider.TextDelta("世界 👋."),
		provider.CallDelta{Index: 0, ID: "a", Name: "read"},
		provider.CallDelta{Index: 0, Args: `{"path":`},
		provider.CallDelta{Index: 0, Args: `"x"}`},
		provider.CallDelta{Index: 1, ID: "b", Name: "read", Args: `{}`},
		provider.Done{Stop: provider.StopTools, Usage: &chat.Usage{In: 10, Out: 5, Cached: 3}},
	})
	r, err := provider.Collect(p.Stream(t.Context(), ask()), ignore)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Message.Text(); got != "Looking, 世界 👋." {
		t.Errorf("text is %q", got)
	}
	if got := r.Message.Reasoning(); got != "let me see" {
		t.Errorf("reasoning is %q", got)
	}
	var calls []string
	for _, c := range r.Message.Calls() {
		calls = append(calls, fmt.Sprint(c.ID, " ", c.Name, " ", string(c.Args), c.Broken))
	}
	if got := strings.Join(calls, "; "); got != `a read {"path":"x"}; b read {}` {
		t.Errorf("calls are %s", got)
	}
	if r.Stop != provider.StopTools || r.Usage == nil || r.Usage.In != 10 || r.Usage.Out != 5 {
		t.Errorf("stop %q, usage %+v", r.Stop, r.Usage)
	}
}

func inOrder(t *testing.T, open Open) {
	p := open(t, say("one"), say("two"), say("three"))
	for _, want := range []string{"one", "two", "three"} {
		r, err := provider.Collect(p.Stream(t.Context(), ask()), ignore)
		if err != nil || r.Message.Text() != want {
			t.Errorf("got %q, %v; want %q", r.Message.Text(), err, want)
		}
	}
}

func doneLast(t *testing.T, open Open) {
	p := open(t, say("a", "b", "c"))
	dones, after := 0, 0
	for d, err := range p.Stream(t.Context(), ask()) {
		if err != nil {
			t.Fatal(err)
		}
		if dones > 0 {
			after++
		}
		if _, ok := d.(provider.Done); ok {
			dones++
		}
	}
	if dones != 1 || after != 0 {
		t.Errorf("%d Done deltas and %d after the first", dones, after)
	}
}

func oneError(t *testing.T, open Open) {
	p := open(t, []provider.Delta{
		provider.TextDelta("half "), provider.TextDelta("of it"),
		provider.CallDelta{Index: 0, ID: "a", Name: "read", Args: `{"path":"x"}`},
	})
	errs, after, done := 0, 0, false
	for d, err := range p.Stream(t.Context(), ask()) {
		if errs > 0 {
			after++
		}
		if err != nil {
			errs++
			if d != nil {
				t.Errorf("delta %v came with the error", d)
			}
			if !errors.Is(err, provider.ErrCutOff) {
				t.Errorf("the error is %v, want one that is ErrCutOff", err)
			}
		}
		_, isDone := d.(provider.Done)
		done = done || isDone
	}
	if errs != 1 || after != 0 || done {
		t.Errorf("%d errors, %d deltas after the first, Done: %v", errs, after, done)
	}
}

func leaving(t *testing.T, open Open) {
	p := open(t, say("a", "b", "c"), say("next"))
	n := 0
	for _, err := range p.Stream(t.Context(), ask()) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		break
	}
	if n != 1 {
		t.Errorf("%d deltas after leaving at the first", n)
	}
	r, err := provider.Collect(p.Stream(t.Context(), ask()), ignore)
	if err != nil || r.Message.Text() != "next" {
		t.Errorf("the next reply is %q, %v", r.Message.Text(), err)
	}
}

func unread(t *testing.T, open Open) {
	p := open(t, say("first"))
	_ = p.Stream(t.Context(), ask())
	r, err := provider.Collect(p.Stream(t.Context(), ask()), ignore)
	if err != nil || r.Message.Text() != "first" {
		t.Errorf("got %q, %v", r.Message.Text(), err)
	}
}

// long is a reply of many deltas, so that there is a middle to stop in.
func long() []provider.Delta { return say(strings.Split(strings.Repeat("word ;", 200), ";")...) }

func cancelled(t *testing.T, open Open) {
	p := open(t, long())
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var last error
	errs := 0
	for d, err := range p.Stream(ctx, ask()) {
		cancel(errors.New("a cause that is not the error"))
		if err != nil {
			last = err
			errs++
		}
		if _, ok := d.(provider.Done); ok {
			t.Error("Done came after the context ended")
		}
	}
	if last != context.Canceled || errs != 1 {
		t.Errorf("%d errors, the last %v; want context.Canceled itself, once", errs, last)
	}
}

func dead(t *testing.T, open Open) {
	p := open(t, say("kept for later"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	n := 0
	for _, err := range p.Stream(ctx, ask()) {
		n++
		if err != context.Canceled {
			t.Errorf("got %v, want context.Canceled itself", err)
		}
	}
	if n != 1 {
		t.Errorf("%d items, want the error alone", n)
	}
	r, err := provider.Collect(p.Stream(t.Context(), ask()), ignore)
	if err != nil || r.Message.Text() != "kept for later" {
		t.Errorf("the next reply is %q, %v", r.Message.Text(), err)
	}
}

func deadline(t *testing.T, open Open) {
	p := open(t, long())
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	_, err := provider.Collect(p.Stream(ctx, ask()), ignore)
	if err != context.DeadlineExceeded {
		t.Errorf("got %v, want context.DeadlineExceeded itself", err)
	}
}

func sideBySide(t *testing.T, open Open) {
	const streams = 8
	var replies [][]provider.Delta
	for i := range streams {
		n := fmt.Sprint(i, " ")
		replies = append(replies, say(n, n, n))
	}
	p := open(t, replies...)
	var (
		mu  sync.Mutex
		got = map[string]int{}
		all sync.WaitGroup
	)
	for range streams {
		all.Go(func() {
			r, err := provider.Collect(p.Stream(t.Context(), ask()), ignore)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			got[r.Message.Text()]++
		})
	}
	all.Wait()
	for i := range streams {
		n := fmt.Sprint(i, " ")
		if got[n+n+n] != 1 {
			t.Errorf("reply %d was given %d times; all: %v", i, got[n+n+n], got)
		}
	}
}

func unchanged(t *testing.T, open Open) {
	p := open(t, say("a"), say("b"))
	req := ask()
	before, tools := req.Messages[0], req.Tools[0].Name
	for range 2 {
		if _, err := provider.Collect(p.Stream(t.Context(), req), ignore); err != nil {
			t.Error(err)
		}
		req.Messages = append(req.Messages, chat.TextMessage(chat.User, "more"))
	}
	if !chat.IsSame(req.Messages[0], before) || req.Tools[0].Name != tools || req.System != "be brief" {
		t.Error("the request was changed")
	}
}

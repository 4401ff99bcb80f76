package meter

import (
	"context"
	"errors"
	"iter"
	"math"
	"strings"
	"testing"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/model/catalogue"
	"coder/internal/model/provider"
)

// price is that of the model "dear"; no other's is known.
func price(model string) catalogue.Price {
	if model != "dear" {
		return catalogue.Price{}
	}
	return catalogue.Price{In: 10, Out: 100, CachedIn: 1, CacheWrite: 20, Known: true}
}

// replies is a provider that gives deltas and then err.
type replies struct {
	deltas []provider.Delta
	err    error
	asked  int
}

func (p *replies) Stream(context.Context, provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		p.asked++
		for _, d := range p.deltas {
			if !yield(d, nil) {
				return
			}
		}
		if p.err != nil {
			yield(nil, p.err)
		}
	}
}

func same(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

// spend tells the meter of a reply.
func spend(m *Meter, model string, u chat.Usage) {
	m.Add(event.Record{Event: event.MessageAdded{Model: model, Usage: &u}}, true)
}

func TestAReplyTellsWhatItCost(t *testing.T) {
	for _, tc := range []struct {
		name, model string
		usage       chat.Usage
		cost        float64
		unpriced    bool
	}{
		{"plain", "dear", chat.Usage{In: 1e6, Out: 1e4}, 11, false},
		{"from the cache", "dear", chat.Usage{In: 1e6, Cached: 9e5}, 1.9, false},
		{"into the cache", "dear", chat.Usage{In: 1e6, Cached: 5e5, CacheWritten: 5e5}, 10.5, false},
		{"the provider says", "dear", chat.Usage{In: 1e6, Cost: 0.25}, 0.25, false},
		{"the provider says of a model nobody knows", "new", chat.Usage{In: 1e6, Cost: 0.25}, 0.25, false},
		{"nobody knows", "new", chat.Usage{In: 1e6}, 0, true},
		{"figures below zero", "dear", chat.Usage{In: -1e6, Out: -1e6, Cached: -5}, 0, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := New(Options{Price: price, Now: time.Now})
			p := m.Wrap(&replies{deltas: []provider.Delta{provider.TextDelta("a"), provider.Done{Usage: &tc.usage}}})
			r, err := provider.Collect(p.Stream(t.Context(), provider.Request{Model: tc.model}), func(provider.Delta) error { return nil })
			if err != nil || !same(r.Usage.Cost, tc.cost) || r.Usage.Unpriced != tc.unpriced {
				t.Errorf("%+v, %v", r.Usage, err)
			}
			spend(m, tc.model, *r.Usage)
			if got, _ := m.Spent(); !same(got.Cost, tc.cost) || got.Unpriced != tc.unpriced {
				t.Errorf("spent %+v", got)
			}
		})
	}
}

func TestABudgetStopsBeforeTheRequestThatExceedsIt(t *testing.T) {
	for _, tc := range []struct {
		name   string
		budget Budget
		spent  []chat.Usage
		took   time.Duration
		size   int
		says   string // "" if the request is sent
	}{
		{"no budget", Budget{}, []chat.Usage{{In: 1e9, Out: 1e9}}, time.Hour, 1e6, ""},
		{"money is left", Budget{USD: 1}, []chat.Usage{{In: 5e4}}, 0, 4e4, ""},
		{"the prompt costs too much", Budget{USD: 1}, []chat.Usage{{In: 5e4}}, 0, 6e4, "the budget does not cover the next request: $0.5000 of $1.0000 spent, and the request would cost about $0.6000"},
		{"less than a cent", Budget{USD: 0.005}, nil, 0, 780, "$0.0000 of $0.0050 spent, and the request would cost about $0.0078"},
		{"hardly anything", Budget{USD: 0.00002}, nil, 0, 3, "$0.0000 of $0.00002000 spent, and the request would cost about $0.00003000"},
		{"most of the prompt is cached", Budget{USD: 1}, []chat.Usage{{In: 1e5, Cached: 1e5}}, 0, 5e5, ""},
		{"spent by a reply", Budget{USD: 1}, []chat.Usage{{Out: 1e4 + 1}}, 0, 0, "of $1.0000 spent"},
		{"tokens are left", Budget{Tokens: 100}, []chat.Usage{{In: 50, Out: 9}}, 0, 41, ""},
		{"too many tokens", Budget{Tokens: 100}, []chat.Usage{{In: 50, Out: 9}}, 0, 42, "59 of 100 tokens used, and the request needs about 42"},
		{"time is left", Budget{Time: time.Minute}, nil, 59 * time.Second, 0, ""},
		{"time is up", Budget{Time: time.Minute}, nil, time.Minute, 0, "took 1m0s of 1m0s"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			start := time.Unix(1e9, 0)
			m := New(Options{Budget: tc.budget, Price: price, Now: func() time.Time { return start.Add(tc.took) }})
			m.Add(event.Record{Task: "t", Time: start, Event: event.TaskCreated{TaskID: "t"}}, true)
			for _, u := range tc.spent {
				m.Add(event.Record{Time: start, Event: event.MessageAdded{Model: "dear", Usage: &u}}, true)
			}
			next := &replies{deltas: []provider.Delta{provider.TextDelta("a"), provider.Done{Usage: &chat.Usage{}}}}
			_, err := provider.Collect(m.Wrap(next).Stream(t.Context(), provider.Request{Model: "dear", Estimate: max(tc.size, 1)}), func(provider.Delta) error { return nil })
			if tc.says == "" && (err != nil || next.asked != 1) || tc.says != "" && (!errors.Is(err, ErrBudget) || !strings.Contains(err.Error(), tc.says) || next.asked != 0) {
				t.Errorf("%v after %d requests", err, next.asked)
			}
		})
	}
}

func TestABudgetInMoneyWantsAPrice(t *testing.T) {
	next := &replies{}
	p := New(Options{Budget: Budget{USD: 1}, Price: price, Now: time.Now}).Wrap(next)
	_, err := provider.Collect(p.Stream(t.Context(), provider.Request{Model: "new"}), func(provider.Delta) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "the price of new is unknown") || next.asked != 0 {
		t.Errorf("%v after %d requests", err, next.asked)
	}
}

// What is under way counts with its estimate: agents that work side by side
// share the budget.
func TestRequestsSideBySideShareTheBudget(t *testing.T) {
	m := New(Options{Budget: Budget{Tokens: 100}, Price: price, Now: time.Now})
	req := provider.Request{Model: "dear", Estimate: 60}
	inner := &replies{deltas: []provider.Delta{provider.TextDelta("a"), provider.Done{Usage: &chat.Usage{In: 60}}}}
	for d, err := range m.Wrap(inner).Stream(t.Context(), req) {
		if err != nil {
			t.Fatal(err)
		}
		if _, first := d.(provider.TextDelta); first {
			if _, err := provider.Collect(m.Wrap(inner).Stream(t.Context(), req), func(provider.Delta) error { return nil }); !errors.Is(err, ErrBudget) {
				t.Errorf("the second: %v", err)
			}
		}
	}
	if _, err := provider.Collect(m.Wrap(inner).Stream(t.Context(), req), func(provider.Delta) error { return nil }); err != nil {
		t.Errorf("once the first is over: %v", err) // it has not been put on record here
	}
}

func TestWhatNobodyReportsIsEstimated(t *testing.T) {
	broke := errors.New("broke")
	for _, tc := range []struct {
		name   string
		budget Budget
		next   *replies
		spent  bool
	}{
		{"a reply that was cut off", Budget{}, &replies{deltas: []provider.Delta{provider.TextDelta(strings.Repeat("a", 360))}, err: broke}, true},
		{"thinking that was cut off", Budget{}, &replies{deltas: []provider.Delta{provider.ReasoningDelta{Text: strings.Repeat("a", 360)}}, err: broke}, true},
		{"arguments that were cut off", Budget{}, &replies{deltas: []provider.Delta{provider.CallDelta{Args: strings.Repeat("a", 360)}}, err: broke}, true},
		{"a refusal", Budget{}, &replies{err: broke}, false},
		{"a reply without figures", Budget{}, &replies{deltas: []provider.Delta{provider.TextDelta(strings.Repeat("a", 360)), provider.Done{}}}, false},
		{"a reply without figures and a budget", Budget{Tokens: 1e6}, &replies{deltas: []provider.Delta{provider.TextDelta(strings.Repeat("a", 360)), provider.Done{}}}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var spent []provider.Spent
			m := New(Options{Budget: tc.budget, Price: price, Now: time.Now})
			_, err := provider.Collect(m.Wrap(tc.next).Stream(t.Context(), provider.Request{Model: "dear", Estimate: 1000}), func(d provider.Delta) error {
				if s, ok := d.(provider.Spent); ok {
					spent = append(spent, s)
				}
				return nil
			})
			if tc.next.err != nil && !errors.Is(err, broke) || tc.next.err == nil && err != nil {
				t.Error(err)
			}
			if tc.spent != (len(spent) == 1) || tc.spent && (spent[0].Usage.In != 1000 || spent[0].Usage.Out != 100 || !same(spent[0].Usage.Cost, 0.02) || spent[0].Complete != (tc.next.err == nil)) {
				t.Errorf("%+v", spent)
			}
		})
	}
}

// Where whole replies are not counted, one that broke off is not either: the sum would be of neither.
func TestWhatBrokeOffAmongWhatIsNotReportedIsNotEstimated(t *testing.T) {
	m := New(Options{Price: price, Now: time.Now})
	m.Add(event.Record{Event: event.MessageAdded{Message: chat.TextMessage(chat.Assistant, "whole"), Model: "dear"}}, true)
	next := &replies{deltas: []provider.Delta{provider.TextDelta(strings.Repeat("a", 360))}, err: errors.New("broke")}
	for d := range m.Wrap(next).Stream(t.Context(), provider.Request{Model: "dear", Estimate: 1000}) {
		if _, ok := d.(provider.Spent); ok {
			t.Errorf("%+v", d)
		}
	}
	if !m.MissedUsage() {
		t.Error("nobody hears that nothing was reported")
	}
}

// A reply that was not listened to any longer had no chance to say what it used.
func TestWhatWeStoppedIsEstimated(t *testing.T) {
	m := New(Options{Price: price, Now: time.Now})
	next := &replies{deltas: []provider.Delta{provider.TextDelta(strings.Repeat("a", 360)), provider.Done{Stop: provider.StopLoop}}}
	spent := 0
	for d := range m.Wrap(next).Stream(t.Context(), provider.Request{Model: "dear", Estimate: 1000}) {
		if s, ok := d.(provider.Spent); ok && !s.Complete {
			spent += s.Usage.In + s.Usage.Out
		}
	}
	m.Add(event.Record{Event: event.MessageAdded{Message: chat.TextMessage(chat.Assistant, "a"), Model: "dear", StopReason: string(provider.StopLoop)}}, true)
	if spent != 1100 || m.MissedUsage() {
		t.Errorf("%d tokens; silent: %t", spent, m.MissedUsage())
	}
}

func TestARequestWithoutAnEstimateIsMeasured(t *testing.T) {
	req := provider.Request{System: "12345678", Messages: []chat.Message{
		chat.TextMessage(chat.User, "1234567890"), chat.ToolMessage(chat.ToolResult{Text: "123456"}),
		{Role: chat.Assistant, Parts: []chat.Part{chat.ToolCall{Name: "f", Args: []byte("{}")}}},
	}, Tools: []provider.ToolSpec{{Name: "f", Doc: "12345678", Schema: []byte("{}")}}}
	if n := estimateTokens(req); n != 10 {
		t.Error(n)
	}
}

// The time a turn takes is that of its records: questions that wait for a person
// and the time between two processes are left out.
func TestTheTimeOfTurns(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(1e9+s), 0) }
	m := New(Options{Price: price, Now: func() time.Time { return at(2000) }})
	add := func(s int, live bool, task string, e event.Event) {
		m.Add(event.Record{Task: task, Time: at(s), Event: e}, live)
	}
	took := func(want time.Duration) {
		t.Helper()
		if _, got := m.Spent(); got != want {
			t.Errorf("took %v, want %v", got, want)
		}
	}
	add(0, false, "t1", event.TaskCreated{TaskID: "t1"})
	add(5, false, "sub", event.TaskCreated{TaskID: "sub", ParentID: "t1"})
	add(10, false, "sub", event.TaskCompleted{TaskID: "sub"})
	add(20, false, "t1", event.InteractionRequested{Request: uip.Request{ID: "q"}})
	add(500, false, "t1", event.InteractionResponded{Response: uip.Response{ID: "q"}})
	add(510, false, "t1", event.MessageAdded{})
	took(30 * time.Second) // the process ended there
	add(1000, true, "t1", event.MessageAdded{})
	add(1010, true, "t1", event.TaskCompleted{TaskID: "t1"})
	took(40 * time.Second)
	add(1500, true, "t2", event.TaskCreated{TaskID: "t2"})
	took(540 * time.Second)
	add(1600, true, "t2", event.InteractionRequested{Request: uip.Request{ID: "q2"}})
	took(140 * time.Second)
}

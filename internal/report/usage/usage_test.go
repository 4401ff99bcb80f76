package usage

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/event"
)

// reply is one that used 10 tokens in and 1 out, n days after the first of May.
func reply(n int, model string) event.Record {
	return event.Record{Time: time.Date(2026, 5, 1+n, 23, 30, 0, 0, time.UTC), Event: event.MessageAdded{Model: model, Usage: &chat.Usage{In: 10, Out: 1, Cached: 4}}}
}

// priced knows one model, at a dollar a token.
func priced(model string, u chat.Usage) chat.Usage {
	if u.Unpriced = model != "dear"; !u.Unpriced {
		u.Cost = float64(u.In + u.Out)
	}
	return u
}

func TestWhatWasUsedIsAddedUp(t *testing.T) {
	type brief struct {
		of                 string
		sessions, requests int
		cost               float64
		unpriced           bool
	}
	for by, want := range map[Grouping][]brief{
		Day:     {{"2026-05-02", 1, 1, 11, false}, {"2026-05-03", 2, 3, 11, true}},
		Project: {{"/a", 2, 3, 22, true}, {"/b", 1, 1, 0, true}},
		Model:   {{"dear", 2, 2, 22, false}, {"odd", 2, 2, 0, true}},
	} {
		tally := Tally{By: by, Since: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), Location: time.FixedZone("east", 3600), WithCost: priced}
		tally.Add("/a", "s1", reply(-1, "dear")) // before
		tally.Add("/a", "s1", reply(0, "dear"))
		tally.Add("/a", "s2", reply(1, "dear"))
		tally.Add("/a", "s2", reply(1, "odd"))
		tally.Add("/b", "s1", event.Record{Time: reply(1, "").Time, Event: event.Spent{Model: "odd", Usage: chat.Usage{In: 5}}})
		tally.Add("/b", "s9", event.Record{Time: reply(1, "").Time, Event: event.Notice{}})
		all, total := tally.Sums()
		var got []brief
		for _, s := range all {
			got = append(got, brief{s.Key, s.Sessions, s.Requests, s.Cost, s.Unpriced})
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("by %s: %+v, want %+v", by, got, want)
		}
		if want := (Sum{Sessions: 3, Requests: 4, In: 35, Cached: 12, Out: 3, Cost: 22, Unpriced: true}); total != want {
			t.Errorf("by %s: in all %+v, want %+v", by, total, want)
		}
	}
}

func TestNothingIsNoLines(t *testing.T) {
	if all, total := new(Tally).Sums(); all == nil || len(all) > 0 || total != (Sum{}) {
		t.Errorf("%v, %v", all, total)
	}
}

func TestEqualCostsAreInOrderOfTokensThenNames(t *testing.T) {
	tally := Tally{By: Model, Location: time.UTC, WithCost: func(_ string, u chat.Usage) chat.Usage { return u }}
	for model, u := range map[string]chat.Usage{
		"b": {In: 1, Out: 1}, "a": {In: 1, Out: 1}, "in": {In: 9}, "out": {In: 1, Out: 7}, "cost": {In: 1, Cost: 1},
	} {
		tally.Add("/a", "s", event.Record{Event: event.Spent{Model: model, Usage: u}})
	}
	all, _ := tally.Sums()
	var names []string
	for _, s := range all {
		names = append(names, s.Key)
	}
	if got := strings.Join(names, " "); got != "cost in out a b" {
		t.Error(got)
	}
}

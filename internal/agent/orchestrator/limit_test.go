package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/model/provider"
)

// person answers questions with an option, and counts them.
type person struct {
	option string
	asked  int
}

func (p *person) Ask(_ context.Context, q uip.Request) (uip.Response, error) {
	p.asked++
	return uip.Response{ID: q.ID, TaskID: q.TaskID, Author: event.ActorUser, Option: p.option}, nil
}

// A limit that ends by itself is waited for where the person allows it,
// beforehand or when asked, and they are asked once.
func TestWaitingForTheEndOfALimit(t *testing.T) {
	const limited, twice = "fail rate after=3h\n---\nsay done", "fail rate after=3h\n---\nfail rate after=2h\n---\nsay done"
	for _, tc := range []struct {
		name, script string
		allowed      time.Duration
		attended     bool
		answer       string
		asked        int
		waits        string
		done         bool
	}{
		{"nobody there", limited, 0, false, optionWait, 0, "[]", false},
		{"nobody there, allowed beforehand", limited, 3 * time.Hour, false, "", 0, "[3h0m1s]", true},
		{"nobody there, not so long", limited, 2 * time.Hour, false, "", 0, "[]", false},
		{"no longer than allowed in all", twice, 4 * time.Hour, false, "", 0, "[3h0m1s]", false},
		{"twice", twice, 5 * time.Hour, false, "", 0, "[3h0m1s 2h0m1s]", true},
		{"a person says wait", limited, 0, true, optionWait, 1, "[3h0m1s]", true},
		{"a person says stop", limited, 0, true, optionStop, 1, "[]", false},
		{"a person is asked once", twice, 0, true, optionWait, 1, "[3h0m1s]", false},
		{"allowed beforehand, not asked", limited, 3 * time.Hour, true, optionStop, 0, "[3h0m1s]", true},
		{"another failure", "fail bad no\n---\nsay done", time.Hour, true, optionWait, 0, "[]", false},
		{"a quota", "fail quota after=3h\n---\nsay done", 4 * time.Hour, true, optionWait, 0, "[]", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBench(t, tc.script)
			who := &person{option: tc.answer}
			waits := []time.Duration{}
			now := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
			b.Config.Now = func() time.Time { return now }
			b.Config.Sleep = func(_ context.Context, d time.Duration) error {
				waits = append(waits, d)
				now = now.Add(d)
				return nil
			}
			b.Config.NewInteractor = func(event.Sink) uip.Interactor { return who }
			before := b.Config.Settings
			b.Config.Settings = func() Settings {
				s := before()
				s.WaitLimit, s.HasUser = tc.allowed, tc.attended
				return s
			}
			answer, err := b.RunTurn(t.Context(), "go", b)
			if (answer == "done" && err == nil) != tc.done || who.asked != tc.asked || fmt.Sprint(waits) != tc.waits {
				t.Errorf("%q, %v; asked %d times, waited %v", answer, err, who.asked, waits)
			}
			if err != nil && errors.Is(err, provider.ErrRateLimited) && !strings.Contains(err.Error(), "the limit resets at ") {
				t.Errorf("%v", err)
			}
			b.wellFormed()
		})
	}
}

// Whoever waits can be interrupted.
func TestAWaitEndsWithTheTurn(t *testing.T) {
	b := newBench(t, "fail rate after=3h\n---\nsay done")
	ctx, cancel := context.WithCancel(t.Context())
	before := b.Config.Settings
	b.Config.Settings = func() Settings { s := before(); s.WaitLimit = 24 * time.Hour; return s }
	b.onEach = func(e event.Event) {
		if w, ok := e.(event.Waiting); ok && w.Reason == event.WaitLimit {
			cancel()
		}
	}
	if _, err := b.RunTurn(ctx, "go", b); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	b.wellFormed()
}

func TestTimesOfDay(t *testing.T) {
	now := time.Date(2026, 11, 16, 22, 30, 0, 0, time.UTC)
	for wait, want := range map[time.Duration]string{time.Hour: "23:30", 2 * time.Hour: "2026-11-17 00:30"} {
		if got := formatClockTime(now, now.Add(wait)); got != want {
			t.Errorf("in %v: %s", wait, got)
		}
	}
}

package orchestrator

import (
	"context"
	"errors"
	"strings"
	"testing"

	"coder/internal/agent/broker"
	"coder/internal/core/uip"
)

// patient is a bench whose turns may have many steps.
func patient(t *testing.T, script string, person uip.Interactor) *bench {
	b := newBench(t, script)
	settings := b.Settings
	b.Settings = func() Settings {
		set := settings()
		set.MaxSteps, set.ContextLimit = 60, 100_000
		return set
	}
	b.NewInteractor = broker.New(person).WithSink
	return b
}

func TestACircleEndsWhereNobodyCanBeAsked(t *testing.T) {
	same := "call read {\"path\":\"a\"}\n---\n"
	other := "call read {\"path\":\"b\"}\n---\n"
	third := "call bash {\"path\":\"c\"}\n---\n"
	for name, tc := range map[string]struct {
		script   string
		requests int
	}{
		"the same call":              {strings.Repeat(same, 40), 2 * minRepetitions},
		"two calls in turn":          {strings.Repeat(same+other, 20), 2 * minRepetitions * 2},
		"three calls in turn":        {strings.Repeat(same+other+third, 15), 2 * minRepetitions * 3},
		"after something else":       {third + strings.Repeat(same, 40), 1 + 2*minRepetitions},
		"the same two calls at once": {strings.Repeat("call read {\"path\":\"a\"}\ncall read {\"path\":\"b\"}\n---\n", 40), 2 * minRepetitions},
	} {
		t.Run(name, func(t *testing.T) {
			b := patient(t, tc.script+"say never reached", uip.NoInteractor)
			_, err := b.RunTurn(t.Context(), "go", b)
			if !errors.Is(err, ErrLoop) || !strings.Contains(err.Error(), "the model was warned") {
				t.Errorf("err = %v", err)
			}
			if n := len(b.model.Requests()); n != tc.requests {
				t.Errorf("%d requests, want %d", n, tc.requests)
			}
			b.wellFormed()
		})
	}
}

func TestAModelThatLeavesACircleGoesOn(t *testing.T) {
	same := "call read {\"path\":\"a\"}\n---\n"
	b := patient(t, strings.Repeat(same, 4)+"call read {\"path\":\"b\"}\n---\n"+strings.Repeat(same, 2)+"say done", uip.NoInteractor)
	if got, err := b.RunTurn(t.Context(), "go", b); err != nil || got != "done" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestAPersonDecidesAboutACircle(t *testing.T) {
	for option, want := range map[string]error{optionContinueLoop: nil, optionStopLoop: ErrLoop, "": ErrLoop} {
		asked := 0
		person := uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
			asked++
			return uip.Response{ID: q.ID, TaskID: q.TaskID, Option: option, Dismissed: option == "", Author: "user"}, nil
		})
		b := patient(t, strings.Repeat("call read {\"path\":\"a\"}\n---\n", 7)+"say done", person)
		if _, err := b.RunTurn(t.Context(), "go", b); !errors.Is(err, want) {
			t.Errorf("%s: %v", option, err)
		}
		if times := map[string]int{optionContinueLoop: 2, optionStopLoop: 1, "": 1}[option]; asked != times {
			t.Errorf("%s: asked %d times, want %d", option, asked, times)
		}
	}
}

func TestAReplyIsNotAskedToBeLongerThanTheWindowLeaves(t *testing.T) {
	for _, window := range []int{0, 600, 4096, 8192, 32 << 10, 33 << 10, 200_000} {
		b := newBench(t, "call read {\"path\":\"a\"}\n---\ncall read {\"path\":\"b\"}\n---\nsay done")
		settings := b.Settings
		b.Settings = func() Settings {
			set := settings()
			set.ContextLimit = window
			return set
		}
		if _, err := b.RunTurn(t.Context(), strings.Repeat("many words ", window/20), b); err != nil {
			t.Fatal(err)
		}
		bound := b.model.Requests()[0].MaxTokens
		for _, req := range b.model.Requests() {
			switch small := window > 0 && window <= smallWindowTokens; {
			case !small && req.MaxTokens != 0, small && (req.MaxTokens < minReplyTokens || req.MaxTokens > max(window/4, minReplyTokens)):
				t.Errorf("window %d: at most %d tokens are asked for", window, req.MaxTokens)
			case req.MaxTokens > bound:
				t.Errorf("window %d: %d tokens and then %d", window, bound, req.MaxTokens)
			}
		}
	}
}

func TestFieldsThatDifferInEveryRunAreNoChange(t *testing.T) {
	same := `{"ok":true}`
	for _, result := range []string{
		`{"ok":true,"duration_ms":5}`, `{"ok":true,"log_path":"runs/2.log"}`, `{"ok":true,"seconds":1.5}`,
	} {
		if got := stripVolatileFields(result); got != same {
			t.Errorf("%s: %s", result, got)
		}
	}
	for _, result := range []string{`{"ok":true,"stdout":"a"}`, `text`, `["seconds"]`} {
		if got := stripVolatileFields(result); got != result {
			t.Errorf("%s: %s", result, got)
		}
	}
}

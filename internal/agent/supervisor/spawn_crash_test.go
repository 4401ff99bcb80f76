package supervisor_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/policy"
)

// TestAProcessMayDieWhileOthersWork kills the writer after each record, then
// goes on in a new process: with something else, or with the turn.
func TestAProcessMayDieWhileOthersWork(t *testing.T) {
	for _, goOn := range []bool{false, true} {
		for lives := 1; ; lives++ {
			w := &world{t: t}
			died := w.office(handOver, policy.Allow, uip.NoInteractor, lives).run("go") != nil
			if !died && goOn {
				break
			}
			p := w.office("to the work\nsay it is done\nrepeat\n---\nsay all done\nrepeat", policy.Allow, uip.NoInteractor, -1)
			s := p.resume()
			run := func() (string, error) {
				done, err := s.RunText(t.Context(), "and now", event.Discard)
				return done.Text, err
			}
			if goOn {
				run = func() (string, error) { return s.Continue(t.Context(), event.Discard) }
			}
			if got, err := run(); err != nil || got != "all done" {
				t.Fatalf("after %d records: %q, %v", lives, got, err)
			}
			w.balanced()
			if n := len(w.wrote); n > 1 {
				t.Errorf("after %d records: the file was written %d times", lives, n)
			}
			if n := len(strings.Fields(w.ends())); n > 2 {
				t.Errorf("after %d records: %d others: %s", lives, n, w.ends())
			}
			if _, left := s.UnfinishedTask(); left || t.Failed() {
				t.Fatalf("after %d records (going on: %v): unfinished %v", lives, goOn, left)
			}
			if !died {
				break
			}
		}
	}
}

// TestWorkThatWasHandedOutIsTakenUp: the other agent goes on where it was, and
// knows what it knew.
func TestWorkThatWasHandedOutIsTakenUp(t *testing.T) {
	w := &world{t: t}
	first := w.office(handOver, policy.Allow, uip.NoInteractor, -1)
	first.during = first.store.die
	if err := first.run("go"); err == nil {
		t.Fatal("it survived")
	}
	p := w.office("to the work\nwant outcome is unknown\nsay it was done\nusage 3 1\n---\nsay all done", policy.Allow, uip.NoInteractor, -1)
	if got, err := p.resume().Continue(t.Context(), event.Discard); err != nil || got != "all done" {
		t.Fatalf("%q, %v", got, err)
	}
	if got := told(p.process, 0); !strings.HasPrefix(got, "user:the work\nassistant:on it\ntool:") {
		t.Errorf("the other agent was told %s", got)
	}
	if r := p.reports[0]; r.Summary != "it was done" || r.Usage.In != 8 || r.Usage.Out != 2 {
		t.Errorf("report %+v", r)
	}
	if got := w.ends(); got != "done" || len(w.wrote) != 1 {
		t.Errorf("it ended %s, wrote %v", got, w.wrote)
	}
	w.balanced()
}

// TestWorkThatIsOverIsNotDoneTwice: where the process died between the end of
// the other's work and its being told, nobody can say what came of it.
func TestWorkThatIsOverIsNotDoneTwice(t *testing.T) {
	w := &world{t: t}
	n := 0
	for lives := 1; w.ends() != "done"; lives++ {
		w = &world{t: t}
		_ = w.office(handOver, policy.Allow, uip.NoInteractor, lives).run("go")
		n = lives
	}
	p := w.office("want outcome is unknown\nsay I will look", policy.Allow, uip.NoInteractor, -1)
	if got, err := p.resume().Continue(t.Context(), event.Discard); err != nil || got != "I will look" {
		t.Fatalf("after %d records: %q, %v", n, got, err)
	}
	if len(w.wrote) != 1 || w.ends() != "done" {
		t.Errorf("wrote %v, others %s", w.wrote, w.ends())
	}
	w.balanced()
}

// TestAnothersQuestionWaitsForItsAnswer lets questions of others be answered
// between processes.
func TestAnothersQuestionWaitsForItsAnswer(t *testing.T) {
	for _, agent := range []string{"worker", "looker"} {
		t.Run(agent, func(t *testing.T) {
			w := &world{t: t}
			script := strings.ReplaceAll(handOver, "worker", agent)
			if agent == "looker" { // another one beside it, which needs nobody
				script = "call task id=q {\"agent\":\"looker\",\"work\":\"peer\"}\n" + strings.TrimSpace(script) + "\n---\nto peer\nsay seen\n"
			}
			if err := w.office(script, policy.Ask, uip.PendingInteractor, -1).run("go"); !errors.Is(err, uip.ErrAnswerPending) {
				t.Fatalf("err = %v", err)
			}
			w.answer()
			never := uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
				t.Error("asked again")
				return uip.NoAnswer(q), nil
			})
			p := w.office("to the work\nwant \"path\":\"a\"\nsay it is done\n---\nsay all done", policy.Ask, never, -1)
			born := make(map[string]bool) // as far as this process shows it
			face := event.SinkFunc(func(_ context.Context, r event.Record) error {
				if _, ok := r.Event.(event.TaskCreated); ok {
					born[r.Task] = true
				} else if r.Task != "task1" && !born[r.Task] {
					t.Errorf("%T of a task nobody was told of", r.Event)
				}
				return nil
			})
			if got, err := p.resume().Continue(t.Context(), face); err != nil || got != "all done" {
				t.Fatalf("%q, %v", got, err)
			}
			if len(w.wrote) != 1 || strings.Contains(w.ends(), "canceled") {
				t.Errorf("wrote %v, others %s", w.wrote, w.ends())
			}
			w.balanced()
		})
	}
}

// answer says yes to every open question, as a process of its own would.
func (w *world) answer() {
	w.t.Helper()
	open := make(map[string]uip.Request)
	for r := range w.store.Read(w.t.Context(), "s", 0) {
		if e, ok := r.Event.(event.InteractionRequested); ok {
			open[e.ID] = e.Request
		}
	}
	p := w.start("", policy.Ask, uip.NoInteractor, -1)
	for _, id := range slices.Sorted(maps.Keys(open)) {
		if err := p.Answer(w.t.Context(), "s", uip.Response{ID: id, TaskID: open[id].TaskID, Author: "user", Option: uip.OptionApprove}); err != nil {
			w.t.Fatal(err)
		}
	}
}

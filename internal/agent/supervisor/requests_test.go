package supervisor_test

import (
	"errors"
	"fmt"
	"testing"

	"coder/internal/agent/supervisor"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/policy"
)

// cutOffHooks leaves the record as a process does that is killed while a hook runs:
// one of each task, whether it has ended or not.
func (w *world) cutOffHooks(life int) {
	w.t.Helper()
	release, err := w.store.Claim(w.t.Context(), "s")
	if err != nil {
		w.t.Fatal(err)
	}
	defer release()
	last, authors, tasks := uint64(0), map[string]string{}, []string{}
	for r, err := range w.store.Read(w.t.Context(), "s", 0) {
		if err != nil {
			w.t.Fatal(err)
		}
		last = r.Seq
		if e, ok := r.Event.(event.TaskCreated); ok {
			authors[r.Task], tasks = e.AgentID, append(tasks, r.Task)
		}
	}
	for i, id := range tasks {
		r := event.Record{Session: "s", Seq: last + 1 + uint64(i), Task: id, Actor: "hook", Event: event.ToolCallRequested{
			CallID: fmt.Sprintf("hook_%d_%d", life, i), Tool: "hook", Author: authors[id], TaskID: id, Verdict: event.VerdictAllowed,
			ReadOnly: i%2 == 1,
		}}
		if err := w.store.Append(w.t.Context(), last+uint64(i), r); err != nil {
			w.t.Fatal(err)
		}
	}
}

// TestWhatWasAskedForEnds kills the writer after each record, in the middle of
// hooks, and then a second process in the middle of recovery. However the session
// continues, every request of every task has one end.
func TestWhatWasAskedForEnds(t *testing.T) {
	for _, goOn := range []bool{false, true} {
		for lives := 1; ; lives++ {
			w := &world{t: t}
			died := w.office(handOver, policy.Allow, uip.NoInteractor, lives).run("go") != nil
			w.cutOffHooks(0)
			for life, more := range []int{lives%7 + 1, -1} {
				p := w.office("to the work\nsay it is done\nrepeat\n---\nsay all done\nrepeat", policy.Allow, uip.NoInteractor, more)
				s, err := p.ResumeSession(t.Context(), "s", event.Discard)
				if err == nil && goOn {
					_, err = s.Continue(t.Context(), event.Discard)
				} else if err == nil {
					_, err = s.RunText(t.Context(), "and now", event.Discard)
				}
				if s != nil {
					_ = s.Close()
				}
				if more > 0 {
					w.cutOffHooks(life + 1)
				} else if err != nil && !errors.Is(err, supervisor.ErrFinished) {
					t.Fatalf("killed after %d records, continued: %v: %v", lives, goOn, err)
				}
			}
			w.balanced()
			if t.Failed() {
				t.Fatalf("killed after %d records, continued: %v", lives, goOn)
			}
			if !died {
				break
			}
		}
	}
}

package supervisor_test

import (
	"errors"
	"testing"
	"time"

	"coder/internal/agent/supervisor"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/record/store/mem"
)

// TestAnAnswerThatComesAfterTheEnd of its task is not put on record: who
// answers may have looked before the task ended.
func TestAnAnswerThatComesAfterTheEnd(t *testing.T) {
	for name, end := range map[string]event.Event{
		"completed": event.TaskCompleted{TaskID: "t1"},
		"failed":    event.TaskFailed{TaskID: "t1"},
		"canceled":  event.TaskCanceled{TaskID: "t1"},
		"":          event.TaskCanceled{TaskID: "another"},
	} {
		store := new(mem.Store)
		release, err := store.Claim(t.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		asked := event.InteractionRequested{Request: uip.Request{ID: "ui_1", TaskID: "t1"}}
		for i, e := range []event.Event{event.TaskCreated{TaskID: "t1"}, asked, end} {
			if err := store.Append(t.Context(), uint64(i), event.Record{Seq: uint64(i + 1), Session: "s", Task: "t1", Event: e}); err != nil {
				t.Fatal(err)
			}
		}
		if err := release(); err != nil {
			t.Fatal(err)
		}
		sup := supervisor.New(supervisor.Config{Store: store, Now: time.Now})
		err = sup.Answer(t.Context(), "s", uip.Response{ID: "ui_1", TaskID: "t1", Author: "user", Option: uip.OptionApprove})
		if errors.Is(err, supervisor.ErrWithdrawn) != (name != "") || name == "" && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		n := 0
		for range store.Read(t.Context(), "s", 3) {
			n++
		}
		if (n == 1) != (name == "") {
			t.Errorf("%s: %d records after the end", name, n)
		}
	}
}

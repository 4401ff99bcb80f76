package rerun

import (
	"context"
	"errors"
	"testing"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/model/provider"
)

// asked is what a model says that is asked where a session has these records.
func asked(t *testing.T, records ...event.Record) (*Replayer, error) {
	t.Helper()
	for i := range records {
		records[i].Seq = uint64(i + 1)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f := NewReplayer(New("s", "/ws", records), Side{}, Side{}, nowhere, 0)
	f.cancel = cancel
	for _, err := range f.Stream(ctx, provider.Request{}) {
		if err != nil {
			return f, err
		}
	}
	return f, nil
}

func TestAFailureOfTheModelIsThatOfTheRecord(t *testing.T) {
	_, err := asked(t, event.Record{Event: event.TaskFailed{Reason: "whatever it is called", Code: "context_length_exceeded", ErrorText: "9001 tokens"}})
	if !errors.Is(err, provider.ErrContextTooLong) || errors.Is(err, provider.ErrAuth) || err.Error() != "9001 tokens" {
		t.Errorf("the failure is %v", err)
	}
	_, err = asked(t, event.Record{Event: event.TaskFailed{Reason: "in the words of an earlier version", Code: "context_length_exceeded"}})
	if !errors.Is(err, provider.ErrContextTooLong) || err.Error() != "in the words of an earlier version" {
		t.Errorf("where the record does not tell it apart, the failure is %v", err)
	}
	f, err := asked(t, event.Record{Event: event.TaskFailed{Reason: "step limit reached (7)", Steps: 7}})
	if r := f.Compare(Exceptions{}); !errors.Is(err, errDiverged) || r.Difference == nil || r.Difference.Kind != kindCourse {
		t.Errorf("where something else failed, the failure is %v, and the report is %+v", err, r)
	}
}

func TestAnInterruptionIsKnownByTheEndOfItsTask(t *testing.T) {
	words := event.Record{Actor: event.ActorUser, Event: event.MessageAdded{Message: chat.TextMessage(chat.User, "anything")}}
	if _, err := asked(t, words, event.Record{Actor: event.ActorUser, Event: event.TaskCanceled{}}); !errors.Is(err, context.Canceled) {
		t.Errorf("an interruption is %v", err)
	}
	if _, err := asked(t, words, event.Record{Event: event.TaskCompleted{}}); !errors.Is(err, errDiverged) {
		t.Errorf("other words are %v", err)
	}
}

func TestTheLimitOfStepsIsOnRecord(t *testing.T) {
	take := New("s", "/ws", []event.Record{{Seq: 1, Event: event.TaskFailed{Reason: "any words", Steps: 7}}})
	if n := take.MaxSteps; n != 7 {
		t.Errorf("the limit is %d", n)
	}
}

func TestWhatAFlagLetPassIsLetPassAgain(t *testing.T) {
	for _, tt := range []struct {
		unasked       event.AutoAllowance
		risky, passes bool
	}{
		{"", true, true}, {event.AllowanceWaivable, false, true}, {event.AllowanceWaivable, true, false}, {event.AllowanceRisks, true, true},
	} {
		call := event.ToolCallRequested{CallID: "c", Tool: "bash", Input: []byte(`{"x":1}`), Verdict: event.VerdictAllowed, DecidedBy: event.ActorPolicy, Reasons: []string{"auto-approve: any words"}, AutoAllowed: tt.unasked}
		f := NewReplayer(New("s", "/ws", []event.Record{{Seq: 1, Event: call}}), Side{}, Side{}, nowhere, 0)
		if got := f.WasAllowed("c", "bash", tt.risky); got != tt.passes {
			t.Errorf("unasked %q, risky %v: %v", tt.unasked, tt.risky, got)
		}
	}
}

// TestACallWithoutItsKeysBeginsAProcess: the one before had them.
func TestACallWithoutItsKeysBeginsAProcess(t *testing.T) {
	for _, keyless := range []bool{true, false} {
		call := event.ToolCallRequested{CallID: "c", Tool: "write", Input: []byte(`{"x":"ghp_01…[masked]"}`), Verdict: event.VerdictInvalid, KeysMissing: keyless}
		take := New("s", "/ws", []event.Record{
			{Seq: 1, Event: event.TaskCreated{TaskID: "t"}},
			{Seq: 2, Task: "t", Event: call},
			{Seq: 3, Task: "t", Event: event.ToolCallCompleted{CallID: "c", Tool: "write", Output: []byte(`{"error":"any words"}`)}},
		})
		if got := len(ends(take)); (got == 2) != keyless {
			t.Errorf("keyless %v: %d processes ended", keyless, got)
		}
	}
}

func TestACommandThatIsATurnIsKnownByItsTask(t *testing.T) {
	take := New("s", "/ws", []event.Record{
		{Seq: 1, Event: event.LocalAdded{Input: "/init now\nplease", Output: "any words"}},
		{Seq: 2, Event: event.TaskCreated{TaskID: "t", Title: "/init now", Intent: "Draft it"}},
	})
	f := NewReplayer(take, Side{}, Side{}, nowhere, 0)
	if said, ok := f.nextUserInput(); !ok || said.Text() != "/init now\nplease" || len(take.streams[main]) != 1 {
		t.Errorf("said is %q, %v, of %d records", said.Text(), ok, len(take.streams[main]))
	}
}

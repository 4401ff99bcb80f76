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
func asked(t *testing.T, records ...event.Record) (error, *Follower) {
	t.Helper()
	for i := range records {
		records[i].Seq = uint64(i + 1)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f := Follow(New("s", "/ws", records), Side{}, Side{}, NewWorld(nil, nil))
	f.cancel = cancel
	for _, err := range f.Stream(ctx, provider.Request{}) {
		if err != nil {
			return err, f
		}
	}
	return nil, f
}

func TestAFailureOfTheModelIsThatOfTheRecord(t *testing.T) {
	err, _ := asked(t, event.Record{Event: event.TaskFailed{Reason: "whatever it is called", Code: "context_length_exceeded", Says: "9001 tokens"}})
	if !errors.Is(err, provider.ErrContextTooLong) || errors.Is(err, provider.ErrAuth) || err.Error() != "9001 tokens" {
		t.Errorf("the failure is %v", err)
	}
	err, f := asked(t, event.Record{Event: event.TaskFailed{Reason: "ask the model: 9001 tokens", Code: "context_length_exceeded"}})
	if !errors.Is(err, errDiffers) {
		t.Errorf("where the record does not tell what failed, the failure is %v", err)
	}
	if r := f.Compare(Exceptions{}); r.Difference == nil || r.Missing == "" {
		t.Errorf("where the record does not tell what failed, the report is %+v", r)
	}
}

func TestAnInterruptionIsKnownByTheEndOfItsTask(t *testing.T) {
	words := event.Record{Actor: event.ActorUser, Event: event.MessageAdded{Message: chat.Say(chat.User, "anything")}}
	if err, _ := asked(t, words, event.Record{Actor: event.ActorUser, Event: event.TaskCanceled{}}); !errors.Is(err, context.Canceled) {
		t.Errorf("an interruption is %v", err)
	}
	if err, _ := asked(t, words, event.Record{Event: event.TaskCompleted{}}); !errors.Is(err, errDiffers) {
		t.Errorf("other words are %v", err)
	}
}

func TestTheLimitOfStepsIsOnRecord(t *testing.T) {
	take := New("s", "/ws", []event.Record{{Seq: 1, Event: event.TaskFailed{Reason: "any words", Steps: 7}}})
	if n := take.MaxSteps(50); n != 7 {
		t.Errorf("the limit is %d", n)
	}
}

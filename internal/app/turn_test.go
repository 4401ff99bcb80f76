package app

import (
	"testing"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/event"
)

// A folder that is made for a file is no second file.
func TestFoldersAreNotCountedAsFiles(t *testing.T) {
	turns := modelsOf(&Site{Settings: Settings{Root: "/there/is/none"}}).NewTurnTracker()
	said := event.MessageAdded{Message: chat.TextMessage(chat.Assistant, "done"), Model: "m"}
	made := event.ToolCallCompleted{Changes: []event.FileChange{
		{Before: event.FileState{Path: "src"}, After: event.FileState{Path: "src", Hash: "dir"}},
		{Before: event.FileState{Path: "src/a.go"}, After: event.FileState{Path: "src/a.go", Hash: "f1"}},
		{Before: event.FileState{Path: "old", Hash: "dir"}, After: event.FileState{Path: "old"}},
		{Before: event.FileState{Path: "was", Hash: "dir"}, After: event.FileState{Path: "was", Hash: "f2"}},
	}}
	for _, e := range []event.Event{event.TaskCreated{TaskID: "t"}, said, made} {
		turns.Add(t.Context(), event.Record{Task: "t", Time: time.Unix(1, 0), Event: e})
	}
	turn, ended := turns.Add(t.Context(), event.Record{Task: "t", Time: time.Unix(2, 0), Event: event.TaskCompleted{TaskID: "t"}})
	if !ended || turn.ChangedFiles != 2 {
		t.Errorf("%d files, want 2 (ended: %t)", turn.ChangedFiles, ended)
	}
}

// Between the end of a program and the next that takes a turn up nothing runs.
func TestATurnThatIsTakenUpTookNoTimeMeanwhile(t *testing.T) {
	turns := modelsOf(&Site{Settings: Settings{Root: "/there/is/none"}}).NewTurnTracker()
	at := func(seconds int64, actor string, e event.Event) (TurnResult, bool) {
		return turns.Add(t.Context(), event.Record{Task: "t", Actor: actor, Time: time.Unix(seconds, 0), Event: e})
	}
	at(1, event.ActorUser, event.TaskCreated{TaskID: "t"})
	at(3, "main", event.ToolCallRequested{CallID: "c"})
	at(100, event.ActorRecovery, event.ToolCallCompleted{CallID: "c", OutcomeUnknown: true})
	at(101, "main", event.MessageAdded{Message: chat.TextMessage(chat.Assistant, "done"), Model: "m"})
	if turn, ended := at(102, "main", event.TaskCompleted{TaskID: "t"}); !ended || turn.Duration != 4*time.Second {
		t.Errorf("it took %v (ended: %t)", turn.Duration, ended)
	}
}

// Whoever stops a turn at a question has been waited for, also where it was asked again by
// a program that took the turn up.
func TestWaitingAtAQuestionThatIsLeftOpenIsNotCounted(t *testing.T) {
	turns := modelsOf(&Site{Settings: Settings{Root: "/there/is/none"}}).NewTurnTracker()
	at := func(seconds int64, e event.Event) (TurnResult, bool) {
		return turns.Add(t.Context(), event.Record{Task: "t", Actor: "main", Time: time.Unix(seconds, 0), Event: e})
	}
	at(1, event.TaskCreated{TaskID: "t"})
	at(2, event.MessageAdded{Message: chat.TextMessage(chat.Assistant, "done"), Model: "m"})
	at(3, event.InteractionRequested{})
	at(50, event.InteractionRequested{})
	if turn, ended := at(99, event.TaskCanceled{TaskID: "t"}); !ended || turn.Duration != 2*time.Second {
		t.Errorf("it took %v (ended: %t)", turn.Duration, ended)
	}
}

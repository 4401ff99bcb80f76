package app

import (
	"testing"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/event"
)

// A folder that is made for a file is no second file.
func TestFoldersAreNotCountedAsFiles(t *testing.T) {
	turns := (&App{Settings: Settings{Root: "/there/is/none"}}).Turns()
	said := event.MessageAdded{Message: chat.Say(chat.Assistant, "done"), Model: "m"}
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
	if !ended || turn.Files != 2 {
		t.Errorf("%d files, want 2 (ended: %t)", turn.Files, ended)
	}
}

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/record/store/jsonl"
	"coder/internal/record/timeline"
)

// writeLongSession puts a session of so many turns on disk, with a fact that the
// person wanted to be remembered near its beginning.
func writeLongSession(t *testing.T, dir string, turns int) {
	t.Helper()
	store := jsonl.Open(dir, jsonl.Options{Fsync: jsonl.FsyncNever, Now: time.Now, Program: "test"})
	line, err := timeline.Open(t.Context(), store, "s", timeline.Options{Now: time.Now, New: true})
	if err != nil {
		t.Fatal(err)
	}
	sink := line.Wrap(event.Discard)
	for i := range turns {
		task, words := fmt.Sprint("task_", i), fmt.Sprintf("question %d about the code", i)
		if i == 3 {
			words = "remember this for later: the colour is TEAL-7"
		}
		for _, e := range []event.Event{
			event.TaskCreated{TaskID: task, Title: words, Intent: words, Priority: event.PriorityForeground, AgentID: "main", Author: "user"},
			event.TaskStarted{TaskID: task, AgentID: "main", Author: "main"},
			event.MessageAdded{Message: chat.TextMessage(chat.User, words)},
			event.MessageAdded{Message: chat.TextMessage(chat.Assistant, fmt.Sprintf("answer %d, with some words about what was found", i))},
			event.TaskCompleted{TaskID: task, Author: "main"},
		} {
			if err := sink.Emit(t.Context(), event.Record{Task: task, Actor: "main", Event: e}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := line.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestALongSessionIsResumedAndCompactedWithoutLosingWhatWasPinned takes up a
// session of 2,000 turns in a window that is too small for it. What the person
// said near its beginning is still told to the model.
func TestALongSessionIsResumedAndCompactedWithoutLosingWhatWasPinned(t *testing.T) {
	p, s := connected(t, "")
	writeLongSession(t, filepath.Join(p.ws, ".coder", "log"), 2000)
	s.Script(say("Nothing of note."), say("TEAL-7"))
	p.file("small.json", `{"runtime": {"context_token_limit": 60000}}`)
	start := time.Now()
	out, stderr, code := p.run("-p", "--config", "small.json", "-r", "s", "which colour was it?")
	t.Logf("resumed, compacted and answered in %v", time.Since(start))
	if code != 0 || out != "TEAL-7\n" {
		t.Fatalf("%q, code %d: %s", out, code, stderr)
	}
	requests := s.Requests()
	last := string(requests[len(requests)-1].Body)
	if len(requests) != 2 || !strings.Contains(last, "the colour is TEAL-7") || !strings.Contains(last, "which colour was it?") {
		t.Errorf("%d requests; the last has %d bytes", len(requests), len(last))
	}
	if strings.Contains(last, "answer 7, with") {
		t.Error("the old part was sent as it was")
	}
	if err := wellFormed(p.ws); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(filepath.Join(p.ws, ".coder", "log", "s", "conversation.jsonl")); err != nil || !strings.Contains(string(text), "answer 7, with") {
		t.Errorf("the log lost what was compacted: %v", err)
	}
}

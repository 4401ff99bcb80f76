package queue_test

import (
	"encoding/json"
	"testing"
	"time"

	"coder/fleet/queue"
	"coder/internal/core/uip"
	"coder/internal/ui/browser"
)

// TestAPageReadsWhatAFleetTells: the page in a browser, which is of another program,
// finds what it shows by the names that a fleet gives it.
func TestAPageReadsWhatAFleetTells(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	told := queue.Standing{
		At: noon, Queue: queue.Depth{Waiting: 1, Taken: 2, Limit: 3}, Slots: 4, Busy: 5, CostUSD: 6, Takeovers: 7, Unknown: 8, OldestWait: 9,
		Counts:  make(map[queue.Status]int),
		Workers: []queue.WorkerState{{Name: "n", Host: "h", Version: "v", Slots: 1, Busy: 2, State: "ready", Seen: noon}},
		Tasks: []queue.Task{{
			ID: "t", Spec: queue.Spec{Prompt: "p", Repo: "r"}, Status: queue.Waiting, Reason: "why", Worker: "w", Attempts: 2, CostUSD: 3, Created: noon, Question: &uip.Request{ID: "ui_1"},
		}},
	}
	for i, s := range queue.Statuses {
		told.Counts[s] = i + 1
	}
	text, err := json.Marshal(told)
	if err != nil {
		t.Fatal(err)
	}
	var read browser.Fleet
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(read)
	if err != nil {
		t.Fatal(err)
	}
	var back queue.Standing
	if err := json.Unmarshal(again, &back); err != nil {
		t.Fatal(err)
	}
	if whole, err := json.Marshal(back); err != nil || string(whole) != string(text) {
		t.Errorf("of what was told\n%s\na page reads\n%s", text, whole)
	}
}

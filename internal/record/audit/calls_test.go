package audit

import (
	"fmt"
	"slices"
	"testing"

	"coder/internal/core/event"
	"coder/internal/core/uip"
)

func TestIdleCalls(t *testing.T) {
	ask := func(task, id string) event.Record {
		return event.Record{Task: task, Event: event.ToolCallRequested{CallID: id, Tool: "bash", TaskID: task}}
	}
	end := func(task, id string) event.Record {
		return event.Record{Task: task, Event: event.ToolCallCompleted{CallID: id, TaskID: task}}
	}
	create := func(id, parent, call string) event.Record {
		return event.Record{Task: id, Event: event.TaskCreated{TaskID: id, ParentID: parent, CallID: call}}
	}
	start := func(id string) event.Record { return event.Record{Task: id, Event: event.TaskStarted{TaskID: id}} }
	for _, tc := range []struct {
		name    string
		records []event.Record
		want    string
	}{
		{"all ended", []event.Record{create("t", "", ""), start("t"), ask("t", "a"), end("t", "a")}, "[]"},
		{"cut off", []event.Record{create("t", "", ""), start("t"), ask("t", "a")}, "[a false]"},
		{"left behind", []event.Record{create("t", "", ""), start("t"), ask("t", "a"), {Task: "t", Event: event.TaskCompleted{TaskID: "t"}}}, "[a true]"},
		{"an undo of the turn, cut off", []event.Record{
			create("t", "", ""), start("t"), {Task: "t", Event: event.TaskCompleted{TaskID: "t"}}, ask("t", "undo"),
		}, "[undo false]"},
		{"a hook of a subtask that ended", []event.Record{
			create("t", "", ""), start("t"), ask("t", "a"), create("s", "t", "a"), start("s"), ask("s", "hook"),
			{Task: "s", Event: event.TaskCompleted{TaskID: "s"}}, end("t", "a"),
		}, "[hook true]"},
		{"a subtask waits for an answer", []event.Record{
			create("t", "", ""), start("t"), ask("t", "a"), create("s", "t", "a"), start("s"),
			{Task: "s", Event: event.InteractionRequested{Request: uip.Request{ID: "q", TaskID: "s"}}},
		}, "[]"},
	} {
		for i := range tc.records {
			tc.records[i].Seq = uint64(i + 1)
		}
		idle, err := IdleCalls(func(yield func(event.Record, error) bool) {
			for r := range slices.Values(tc.records) {
				if !yield(r, nil) {
					return
				}
			}
		})
		var got []string
		for _, c := range idle {
			got = append(got, fmt.Sprint(c.Requested.CallID, " ", c.Abandoned))
		}
		if err != nil || fmt.Sprint(got) != tc.want {
			t.Errorf("%s: %v, want %s: %v", tc.name, got, tc.want, err)
		}
	}
}

package task_test

import (
	"strings"
	"testing"

	"coder/internal/core/event"
	"coder/internal/core/task"
	"coder/internal/core/uip"
)

var (
	created   = event.TaskCreated{TaskID: "t", Title: "tidy", Intent: "tidy up", ParentID: "p"}
	started   = event.TaskStarted{TaskID: "t"}
	takenUp   = event.TaskStarted{TaskID: "t", Run: &event.RunOptions{}}
	asked     = event.InteractionRequested{Request: uip.Request{ID: "q1", TaskID: "t"}}
	answered  = event.InteractionResponded{Response: uip.Response{ID: "q1", TaskID: "t", Option: uip.OptionApprove}}
	other     = event.InteractionResponded{Response: uip.Response{ID: "q2", TaskID: "t"}}
	completed = event.TaskCompleted{TaskID: "t"}
	failed    = event.TaskFailed{TaskID: "t", Reason: "broke"}
	canceled  = event.TaskCanceled{TaskID: "t", Reason: "Esc"}
)

var everything = []event.Event{created, started, asked, answered, other, completed, failed, canceled}

// history leads a task to each status; next lists what may come then.
var table = []struct {
	status  task.Status
	history []event.Event
	next    []event.Event
}{
	{"", nil, []event.Event{created}},
	{task.StatusOpen, []event.Event{created}, []event.Event{started, failed, canceled}},
	{task.StatusInProgress, []event.Event{created, started}, []event.Event{asked, completed, failed, canceled}},
	{task.StatusAwaitingUser, []event.Event{created, started, asked}, []event.Event{answered, failed, canceled}},
	{task.StatusInProgress, []event.Event{created, started, asked, answered}, []event.Event{asked, completed, failed, canceled}},
	{task.StatusInProgress, []event.Event{created, started, takenUp}, []event.Event{asked, completed, failed, canceled}},
	{task.StatusAwaitingUser, []event.Event{created, started, asked, takenUp}, []event.Event{answered, failed, canceled}},
	{task.StatusDone, []event.Event{created, started, completed}, nil},
	{task.StatusFailed, []event.Event{created, started, asked, failed}, nil},
	{task.StatusCanceled, []event.Event{created, canceled}, nil},
}

func TestOnlyTheLegalOrder(t *testing.T) {
	for _, row := range table {
		now := fold(t, row.history)
		if now.Status != row.status {
			t.Errorf("after %d events a task is %q, want %q", len(row.history), now.Status, row.status)
		}
		for _, e := range everything {
			legal := false
			for _, n := range row.next {
				legal = legal || sameEvent(n, e)
			}
			after, err := now.Apply(e)
			if (err == nil) != legal {
				t.Errorf("%T on a task that is %q: %v", e, row.status, err)
			}
			if err != nil && after.Status != now.Status {
				t.Errorf("%T was refused and made the task %q", e, after.Status)
			}
		}
	}
}

func sameEvent(a, b event.Event) bool {
	an, _ := event.WireName(a)
	bn, _ := event.WireName(b)
	ar, isAnswer := a.(event.InteractionResponded)
	return an == bn && (!isAnswer || ar.ID == b.(event.InteractionResponded).ID)
}

func fold(t *testing.T, events []event.Event) (now task.Task) {
	t.Helper()
	for _, e := range events {
		var err error
		if now, err = now.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	return now
}

func TestWhatATaskKnows(t *testing.T) {
	now := fold(t, []event.Event{created, started, asked})
	if now.ID != "t" || now.Parent != "p" || now.Title != "tidy" || now.Intent != "tidy up" || now.Pending == nil || now.Pending.ID != "q1" {
		t.Errorf("task is %+v", now)
	}
	if ended := fold(t, []event.Event{created, started, asked, canceled}); ended.Pending != nil || ended.Reason != "Esc" || !ended.Status.IsEnded() {
		t.Errorf("canceled task is %+v", ended)
	}
	if again := fold(t, []event.Event{created, started, asked, answered}); again.Pending != nil || again.Status.IsEnded() {
		t.Errorf("answered task is %+v", again)
	}
	for _, e := range []event.Event{event.MessageAdded{}, event.ToolCallRequested{}, event.TextDelta{}, event.Unknown{Log: event.LogDomain, Type: "TaskPaused"}} {
		if same, err := now.Apply(e); err != nil || same != now {
			t.Errorf("%T changed the task: %+v, %v", e, same, err)
		}
	}
}

func TestTasksOfASession(t *testing.T) {
	var ts task.Tasks
	add := func(id string, e event.Event) error { return ts.Add(event.Record{Seq: 7, Task: id, Event: e}) }
	for _, r := range []struct {
		id string
		e  event.Event
	}{
		{"b", event.TaskCreated{TaskID: "b"}}, {"a", event.TaskCreated{TaskID: "a", ParentID: "b"}}, {"b", started}, {"b", asked},
		{"c", event.Unknown{Log: event.LogDomain, Type: "TaskPaused", Version: 1}}, {"d", event.MessageAdded{}}, {"e", event.TextDelta{}}, {"b", answered}, {"a", canceled},
	} {
		if err := add(r.id, r.e); err != nil {
			t.Fatal(err)
		}
	}
	if err := add("a", started); err == nil || !strings.Contains(err.Error(), "record 7") {
		t.Errorf("a canceled task started: %v", err)
	}
	if err := add("none", started); err == nil {
		t.Error("a task that was never created started")
	}
	all := ts.All()
	if len(all) != 2 || all[0].ID != "b" || all[1].ID != "a" {
		t.Fatalf("tasks are %+v", all)
	}
	if ts.Get("b").Status != task.StatusInProgress || ts.Get("a").Status != task.StatusCanceled || ts.Get("none").Status != "" {
		t.Errorf("tasks are %+v", all)
	}
	if len(new(task.Tasks).All()) != 0 {
		t.Error("no session has tasks")
	}
}

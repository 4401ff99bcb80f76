package rerun

import (
	"slices"
	"testing"

	"coder/internal/agent/supervisor"
	"coder/internal/core/event"
	"coder/internal/core/uip"
)

// ends are the first records that were made after a process ended without closing the books.
func ends(t *Recording) (list []uint64) {
	for _, process := range t.processes[1:] {
		first := t.Records[len(t.Records)-1].Seq
		for _, made := range process {
			if len(made) > 0 {
				first = min(first, made[0].Seq)
			}
		}
		list = append(list, first)
	}
	if t.endsEarly {
		list = append(list, t.Records[len(t.Records)-1].Seq+1)
	}
	return list
}

// TestWhereProcessesEnd: the record does not say it, but what a later process puts on record does.
func TestWhereProcessesEnd(t *testing.T) {
	recovery := func(e event.Event) event.Record { return of("t", event.ActorRecovery, e) }
	asks := func(id string) event.Record {
		return recovery(event.InteractionRequested{Request: uip.Request{ID: id, Author: event.ActorRecovery}})
	}
	answers := func(id, option string) event.Record {
		return of("t", event.ActorUser, event.InteractionResponded{Response: uip.Response{ID: id, Option: option}})
	}
	with := func(r *event.RunOptions) event.Record { return of("t", "", event.TaskCreated{TaskID: "t", Run: r}) }
	mode := of("", event.ActorUser, event.ModeChanged{Mode: "plan"})
	end := of("t", "", event.TaskCompleted{TaskID: "t"})
	for name, tt := range map[string]struct {
		records []event.Record
		ends    []uint64
	}{
		"none did":                      {[]event.Record{created("t"), replied("t", "x"), end}, nil},
		"a turn has no end":             {[]event.Record{created("t"), replied("t", "x")}, []uint64{3}},
		"the books are closed":          {[]event.Record{created("t"), replied("t", "x"), recovery(event.TaskCanceled{TaskID: "t"})}, []uint64{3}},
		"twice":                         {[]event.Record{created("t"), recovery(event.ToolCallCompleted{}), replied("t", "x"), recovery(event.TaskCanceled{TaskID: "t"})}, []uint64{2, 4}},
		"with other flags":              {[]event.Record{with(nil), end, with(&event.RunOptions{AllowedTools: "read"}), end}, []uint64{3}},
		"the same flags":                {[]event.Record{with(&event.RunOptions{Window: 1}), end, with(&event.RunOptions{Window: 2}), end}, nil},
		"taken up with other flags":     {[]event.Record{with(nil), of("t", "", event.TaskStarted{TaskID: "t", Run: &event.RunOptions{}}), end}, []uint64{2}},
		"in another mode":               {[]event.Record{created("t"), mode, recovery(event.ToolCallCompleted{}), end}, []uint64{2}},
		"asked and answered":            {[]event.Record{created("t"), asks("q"), answers("q", supervisor.OptionContinue), replied("t", "x"), end}, []uint64{2}},
		"asked, and asked again later":  {[]event.Record{created("t"), asks("q"), asks("r"), answers("r", supervisor.OptionContinue), end}, []uint64{2, 3}},
		"a look, and asked again later": {[]event.Record{created("t"), asks("q"), answers("q", supervisor.OptionShowChanges), asks("r"), asks("u"), answers("u", supervisor.OptionDiscard), end}, []uint64{2, 5}},
		"a look before the answer":      {[]event.Record{created("t"), asks("q"), answers("q", supervisor.OptionShowChanges), asks("r"), answers("r", supervisor.OptionDiscard), end}, []uint64{2}},
	} {
		if got := ends(New("s", "/ws", numbered(tt.records...))); !slices.Equal(got, tt.ends) {
			t.Errorf("%s: processes end at %v, want %v", name, got, tt.ends)
		}
	}
}

func TestATakeOfTheBeginningIsCutOff(t *testing.T) {
	whole := New("s", "/ws", numbered(created("t"), replied("t", "x"), of("t", "", event.TaskCompleted{TaskID: "t"})))
	if part := whole.Prefix(2); !slices.Equal(ends(part), []uint64{3}) || len(part.excluded) != 1 {
		t.Errorf("it ends at %v, with %d more", ends(part), len(part.excluded))
	}
	if part := whole.Prefix(3); ends(part) != nil || len(part.excluded) != 0 {
		t.Errorf("all of it ends at %v, with %d more", ends(part), len(part.excluded))
	}
}

func TestASubtaskIsAStreamOfItsCall(t *testing.T) {
	sub := func(task, call string) event.Record {
		return of(task, "", event.TaskCreated{TaskID: task, ParentID: "t", CallID: call})
	}
	take := New("s", "/ws", numbered(created("t"), sub("a", "c"), sub("b", "d"), replied("b", "x"), replied("a", "y"), replied("t", "z"), sub("e", "c"), replied("e", "again")))
	for stream, want := range map[string][]uint64{main: {1, 6}, "c": {2, 5}, "d": {3, 4}, "c+": {7, 8}} {
		var got []uint64
		for _, r := range take.streams[stream] {
			got = append(got, r.Seq)
		}
		if !slices.Equal(got, want) {
			t.Errorf("stream %q has %v, want %v", stream, got, want)
		}
	}
}

func TestOnlyCommandsThatChangeSomethingAreRunAgain(t *testing.T) {
	for input, again := range map[string]bool{
		"/undo": true, " /rewind 2": true, "/compact the notes": true, "/plan": true, "/mode": false, "/mode plan": true,
		"/permissions": false, "/permissions revoke 1": false, "/permissions allow x": true, "/cost": false, "/init": false,
	} {
		if got := !isSkipped(event.LocalAdded{Input: input}); got != again {
			t.Errorf("%s is run again: %v", input, got)
		}
	}
	if !isSkipped(event.Spent{}) || !isSkipped(event.Unknown{}) || isSkipped(event.TaskCreated{}) {
		t.Error("the wrong kinds of records are skipped")
	}
}

func TestWhatATakeSaysOfItself(t *testing.T) {
	repository := requested("t", "c", "read", `{}`)
	asked := repository.Event.(event.ToolCallRequested)
	asked.Repository = "state"
	repository.Event = asked
	first := of("t", "", event.TaskCreated{TaskID: "t", Run: &event.RunOptions{Window: 9, ConfigFile: "c.json"}})
	take := New("s", "/ws", numbered(first, replied("t", "x"), repository, replied("t", "y"), replied("u", "z")))
	if r, name := take.StateRecord, take.RepoState; name != "state" || r.Seq != 3 {
		t.Errorf("the repository is %q of record %d", name, r.Seq)
	}
	if r, run := take.FirstTurn, take.FirstRun; r.Seq != 1 || run != (event.RunOptions{ConfigFile: "c.json"}) {
		t.Errorf("the first run is %+v of record %d", run, r.Seq)
	}
	if take.repliesBy(1) != 0 || take.repliesBy(2) != 1 || take.repliesBy(3) != 1 || take.repliesBy(9) != 3 || take.Model != "m" || !take.StartTime.Equal(began) {
		t.Errorf("steps %d %d %d, model %s, start %v", take.repliesBy(1), take.repliesBy(2), take.repliesBy(9), take.Model, take.StartTime)
	}
	if take.MaxSteps < 1000 || len(take.Requests) != 1 {
		t.Errorf("at most %d steps, %d calls", take.MaxSteps, len(take.Requests))
	}
	none := New("s", "/ws", nil)
	if none.RepoState != "" || none.Model != "" || !none.StartTime.IsZero() {
		t.Error("an empty session has a repository, a model or a start")
	}
}

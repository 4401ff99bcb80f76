package rerun

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"coder/internal/agent/supervisor"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/policy/mode"
)

// TestAnInterruptIsNoDifference: what a rerun did differently because it was
// interrupted is not the session's doing.
func TestAnInterruptIsNoDifference(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	f := NewReplayer(New("s", "/ws", nil), Side{}, Side{}, nowhere, 0)
	err := f.Run(ctx, func(ctx context.Context, _ bool) (*supervisor.Session, error) {
		interrupt()
		f.diverged = true
		return nil, ctx.Err()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}

func TestARerunThatCannotBeOpenedIsAnError(t *testing.T) {
	f := NewReplayer(New("s", "/ws", numbered(created("t"))), Side{}, Side{}, nowhere, 0)
	broken := errors.New("no such model")
	err := f.Run(t.Context(), func(context.Context, bool) (*supervisor.Session, error) { return nil, broken })
	if !errors.Is(err, broken) || f.diverged {
		t.Errorf("the error is %v, parted %v", err, f.diverged)
	}
}

// TestRecordsArePairedByStream: the order counts within a stream, and not between two.
func TestRecordsArePairedByStream(t *testing.T) {
	sub := func(task string) event.Record {
		return of(task, "", event.TaskCreated{TaskID: task, ParentID: "t", CallID: "c"})
	}
	take := New("s", "/ws", numbered(created("t"), sub("a"), replied("a", "in"), replied("t", "out"), replied("t", "end")))
	r := follow(t, take, keeper{}, nil)
	if err := r.make(created("t2"), replied("t2", "out"), of("", "", event.Spent{}), sub("b"), replied("t2", "end"), replied("b", "in")); err != nil {
		t.Fatal(err)
	}
	var was, is []uint64
	for _, p := range alignRecords(take, r.Replayer.produced) {
		was, is = append(was, p.recorded.Seq), append(is, p.rerun.Seq)
	}
	if !slices.Equal(was, []uint64{1, 2, 3, 4, 5}) || !slices.Equal(is, []uint64{1, 4, 6, 2, 5}) {
		t.Errorf("pairs of %v and %v", was, is)
	}
	if d := r.Compare(Exceptions{}).Difference; d != nil {
		t.Errorf("they differ: %+v", d)
	}
}

func TestAnotherCourseEndsTheRerun(t *testing.T) {
	end := of("t", "", event.TaskCompleted{TaskID: "t"})
	take := New("s", "/ws", numbered(created("t"), requested("t", "c", "read", `{}`), completed("t", "c", "read", `{}`), end))
	for name, tt := range map[string]struct {
		made   []event.Record
		record uint64
		what   string
	}{
		"another kind":          {[]event.Record{created("t"), replied("t", "x")}, 2, kindCourse},
		"another tool":          {[]event.Record{created("t"), requested("t", "c", "write", `{}`)}, 2, kindDecision},
		"a record more":         {[]event.Record{created("t"), requested("t", "c", "read", `{}`), completed("t", "c", "read", `{}`), end, created("u")}, 4, kindCourse},
		"in a stream of no one": {[]event.Record{created("t"), of("u", "", event.TaskCreated{TaskID: "u", ParentID: "t", CallID: "d"})}, 0, kindCourse},
	} {
		r := follow(t, take, keeper{}, nil)
		err := r.make(tt.made...)
		d := r.Compare(Exceptions{}).Difference
		if !errors.Is(err, errDiverged) || !r.diverged || !r.ended || d == nil || d.Kind != tt.what || d.Record != tt.record {
			t.Errorf("%s: %v, interrupted %v, %+v", name, err, r.ended, d)
		}
		if err := r.make(end); !errors.Is(err, errDiverged) {
			t.Errorf("%s: it goes on: %v", name, err)
		}
	}
}

// TestAProcessEndsWhereItDid: its last record ends the turn under way, and no more is kept.
func TestAProcessEndsWhereItDid(t *testing.T) {
	take := New("s", "/ws", numbered(created("t"), requested("t", "c", "bash", `{}`), of("t", event.ActorRecovery, event.ToolCallCompleted{CallID: "c", Tool: "bash", OutcomeUnknown: true})))
	r := follow(t, take, keeper{}, nil)
	if err := r.make(created("t")); err != nil || r.Replayer.ended {
		t.Fatalf("it ends early: %v", err)
	}
	if err := r.make(requested("t", "c", "bash", `{}`)); err != nil || !r.Replayer.ended || !r.ended {
		t.Fatalf("it does not end: %v", err)
	}
	if err := r.make(completed("t", "c", "bash", `{}`)); !errors.Is(err, errProcessEnded) || r.diverged {
		t.Errorf("more is kept: %v", err)
	}
	if r.last != 2 {
		t.Errorf("%d records are kept", r.last)
	}
}

func TestATakeOfTheBeginningEndsAsIfItsProcessHad(t *testing.T) {
	r := follow(t, New("s", "/ws", numbered(created("t"), replied("t", "x"), replied("t", "y"))).Prefix(1), keeper{}, nil)
	if err := r.make(created("t")); err != nil || !r.ended {
		t.Fatalf("it does not end: %v", err)
	}
	if err := r.make(replied("t", "x")); !errors.Is(err, errProcessEnded) || r.diverged {
		t.Errorf("more is made: %v, parted %v", err, r.diverged)
	}
}

func TestTheClockIsThatOfTheRecord(t *testing.T) {
	r := follow(t, New("s", "/ws", numbered(created("t"), replied("t", "x"), replied("t", "y"))), keeper{}, nil)
	if !r.Now().Equal(began) {
		t.Errorf("it begins at %v", r.Now())
	}
	if err := r.make(created("t"), replied("t", "x")); err != nil || r.Now().Sub(began).Seconds() != 2 {
		t.Errorf("then it is %v: %v", r.Now(), err)
	}
}

// TestACommitIsMadeWithinItsCall: in one second it is known, in two each try chooses again.
func TestACommitIsMadeWithinItsCall(t *testing.T) {
	list := numbered(created("t"), requested("t", "a", "bash", `{}`), requested("t", "b", "bash", `{}`), completed("t", "b", "bash", `{}`), completed("t", "a", "bash", `{}`),
		requested("t", "c", "bash", `{}`), completed("t", "c", "bash", `{}`))
	list[6].Time = list[5].Time.Add(time.Millisecond)
	for try, want := range [][]int{{4, 3, 5}, {1, 2, 5}, {4, 2, 5}, {1, 3, 5}} {
		r := follow(t, New("s", "/ws", list), keeper{}, nil)
		r.try = try
		if err := r.make(list...); err != nil {
			t.Fatal(err)
		}
		for i, id := range []string{"a", "b", "c"} {
			if got := int(r.Date(id).Sub(began).Seconds()); got != want[i] {
				t.Errorf("try %d: the commits of %s are made after %d s, want %d", try, id, got, want[i])
			}
		}
		if !r.Date("").Equal(r.Now()) {
			t.Errorf("a commit of no call is made at %v", r.Date(""))
		}
	}
}

func TestWhatOthersDidToFilesIsDoneAgain(t *testing.T) {
	kept := keeper{contents: map[string]string{"h1": "one", "h2": "two"}}
	later := map[uint64][]event.FileState{1: {file("a", "h2"), file("dir/b", "h1")}, 2: {{Path: "a"}}}
	r := follow(t, New("s", "/ws", numbered(created("t"), replied("t", "x"))), kept, later, file("a", "h1"))
	if r.holds("a") != "one" {
		t.Fatalf("a begins as %q", r.holds("a"))
	}
	if err := r.make(created("t")); err != nil || r.holds("a") != "two" || r.holds("dir/b") != "one" {
		t.Errorf("after record 1: a %q, b %q, %v", r.holds("a"), r.holds("dir/b"), err)
	}
	if err := r.make(replied("t", "x")); err != nil || r.holds("a") != "" {
		t.Errorf("after record 2: a %q, %v", r.holds("a"), err)
	}
}

// TestWhatThePersonDidIsDoneAgain between two records of a turn: they changed the mode, or
// interrupted a call that had not begun.
func TestWhatThePersonDidIsDoneAgain(t *testing.T) {
	mode := func(actor string) event.Record { return of("", actor, event.ModeChanged{Mode: "plan"}) }
	typed := of("", event.ActorUser, event.LocalAdded{Input: "/plan"})
	done := completed("t", "c", "read", `{}`)
	handed := of("t", "", event.MessageAdded{Message: chat.ToolMessage(chat.ToolResult{CallID: "c", Name: "exit_plan_mode", Text: "{}"})})
	refused := of("t", "", event.MessageAdded{Message: chat.ToolMessage(chat.ToolResult{CallID: "c", Name: "exit_plan_mode", Failed: true})})
	canceled := of("t", "", event.ToolCallRequested{CallID: "d", Tool: "read", Verdict: event.VerdictCancelled})
	for name, tt := range map[string]struct {
		records     []event.Record
		changes     string
		interrupted bool
	}{
		"the mode":                     {[]event.Record{done, mode(event.ActorUser)}, "plan", false},
		"by a command":                 {[]event.Record{done, mode(event.ActorUser), typed}, "", false},
		"by somebody else":             {[]event.Record{done, mode("")}, "", false},
		"by handing a plan over":       {[]event.Record{handed, mode(event.ActorUser)}, "", false},
		"by a plan that was not taken": {[]event.Record{refused, mode(event.ActorUser)}, "plan", false},
		"by the result of its call":    {[]event.Record{completed("t", "c", "exit_plan_mode", `{}`), mode(event.ActorUser)}, "", false},
		"a call":                       {[]event.Record{done, canceled}, "", true},
		"a call of a later process":    {[]event.Record{done, of("t", event.ActorRecovery, canceled.Event)}, "", true},
		"nothing":                      {[]event.Record{done, replied("t", "x")}, "", false},
	} {
		records := append([]event.Record{created("t")}, append(tt.records, replied("t", "end"), of("t", "", event.TaskCompleted{TaskID: "t"}))...)
		r := follow(t, New("s", "/ws", numbered(records...)), keeper{}, nil)
		changed := ""
		r.changeMode = func(mode string) { changed = mode }
		if err := r.make(created("t"), tt.records[0]); err != nil || changed != tt.changes || r.ended != tt.interrupted {
			t.Errorf("%s: changed to %q, interrupted %v, %v", name, changed, r.ended, err)
		}
	}
}

func TestAProcessRunsWithItsFlagsAndInItsMode(t *testing.T) {
	with := func(task, flags string, window int) event.Record {
		return of(task, event.ActorUser, event.TaskCreated{TaskID: task, Run: &event.RunOptions{SystemPrompt: flags, Window: window}})
	}
	plan := of("", event.ActorUser, event.ModeChanged{Mode: mode.Plan})
	list := numbered(plan, with("t", "one", 100), of("t", "", event.TaskCompleted{TaskID: "t"}), with("u", "two", 200), of("u", "", event.TaskCompleted{TaskID: "u"}))
	r := follow(t, New("s", "/ws", list), keeper{}, nil)
	check := func(flags string, window int, in string) {
		t.Helper()
		if mode, run := r.ProcessStart(); run.SystemPrompt != flags || r.Window() != window || mode != in {
			t.Errorf("it is run with %q, window %d, in %s; want %q, %d, %s", run.SystemPrompt, r.Window(), mode, flags, window, in)
		}
	}
	check("one", 100, mode.Plan)
	if err := r.make(plan, list[1]); err != nil {
		t.Fatal(err)
	}
	check("one", 100, mode.Plan)
	if err := r.make(list[2]); err != nil {
		t.Fatal(err)
	}
	r.startProcess(1)
	check("two", 200, mode.Plan)
	r.window = 50
	check("two", 50, mode.Plan)
}

// TestTheWindowOfATurnIsItsOwn: the next one may be run with another.
func TestTheWindowOfATurnIsItsOwn(t *testing.T) {
	with := func(task string, window int) event.Record {
		return of(task, event.ActorUser, event.TaskCreated{TaskID: task, Run: &event.RunOptions{Window: window}})
	}
	r := follow(t, New("s", "/ws", numbered(with("t", 100), of("t", "", event.TaskCompleted{TaskID: "t"}), with("u", 200))), keeper{}, nil)
	for _, made := range []struct {
		record event.Record
		window int
	}{{with("t", 100), 100}, {of("t", "", event.TaskCompleted{TaskID: "t"}), 200}, {with("u", 200), 200}} {
		if err := r.make(made.record); err != nil || r.Window() != made.window {
			t.Errorf("after record %d the window is %d, want %d: %v", r.last, r.Window(), made.window, err)
		}
	}
}

func TestWhatAnotherProgramWroteForACommand(t *testing.T) {
	task := of("t", event.ActorUser, event.TaskCreated{TaskID: "t", Intent: "/mcp__a__b now"})
	told := of("t", "", event.MessageAdded{Message: chat.TextMessage(chat.User, "by the program")})
	r := follow(t, New("s", "/ws", numbered(task, told, said("t", "in /ws do this"))), keeper{}, nil)
	if text, ok := r.CommandText("MCP__a__b"); !ok || text != "in "+r.workCopy.Dir()+" do this" {
		t.Errorf("it wrote %q, %v", text, ok)
	}
	if text, ok := r.CommandText("mcp__a__c"); ok {
		t.Errorf("for another command it wrote %q", text)
	}
}

// TestWhatMakesASessionGoOn is found in what is left of the record.
func TestWhatMakesASessionGoOn(t *testing.T) {
	asks := of("t", event.ActorRecovery, event.InteractionRequested{Request: uip.Request{ID: "q", Author: event.ActorRecovery}})
	withdrawn := of("t", event.ActorRecovery, event.InteractionResponded{Response: uip.Response{ID: "p", Dismissed: true}})
	other := of("t", "", event.InteractionRequested{Request: uip.Request{ID: "q", Author: "main"}})
	mode := of("", event.ActorUser, event.ModeChanged{Mode: "plan"})
	given := of("t", event.ActorRecovery, event.TaskCanceled{TaskID: "t"})
	for name, tt := range map[string]struct {
		records           []event.Record
		takenUp, abandons bool
	}{
		"a question":                   {[]event.Record{asks}, true, false},
		"in another mode":              {[]event.Record{mode, asks}, true, false},
		"one that was withdrawn first": {[]event.Record{withdrawn, asks}, true, false},
		"a question of the turn":       {[]event.Record{other}, false, false},
		"a reply":                      {[]event.Record{replied("t", "x"), asks}, false, false},
		"closed books":                 {[]event.Record{given}, false, true},
		"the person canceled it":       {[]event.Record{of("t", event.ActorUser, event.TaskCanceled{TaskID: "t"})}, false, false},
		"another task":                 {[]event.Record{created("u"), given}, false, false},
		"nothing":                      {nil, false, false},
	} {
		f := NewReplayer(New("s", "/ws", nil), Side{}, Side{}, nowhere, 0)
		f.pending[main] = tt.records
		if f.wasResumeAsked() != tt.takenUp || f.wasAbandoned() != tt.abandons {
			t.Errorf("%s: taken up %v, abandoned %v", name, f.wasResumeAsked(), f.wasAbandoned())
		}
	}
}

// TestACommandThatNamesARecordNamesThatOfTheRerun: the numbers change where a record is not made again.
func TestACommandThatNamesARecordNamesThatOfTheRerun(t *testing.T) {
	looks := of("", event.ActorUser, event.LocalAdded{Input: "/cost"})
	r := follow(t, New("s", "/ws", numbered(created("t"), looks, replied("t", "x"), looks, replied("t", "y"), created("u"))), keeper{}, nil)
	if err := r.make(created("t"), replied("t", "x"), replied("t", "y")); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]string{
		"/restore 5": "/restore 3", " /restore #4 force": " /restore #2 force", "/undo all #3": "/undo all #2", "/undo #3 dry": "/undo #2 dry", "/restore 1": "/restore 1",
		"/restore 99": "/restore 3", "/rewind 5": "/rewind 5", "/undo a5.txt": "/undo a5.txt", "/restore": "/restore", "/compact keep #5": "/compact keep #5",
	} {
		if got := r.renumbered(command); got != want {
			t.Errorf("%q becomes %q, want %q", command, got, want)
		}
	}
}

func TestWhatThePersonSaid(t *testing.T) {
	picture := chat.Image{Data: []byte("x")}
	shown := of("t", event.ActorUser, event.MessageAdded{Message: chat.Message{Role: chat.User, Parts: []chat.Part{chat.Text("look"), picture}}})
	command := func(intent string) event.Record {
		return of("t", event.ActorUser, event.TaskCreated{TaskID: "t", Intent: intent})
	}
	local := func(input string) event.Record { return of("", event.ActorUser, event.LocalAdded{Input: input}) }
	for name, tt := range map[string]struct {
		records  []event.Record
		cut      int // how many are run
		text     string
		written  bool
		pictures int
	}{
		"a prompt":                    {[]event.Record{created("t"), said("t", "do it")}, 2, "do it", false, 0},
		"with a picture":              {[]event.Record{created("t"), shown}, 2, "look", false, 1},
		"before a message":            {[]event.Record{created("t")}, 1, "go", false, 0},
		"a command as it is written":  {[]event.Record{command("/x y"), said("t", "/x y")}, 2, "/x y", true, 0},
		"words that a command is for": {[]event.Record{command("/x y"), said("t", "many words")}, 2, "/x y", false, 0},
		"a command that is no turn":   {[]event.Record{local("/undo"), created("t")}, 2, "/undo", false, 0},
		"one that is said last":       {[]event.Record{requested("", "undo_1", "undo", `{}`), local("/undo")}, 1, "/undo", false, 0},
		"one that changes nothing":    {[]event.Record{requested("", "undo_1", "undo", `{}`), local("/cost")}, 1, "", false, 0},
		"nothing is on record":        {[]event.Record{requested("", "undo_1", "undo", `{}`), created("t")}, 1, "", false, 0},
	} {
		f := NewReplayer(New("s", "/ws", numbered(tt.records...)).Prefix(tt.cut), Side{}, Side{}, nowhere, 0)
		got, ok := f.nextUserInput()
		if ok != (tt.text != "") || ok && got.Text() != tt.text || got.Verbatim != tt.written || len(got.Pictures) != tt.pictures {
			t.Errorf("%s: %q, %v, as written %v, %d pictures", name, got.Text(), ok, got.Verbatim, len(got.Pictures))
		}
	}
}

func TestASessionThatNobodyBeganIsUnfit(t *testing.T) {
	f := NewReplayer(New("s", "/ws", numbered(replied("t", "x"))), Side{}, Side{}, nowhere, 0)
	r, _ := f.nextRecord(main)
	err := f.runInput(t.Context(), nil, r, false)
	if unfit, ok := errors.AsType[*NotRerunnableError](err); !ok || unfit.Record != 1 {
		t.Errorf("the error is %v", err)
	}
}

package rerun

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"coder/internal/agent/compact"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/model/provider"
	"coder/internal/tool"
)

// stream is what the model says when it is asked.
func (r *rig) stream(ctx context.Context, req provider.Request) (text string, list []provider.Delta, err error) {
	r.t.Helper()
	for d, failed := range r.Stream(ctx, req) {
		if err = failed; failed == nil {
			list = append(list, d)
		}
		if d, ok := d.(provider.TextDelta); ok {
			text += string(d)
		}
	}
	return text, list, err
}

func TestTheModelSaysWhatIsOnRecord(t *testing.T) {
	call := chat.ToolCall{ID: "c", Name: "read", Args: []byte(`{"path":"/ws/a"}`)}
	r := follow(t, New("s", "/ws", numbered(created("t"), replied("t", "see /ws/a", chat.Reasoning{Text: "hm"}, call), replied("t", "end"))), keeper{}, nil)
	if err := r.make(created("t")); err != nil {
		t.Fatal(err)
	}
	text, list, err := r.stream(t.Context(), provider.Request{})
	root := r.workCopy.Dir()
	if err != nil || text != "see "+root+"/a" || len(list) != 4 {
		t.Fatalf("it says %q in %d parts: %v", text, len(list), err)
	}
	if d, ok := list[2].(provider.CallDelta); !ok || d.ID != "c" || d.Args != `{"path":"`+root+`/a"}` {
		t.Errorf("it calls %+v", list[2])
	}
	if d, ok := list[3].(provider.Done); !ok || d.Model != "m" {
		t.Errorf("it ends with %+v", list[3])
	}
	if err := r.make(replied("t", "see /ws/a", call)); err != nil {
		t.Fatal(err)
	}
	if text, _, err := r.stream(t.Context(), provider.Request{}); text != "end" || err != nil {
		t.Errorf("then it says %q: %v", text, err)
	}
}

// TestASubtaskHearsItsOwnReplies, and the one that works for its call once more the later ones.
func TestASubtaskHearsItsOwnReplies(t *testing.T) {
	sub := func(task string) event.Record {
		return of(task, "", event.TaskCreated{TaskID: task, ParentID: "t", CallID: "c"})
	}
	r := follow(t, New("s", "/ws", numbered(created("t"), sub("a"), replied("a", "one"), sub("b"), replied("b", "two"), replied("t", "mine"))), keeper{}, nil)
	hear := func(ctx context.Context, want string) {
		t.Helper()
		if text, _, err := r.stream(ctx, provider.Request{}); text != want || err != nil {
			t.Errorf("it hears %q, want %q: %v", text, want, err)
		}
	}
	within := tool.WithCall(t.Context(), "c")
	if err := r.make(created("t"), sub("x")); err != nil {
		t.Fatal(err)
	}
	hear(within, "one")
	hear(t.Context(), "mine")
	if err := r.make(replied("x", "one"), sub("y")); err != nil {
		t.Fatal(err)
	}
	hear(within, "two")
}

func TestASummaryIsThatOfTheRecord(t *testing.T) {
	summed := event.ContextReplaced{Messages: []chat.Message{compact.NewMessage("the story of /ws", compact.Carryover{}, 4000)}, Window: 77}
	summary := provider.Request{System: compact.SummarySystem}
	r := follow(t, New("s", "/ws", numbered(of("t", "", summed))), keeper{}, nil)
	if text, _, err := r.stream(t.Context(), summary); text != "the story of "+r.workCopy.Dir() || err != nil {
		t.Errorf("the summary is %q: %v", text, err)
	}
	_, _, err := r.stream(t.Context(), provider.Request{})
	if e, ok := errors.AsType[*provider.Error](err); !ok || !errors.Is(err, provider.ErrContextTooLong) || e.Window != 77 || r.Window() != 77 {
		t.Errorf("the request before it fails with %v, window %d", err, r.Window())
	}
	r = follow(t, New("s", "/ws", numbered(of("", event.ActorUser, event.LocalAdded{Input: "/compact", Failed: true}))), keeper{}, nil)
	if _, _, err := r.stream(t.Context(), summary); err == nil || errors.Is(err, errDiverged) || r.diverged {
		t.Errorf("a summary that failed is %v", err)
	}
	for _, next := range []event.Record{replied("t", "x"), of("", event.ActorUser, event.LocalAdded{Input: "/compact"})} {
		r = follow(t, New("s", "/ws", numbered(next)), keeper{}, nil)
		if _, _, err := r.stream(t.Context(), summary); !errors.Is(err, errDiverged) || !r.diverged {
			t.Errorf("a summary that was not made is %v", err)
		}
	}
}

// TestAReplyThatBrokeOffBreaksOff for the reason that it did.
func TestAReplyThatBrokeOffBreaksOff(t *testing.T) {
	half := of("t", "", event.MessageAdded{Message: chat.TextMessage(chat.Assistant, "hal"), Model: "m", Interrupted: true, Window: 33})
	failed := of("t", "", event.TaskFailed{TaskID: "t", ErrorText: "gone", Code: "rate_limited"})
	r := follow(t, New("s", "/ws", numbered(half, failed)), keeper{}, nil)
	if text, _, err := r.stream(t.Context(), provider.Request{}); text != "hal" || err == nil || err.Error() != "gone" || r.Window() != 33 {
		t.Errorf("it says %q: %v, window %d", text, err, r.Window())
	}
	r = follow(t, New("s", "/ws", numbered(half, of("t", event.ActorUser, event.TaskCanceled{TaskID: "t"}))), keeper{}, nil)
	if text, _, _ := r.stream(t.Context(), provider.Request{}); text != "hal" || !r.ended {
		t.Errorf("it says %q, interrupted %v", text, r.ended)
	}
}

// TestWhatTheEndOfAProcessCutOffIsWaitedFor until the session is stopped.
func TestWhatTheEndOfAProcessCutOffIsWaitedFor(t *testing.T) {
	stopped, stop := context.WithCancel(t.Context())
	list := numbered(created("t"), of("t", "", event.TaskStarted{TaskID: "t", Run: &event.RunOptions{}}), replied("t", "by the next process"))
	r := follow(t, New("s", "/ws", list), keeper{}, nil)
	if err := r.make(created("t")); err != nil {
		t.Fatal(err)
	}
	stop()
	_, err := r.nextReply(stopped, provider.Request{})
	if !errors.Is(err, context.Canceled) || r.diverged {
		t.Errorf("a reply that was not there is %v", err)
	}
}

// recall is a rig with one call under way, and what else is on record of it.
func recall(t *testing.T, kept keeper, asked event.ToolCallRequested, rest ...event.Record) *rig {
	t.Helper()
	asked.CallID = "c"
	begins := of("t", "", asked)
	r := follow(t, New("s", "/ws", numbered(append([]event.Record{created("t"), begins}, rest...)...)), kept, nil)
	if err := r.make(created("t"), begins); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestACallThatLeftTheMachineIsNotMadeAgain(t *testing.T) {
	done := event.ToolCallCompleted{
		CallID: "c", Tool: "fetch", Output: []byte(`{"at":"/ws/x"}`), IsError: true, SeenFiles: []event.FileState{file("seen", "h")},
		Changes: []event.FileChange{{Before: event.FileState{Path: "made"}, After: file("made", "h")}},
	}
	net := event.ToolCallRequested{Tool: "fetch", Effects: []event.Effect{{Kind: event.EffectNet, Target: "https://x.org"}}}
	r := recall(t, keeper{contents: map[string]string{"h": "text"}}, net, of("t", "", done))
	res, known, err := r.RecordedResult(t.Context(), "c")
	if out, _ := res.Value.([]byte); err != nil || !known || !res.Failed || res.SeenFiles["seen"] != "h" || r.holds("made") != "text" {
		t.Errorf("%+v (%s), known %v, made %q: %v", res, out, known, r.holds("made"), err)
	}
	r = recall(t, keeper{}, event.ToolCallRequested{Tool: "read"}, completed("t", "c", "read", `{}`))
	if _, known, err := r.RecordedResult(t.Context(), "c"); known || err != nil {
		t.Errorf("one that did not is known: %v, %v", known, err)
	}
	if _, known, err := r.RecordedResult(t.Context(), "other"); !known || !errors.Is(err, errDiverged) {
		t.Errorf("one that was not made then: %v, %v", known, err)
	}
}

func TestACallThatWasInterruptedLeavesWhatItLeft(t *testing.T) {
	done := event.ToolCallCompleted{CallID: "c", Tool: "bash", Output: []byte(`{"cancelled":true}`), Changes: []event.FileChange{{After: file("half", "h")}}}
	r := recall(t, keeper{contents: map[string]string{"h": "text"}}, event.ToolCallRequested{Tool: "bash"}, of("t", "", done))
	ctx, cancel := context.WithCancel(t.Context())
	r.Replayer.cancel = cancel
	if _, known, err := r.RecordedResult(ctx, "c"); !known || !errors.Is(err, context.Canceled) || r.holds("half") != "text" {
		t.Errorf("known %v, %q: %v", known, r.holds("half"), err)
	}
}

// TestACallWithoutAnEndIsWaitedForOnlyIfAProcessEnded: the record of another is damaged.
func TestACallWithoutAnEndIsWaitedForOnlyIfAProcessEnded(t *testing.T) {
	bash := event.ToolCallRequested{Tool: "bash"}
	recovered := of("t", event.ActorRecovery, event.ToolCallCompleted{CallID: "c", Tool: "bash", OutcomeUnknown: true})
	beside := completed("t", "d", "read", `{}`)
	sub := of("u", "", event.TaskCreated{TaskID: "u", ParentID: "t", CallID: "c"})
	for name, tt := range map[string]struct {
		rest   []event.Record
		differ uint64 // the record from which on it differs; 0 if it is waited for
		again  bool   // it is made again
	}{
		"cut off":                {[]event.Record{recovered, replied("t", "x")}, 0, false},
		"beside another":         {[]event.Record{beside, recovered}, 0, false},
		"at the end":             {nil, 0, false},
		"handed on":              {[]event.Record{sub, replied("u", "x"), recovered}, 0, true},
		"the turn goes on":       {[]event.Record{replied("t", "x"), recovered}, 3, false},
		"and then comes its end": {[]event.Record{of("t", "", event.TaskCompleted{TaskID: "t"})}, 3, false},
	} {
		r := recall(t, keeper{}, bash, tt.rest...)
		ctx, stop := context.WithCancel(t.Context())
		stop()
		_, known, err := r.RecordedResult(ctx, "c")
		d := r.Compare(Exceptions{}).Difference
		switch {
		case tt.again && known || !tt.again && !known:
			t.Errorf("%s: known %v", name, known)
		case tt.differ > 0 && (!errors.Is(err, errDiverged) || d == nil || d.Record != tt.differ):
			t.Errorf("%s: %v, %+v", name, err, d)
		case tt.differ == 0 && !tt.again && (!errors.Is(err, context.Canceled) || r.diverged):
			t.Errorf("%s: %v, %+v", name, err, d)
		}
	}
}

// TestACallOutsideOfATurnHasAnEnd, or its record is damaged.
func TestACallOutsideOfATurnHasAnEnd(t *testing.T) {
	r := follow(t, New("s", "/ws", numbered(requested("", "c", "undo", `{}`))), keeper{}, nil)
	if err := r.make(requested("", "c", "undo", `{}`)); err != nil {
		t.Fatal(err)
	}
	if _, known, err := r.RecordedResult(t.Context(), "c"); !known || !errors.Is(err, errDiverged) || !r.diverged {
		t.Errorf("known %v: %v", known, err)
	}
}

// TestACallIsPlannedByItsIdAndElseByItsTool: a rerun makes some ids itself.
func TestACallIsPlannedByItsIdAndElseByItsTool(t *testing.T) {
	titled := func(id, tool, title string) event.Record {
		return of("t", "", event.ToolCallRequested{CallID: id, Tool: tool, Title: title})
	}
	r := follow(t, New("s", "/ws", numbered(titled("a", "x", "first"), titled("b", "x", "second"), titled("c", "y", "third"))), keeper{}, nil)
	for _, tt := range []struct{ id, tool, title string }{{"b", "x", "second"}, {"new", "x", "first"}, {"new", "y", "third"}, {"new", "z", ""}} {
		if e, ok := r.PlannedCall(tool.WithCall(t.Context(), tt.id), tt.tool); e.Title != tt.title || ok != (tt.title != "") {
			t.Errorf("%s of %s is %q, %v", tt.id, tt.tool, e.Title, ok)
		}
	}
	if err := r.make(titled("a", "x", "first")); err != nil {
		t.Fatal(err)
	}
	if e, _ := r.PlannedCall(t.Context(), "x"); e.Title != "second" {
		t.Errorf("after the first, the next is %q", e.Title)
	}
}

func TestToolsOfOtherProgramsAreAlwaysLetPass(t *testing.T) {
	for name, pass := range map[string]bool{"mcp__a__b": true, "bash": false} {
		call := event.ToolCallRequested{CallID: "c", Tool: name, Verdict: event.VerdictAllowed, DecidedBy: event.ActorPolicy}
		f := NewReplayer(New("s", "/ws", numbered(of("t", "", call))), Side{}, Side{}, nowhere, 0)
		if f.WasAllowed("c", name, true) != pass || f.WasAllowed("new", name, true) != pass || f.WasAllowed("new", "other", true) || IsMCPTool(name) != pass {
			t.Errorf("%s is let pass: %v, by its tool %v", name, f.WasAllowed("c", name, true), f.WasAllowed("new", name, true))
		}
		for _, asked := range []event.ToolCallRequested{{Verdict: event.VerdictDenied, DecidedBy: event.ActorPolicy}, {Verdict: event.VerdictAllowed, DecidedBy: event.ActorUser}} {
			asked.CallID, asked.Tool, asked.AutoAllowed = "c", name, event.AllowanceRisks
			f := NewReplayer(New("s", "/ws", numbered(of("t", "", asked))), Side{}, Side{}, nowhere, 0)
			if f.WasAllowed("c", name, false) {
				t.Errorf("%s is let pass though it was %s by %s", name, asked.Verdict, asked.DecidedBy)
			}
		}
	}
}

func TestAQuestionIsAnsweredAsItWas(t *testing.T) {
	asks := func(id string) event.Record {
		return of("t", "", event.InteractionRequested{Request: uip.Request{ID: id, TaskID: "t", Parts: []uip.Request{{ID: id + ".1"}, {ID: id + ".2"}}}})
	}
	answer := uip.Response{ID: "q", TaskID: "t", Option: "yes", Args: []byte(`{"in":"/ws"}`), Parts: []uip.Response{{ID: "q.2", Input: "two"}, {ID: "q.1", Input: "one"}}}
	r := follow(t, New("s", "/ws", numbered(created("t"), asks("q"), of("t", event.ActorUser, event.InteractionResponded{Response: answer}), asks("p"))), keeper{}, nil)
	now := asks("new")
	if err := r.make(created("t"), now); err != nil {
		t.Fatal(err)
	}
	q := now.Event.(event.InteractionRequested).Request
	a, err := r.Ask(t.Context(), q)
	if err != nil || a.ID != "new" || a.Option != "yes" || a.Parts[0].ID != "new.2" || a.Parts[1].Input != "one" || !strings.Contains(string(a.Args), r.dir) {
		t.Errorf("%+v: %v", a, err)
	}
	if err := r.make(of("t", event.ActorUser, event.InteractionResponded{Response: a})); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r.Replayer.cancel = cancel
	if _, err := r.Ask(ctx, uip.Request{ID: "again", TaskID: "t"}); !errors.Is(err, context.Canceled) {
		t.Errorf("one that was withdrawn is %v", err)
	}
}

func TestWhatThePersonSaidInBetweenIsSaidAgain(t *testing.T) {
	canceled := of("t", event.ActorUser, event.TaskCanceled{TaskID: "t"})
	for name, tt := range map[string]struct {
		records []event.Record
		want    string
	}{
		"words":           {[]event.Record{said("t", "also look at /ws"), replied("t", "x")}, "also look at "},
		"an interruption": {[]event.Record{said("t", "stopped"), canceled}, ""},
		"of the program":  {[]event.Record{of("t", "", event.MessageAdded{Message: chat.TextMessage(chat.User, "x")})}, ""},
		"a reply":         {[]event.Record{replied("t", "x")}, ""},
		"nothing":         {nil, ""},
	} {
		r := follow(t, New("s", "/ws", numbered(tt.records...)), keeper{}, nil)
		got := ""
		for _, w := range r.steeringTexts() {
			got += w.Text()
		}
		if tt.want != "" {
			tt.want += r.workCopy.Dir()
		}
		if got != tt.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestCallsThatAreNotMadeAgain: what left the bounds of this machine is known by
// its effects and by what it asked for.
func TestCallsThatAreNotMadeAgain(t *testing.T) {
	for _, tt := range []struct {
		call event.ToolCallRequested
		want bool
	}{
		{event.ToolCallRequested{Tool: "fetch", Effects: []event.Effect{{Kind: event.EffectNet, Target: "https://x.org"}}}, true},
		{event.ToolCallRequested{Tool: "mcp__a__b", Effects: []event.Effect{{Target: "mcp__a__b"}}}, true},
		{event.ToolCallRequested{Tool: "lsp_hover", Effects: []event.Effect{{Kind: event.EffectRead, Target: "a.go"}}}, true},
		{event.ToolCallRequested{Tool: "bash", Input: json.RawMessage(`{"command":"x","unconfined":true}`), Effects: []event.Effect{{Kind: event.EffectExec, Target: "x"}}}, true},
		{event.ToolCallRequested{Tool: "bash", Input: json.RawMessage(`{"command":"x","unconfined":false}`), Effects: []event.Effect{{Kind: event.EffectExec, Target: "x"}}}, false},
		{event.ToolCallRequested{Tool: "read", Effects: []event.Effect{{Kind: event.EffectRead, Target: "a"}}}, false},
	} {
		if got := isExternalCall(tt.call); got != tt.want {
			t.Errorf("%s %s: %v", tt.call.Tool, tt.call.Input, got)
		}
	}
}

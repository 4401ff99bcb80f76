package events_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/ui/events"
	"coder/testkit/rendertest"
)

type semaLine struct {
	Event string
	Data  struct {
		AgentID, State, Reasoning, Content, Delta, Selected, ToolName, Type string
		Usage                                                               struct{ UseTokens, MaxTokens, PromptTokens int }
		Error                                                               struct{ Code string }
	}
	Raw string
}

func decodeSema(t *testing.T, out []byte) (ls []semaLine) {
	t.Helper()
	for line := range bytes.Lines(out) {
		var l semaLine
		dec := json.NewDecoder(bytes.NewReader(line))
		if err := dec.Decode(&l); err != nil && !strings.Contains(err.Error(), "cannot unmarshal") {
			t.Fatalf("%v in %s", err, line)
		}
		l.Raw = string(line)
		ls = append(ls, l)
	}
	return ls
}

// names is the order of events, with a run of chunks told once.
func names(ls []semaLine) (ns []string) {
	for _, l := range ls {
		n := strings.TrimPrefix(l.Event, "message:")
		if l.Event == "state:update" {
			n = l.Data.State
		}
		if strings.HasSuffix(n, "chunk") && len(ns) > 0 && ns[len(ns)-1] == n {
			continue
		}
		ns = append(ns, n)
	}
	return ns
}

// on makes records of one task out of events.
func on(task string, es ...event.Event) (rs []event.Record) {
	for _, e := range es {
		rs = append(rs, event.Record{Session: "s", Task: task, Event: e})
	}
	return rs
}

func sema(t *testing.T, rs ...[]event.Record) []semaLine {
	t.Helper()
	return decodeSema(t, render(t, events.Sema, slices.Concat(rs...)))
}

func expect(t *testing.T, got []semaLine, want string) {
	t.Helper()
	if ns := strings.Join(names(got), " "); ns != want {
		t.Errorf("events\n got %s\nwant %s", ns, want)
	}
}

func TestSemaTellsOneUsagePerMainReply(t *testing.T) {
	for name, rs := range map[string][]event.Record{
		"live": rendertest.Story(), "logs": rendertest.Durable(rendertest.Story()),
	} {
		child := map[string]bool{}
		replies, usages := 0, 0
		for _, r := range rs {
			if e, ok := r.Event.(event.TaskCreated); ok && e.ParentID != "" {
				child[r.Task] = true
			}
			if e, ok := r.Event.(event.MessageAdded); ok && e.Message.Role == chat.Assistant && !child[r.Task] {
				replies++
			}
		}
		for _, l := range sema(t, rs) {
			if l.Event == "conversation:usage" {
				usages++
			}
		}
		if usages != replies {
			t.Errorf("%s: %d usages for %d replies", name, usages, replies)
		}
	}
}

// The answer is the last thing before idle, whatever else the end of a turn
// brings and in whatever order.
func TestSemaEndOfTurn(t *testing.T) {
	answer := event.MessageAdded{Message: chat.TextMessage(chat.Assistant, "done"), Usage: &chat.Usage{In: 7, Out: 3}}
	used := event.ContextUsed{Used: 12, Max: 100, Prompt: 9}
	verify := event.ToolFinished{CallID: "v", Tool: "bash", Summary: "exit 0"}
	start := on("t1", event.TaskCreated{TaskID: "t1"}, event.TaskStarted{}, event.StateChanged{Busy: true})
	done, idle := event.TaskCompleted{}, event.StateChanged{}
	const end = "processing conversation:usage complete idle"
	for _, tc := range []struct {
		name, want string
		es         []event.Event
	}{
		{"usage after the reply", end, []event.Event{answer, used, done, idle}},
		{"usage before the reply", end, []event.Event{used, answer, done, idle}},
		{"no usage at all", end, []event.Event{answer, done, idle}},
		{"usage late", end, []event.Event{answer, done, used, idle}},
		{"idle before the task ends", end, []event.Event{answer, used, idle, done}},
		{"notices between", end, []event.Event{answer, event.Notice{Text: "x"}, used, done, event.Notice{Text: "y"}, idle}},
		{"a check that passes", "processing conversation:usage tool:execution:complete complete idle",
			[]event.Event{answer, used, verify, done, idle}},
		{"a check that leads on", "processing conversation:usage tool:execution:complete complete text:chunk conversation:usage complete idle",
			[]event.Event{answer, used, verify, say(chat.User, "it failed"), event.TextDelta{Text: "d"}, answer, done, idle}},
		{"an error after the answer", "processing conversation:usage complete session:error idle",
			[]event.Event{answer, event.TaskFailed{Reason: "x"}, idle}},
		{"an error after all seemed quiet", "processing session:error idle", []event.Event{idle, event.TaskFailed{Reason: "x"}}},
	} {
		t.Run(tc.name, func(t *testing.T) { expect(t, sema(t, start, on("t1", tc.es...)), tc.want) })
	}
}

func TestSemaUsageNumbers(t *testing.T) {
	reply := event.MessageAdded{Message: chat.TextMessage(chat.Assistant, "x"), Usage: &chat.Usage{In: 7, Out: 3}}
	mute := say(chat.Assistant, "x")
	opened := event.SessionOpened{MaxTokens: 50}
	for _, tc := range []struct {
		name string
		es   []event.Event
		want [3]int
	}{
		{"what the prompt line shows", []event.Event{opened, reply, event.ContextUsed{Used: 12, Max: 100, Prompt: 9}}, [3]int{12, 100, 9}},
		{"else what the provider said", []event.Event{opened, event.ContextUsed{Used: 1, Max: 60, Prompt: 1}, reply, event.StateChanged{}}, [3]int{10, 60, 7}},
		{"else the limit alone", []event.Event{opened, mute, event.StateChanged{}}, [3]int{0, 50, 0}},
		{"else what was last known", []event.Event{event.ContextUsed{Used: 5, Max: 60, Prompt: 4}, mute, event.StateChanged{}}, [3]int{5, 60, 4}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, l := range sema(t, on("t1", tc.es...)) {
				u := l.Data.Usage
				if got := [3]int{u.UseTokens, u.MaxTokens, u.PromptTokens}; l.Event == "conversation:usage" && got != tc.want {
					t.Errorf("usage %v, want %v", got, tc.want)
				}
			}
		})
	}
}

func TestSemaInterruption(t *testing.T) {
	half := event.MessageAdded{Message: chat.TextMessage(chat.Assistant, "ha"), Interrupted: true}
	stop := event.Interrupted{Text: "[Request interrupted by user]"}
	for _, tc := range []struct {
		name, want string
		es         []event.Event
	}{
		{"while the model speaks", "processing text:chunk conversation:usage complete session:interrupted idle",
			[]event.Event{event.TextDelta{Text: "ha"}, half, stop, event.TaskCanceled{}}},
		{"told before it is kept", "processing text:chunk session:interrupted conversation:usage complete idle",
			[]event.Event{event.TextDelta{Text: "ha"}, stop, half, event.TaskCanceled{}}},
		{"while a tool runs", "processing session:interrupted conversation:usage idle", []event.Event{stop, event.TaskCanceled{}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			expect(t, sema(t, on("t1", event.TaskStarted{}), on("t1", tc.es...)), tc.want)
		})
	}
}

// The chunks since the last void one add up to the message, and a void reply
// leaves nothing behind.
func TestSemaChunks(t *testing.T) {
	said := map[string]string{}
	for _, l := range sema(t, rendertest.Story()) {
		switch l.Event {
		case "message:text:chunk", "message:thinking:chunk":
			said[l.Event] += l.Data.Delta
			if l.Data.Content == "" {
				said[l.Event] = ""
			}
			if l.Data.Content != said[l.Event] {
				t.Errorf("content %q after deltas %q", l.Data.Content, said[l.Event])
			}
		case "message:complete":
			if l.Data.AgentID != "main" {
				continue
			}
			if got := said["message:text:chunk"]; got != l.Data.Content {
				t.Errorf("chunks %q, message %q", got, l.Data.Content)
			}
			if got := said["message:thinking:chunk"]; got != l.Data.Reasoning {
				t.Errorf("thinking chunks %q, message %q", got, l.Data.Reasoning)
			}
			clear(said)
		}
	}
}

func TestSemaSubagentsHaveNoChunksAndNoUsage(t *testing.T) {
	got := sema(t,
		on("t1", event.TaskCreated{TaskID: "t1"}, event.TaskStarted{}),
		on("t2", event.TaskCreated{TaskID: "t2", ParentID: "t1"}, event.TaskStarted{}, event.StateChanged{Busy: true},
			event.TextDelta{Text: "x"}, event.ReasoningDelta{Text: "y"}, say(chat.Assistant, "x"),
			event.ContextUsed{Used: 5}, event.StateChanged{}, event.TaskFailed{Reason: "r"}),
		on("t1", event.TaskCompleted{}))
	expect(t, got, "processing task:agent:start complete task:agent:end idle")
	if got[2].Data.AgentID != "t2" {
		t.Errorf("the reply is told as %q's", got[2].Data.AgentID)
	}
}

// What a subagent does after the main agent's answer does not part the answer
// from the end of the turn, and its tokens are not the main agent's.
func TestSemaSubagentAfterTheAnswer(t *testing.T) {
	got := sema(t,
		on("t1", event.TaskStarted{}, say(chat.Assistant, "done"), event.ContextUsed{Used: 12, Max: 100, Prompt: 9}),
		on("t2", event.TaskCreated{TaskID: "t2", ParentID: "t1"}, event.TaskStarted{}, say(chat.User, "check"),
			say(chat.Assistant, "fine"), event.ContextUsed{Used: 5}, event.TaskCompleted{}),
		on("t1", event.TaskCompleted{}), on("t3", event.TaskStarted{}, event.Interrupted{}))
	expect(t, got, "processing conversation:usage task:agent:start complete task:agent:end complete idle "+
		"processing session:interrupted conversation:usage")
	if last := got[len(got)-1].Data.Usage; last.UseTokens != 12 || last.MaxTokens != 100 {
		t.Errorf("usage %+v is not the main agent's", last)
	}
}

// A run that parks on a question is idle though its task is not over.
func TestSemaParked(t *testing.T) {
	ask := event.InteractionRequested{Request: uip.Request{ID: "ui_1", TaskID: "t1", Purpose: uip.PurposeConfirmRiskyAction}}
	got := sema(t, on("t1", event.StateChanged{Busy: true}, event.TaskStarted{}, ask, event.StateChanged{}))
	expect(t, got, "processing tool:permission:request idle")
}

func TestSemaPermission(t *testing.T) {
	call := chat.ToolCall{ID: "c1", Name: "write", Args: json.RawMessage(`{}`)}
	ask := func(opts ...uip.Option) event.InteractionRequested {
		return event.InteractionRequested{Request: uip.Request{
			ID: "ui_1", TaskID: "t1", Kind: uip.KindConfirm, Purpose: uip.PurposeConfirmRiskyAction, Options: opts,
			Display: uip.Display{Title: "Write?", Content: display.Diff{Unified: "+x", Added: 1}, Metadata: map[string]string{"toolCallId": "c1"}},
		}}
	}
	reply := event.MessageAdded{Message: chat.Message{Role: chat.Assistant, Parts: []chat.Part{call}}}
	for _, tc := range []struct {
		a    uip.Response
		want string
	}{
		{uip.Response{Option: uip.OptionApprove}, "agree"},
		{uip.Response{Option: uip.OptionAlways}, "allow"},
		{uip.Response{Option: uip.OptionReject}, "refuse"},
		{uip.Response{Option: uip.OptionReject, Comment: "use b.txt"}, "use b.txt"},
	} {
		tc.a.ID = "ui_1"
		got := sema(t, on("t1", reply, ask(uip.Option{ID: uip.OptionApprove, Label: "Yes"}, uip.Option{ID: uip.OptionReject, Label: "No"}),
			event.InteractionResponded{Response: tc.a}))
		req, res := got[len(got)-2], got[len(got)-1]
		const want = `{"event":"tool:permission:request","data":{"agentId":"main","toolName":"write","title":"Write?",` +
			`"content":{"type":"diff","diffText":"+x","additions":1,"deletions":0},"options":{"agree":"Yes","refuse":"No"}}}` + "\n"
		if req.Raw != want {
			t.Errorf("request %s", req.Raw)
		}
		if res.Event != "tool:permission:response" || res.Data.Selected != tc.want || res.Data.ToolName != "write" {
			t.Errorf("%+v is told as %s", tc.a, res.Raw)
		}
	}
}

func TestSemaQuestions(t *testing.T) {
	ask := func(q uip.Request, a uip.Response) string {
		q.ID, a.ID = "ui_1", "ui_1"
		var b strings.Builder
		for _, l := range sema(t, on("t1", event.InteractionRequested{Request: q}, event.InteractionResponded{Response: a})) {
			b.WriteString(l.Raw)
		}
		return b.String()
	}
	colours := []uip.Option{{ID: "1", Label: "red"}, {ID: "2", Label: "blue"}}
	ways := []uip.Option{{ID: "startEditing", Label: "Start"}, {ID: "clearContextAndStart", Label: "Clear"}}
	for _, tc := range []struct {
		name string
		q    uip.Request
		a    uip.Response
		want []string
	}{
		{"an option", uip.Request{Kind: uip.KindSelect, Purpose: uip.PurposeRequestInfo, Display: uip.Display{Title: "Colour?"}, Options: colours},
			uip.Response{Option: "2"}, []string{
				`{"event":"ask:question:request","data":{"agentId":"main","questions":[{"question":"Colour?","header":"","options":[{"label":"red","description":""},{"label":"blue","description":""}],"multiSelect":false}]}}`,
				`{"event":"ask:question:response","data":{"agentId":"main","answers":{"Colour?":"blue"}}}`,
			}},
		{"typed", uip.Request{Kind: uip.KindInput, Purpose: uip.PurposeGeneric, Display: uip.Display{Title: "Name", Description: "Who are you?"}},
			uip.Response{Input: "Ada"}, []string{
				`"questions":[{"question":"Who are you?","header":"Name","options":[],"multiSelect":false}]`,
				`"answers":{"Who are you?":"Ada"}`,
			}},
		{"several at once", uip.Request{Kind: uip.KindComposite, Purpose: uip.PurposeRequestInfo,
			Display: uip.Display{Title: "2 questions", Content: display.Code{Lang: "json", Source: `[{"question":"a"},{"question":"b"}]`}}},
			uip.Response{Input: `{"a":"1","b":"2"}`}, []string{`"questions":[{"question":"a"},{"question":"b"}]`, `"answers":{"a":"1","b":"2"}`}},
		{"the way out of plan mode", uip.Request{Kind: uip.KindSelect, Purpose: uip.PurposeChooseStrategy, Options: ways,
			Display: uip.Display{Title: "Go?", Content: display.Text("the plan"), Metadata: map[string]string{"planFilePath": ".coder/plans/1.md"}}},
			uip.Response{Option: "clearContextAndStart"}, []string{
				`{"event":"plan:exit:request","data":{"agentId":"main","planFilePath":".coder/plans/1.md","planContent":"the plan","options":{"clearContextAndStart":"Clear","startEditing":"Start"}}}`,
				`{"event":"plan:exit:response","data":{"agentId":"main","selected":"clearContextAndStart"}}`,
				`{"event":"plan:implement","data":{"planFilePath":".coder/plans/1.md","planContent":"the plan"}}`,
			}},
	} {
		got := ask(tc.q, tc.a)
		for _, want := range tc.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %s in\n%s", tc.name, want, got)
			}
		}
	}
}

// The answer to a question of an earlier run is told as far as it tells itself.
func TestSemaLateAnswer(t *testing.T) {
	got := sema(t, on("t1",
		event.InteractionResponded{Response: uip.Response{ID: "old", Option: uip.OptionApprove}},
		event.InteractionResponded{Response: uip.Response{ID: "older", Input: "Ada"}}))
	expect(t, got, "tool:permission:response")
}

func TestSemaErrors(t *testing.T) {
	for code, want := range map[string]string{
		"context_length_exceeded": "context_length_exceeded context_length_exceeded",
		"model_not_found":         "model_error model_not_found",
		"rate_limited":            "api_error rate_limited",
		"":                        "fatal_error task_failed",
	} {
		got := sema(t, on("t1", event.TaskFailed{Reason: "why", Code: code}))[0]
		if s := fmt.Sprint(got.Data.Type, " ", got.Data.Error.Code); s != want {
			t.Errorf("%q is told as %s, want %s", code, s, want)
		}
	}
}

// Every call is told to have ended exactly once, whichever record comes first.
func TestSemaToolEndsOnce(t *testing.T) {
	call := chat.ToolCall{ID: "c1", Name: "read", Args: json.RawMessage(`{}`)}
	reply := event.MessageAdded{Message: chat.Message{Role: chat.Assistant, Parts: []chat.Part{call}}}
	seen := event.ToolFinished{CallID: "c1", Tool: "read"}
	kept := event.ToolCallCompleted{CallID: "c1", Tool: "read"}
	told := event.MessageAdded{Message: chat.ToolMessage(chat.ToolResult{CallID: "c1", Name: "read"})}
	for _, es := range [][]event.Event{{seen, kept, told}, {kept, seen, told}, {kept, told}, {seen, told}, {kept, told, seen}} {
		const once = "complete conversation:usage tool:execution:complete"
		expect(t, sema(t, on("t1", reply), on("t1", es...)), once)
		again := sema(t, on("t1", reply), on("t1", es...), on("t1", reply), on("t1", es...)) // the same id
		expect(t, again, once+" "+once)
	}
}

func TestSemaSaysWhyACallFailedThatShowedNothing(t *testing.T) {
	for _, b := range []display.Block{nil, display.Text(""), display.Code{}} {
		e := event.ToolFinished{CallID: "c", Tool: "bash", Failed: true, Content: b, Result: chat.ToolResult{CallID: "c", Text: `{"ok":false,"error":"cancelled: the user interrupted"}`}}
		got := sema(t, on("t1", event.TaskCreated{TaskID: "t1"}, event.TaskStarted{}, e))
		last := got[len(got)-1]
		if last.Event != "tool:execution:error" || last.Data.Content != "cancelled: the user interrupted" {
			t.Errorf("%T: %s", b, last.Raw)
		}
	}
}

package rendertest

import (
	"encoding/json"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/uip"
)

// Session is the id of the session in [Story].
const Session = "sess_1"

// Story is a session of three turns. The first has a retry, two reads side by
// side, a call that is approved and fails, one that is refused, one to a tool
// that does not exist, and a subtask; the second is interrupted while the model
// speaks; the third fails for good.
func Story() []event.Record {
	s := &script{now: start}
	s.add(event.SessionOpened{
		Dir: "/home/ada/proj", Model: "gpt-x", Mode: "build",
		Tools: []string{"bash", "read", "task", "write"}, MaxTokens: 128000,
	})
	s.add(event.LocalAdded{Input: "/help", Output: "commands: …"})
	answered(s)
	interrupted(s)
	failed(s)
	return s.rs
}

func answered(s *script) {
	s.begin("t1", "Fix the tests & say <why>")
	s.add(event.Notice{Level: event.LevelWarn, Text: "AGENTS.md is longer than 32 KiB;\nthe rest was left out"})
	s.add(event.ReasoningDelta{Text: "void thought"}, event.TextDelta{Text: "void"})
	s.add(event.Retrying{Attempt: 2, MaxAttempts: 5, Wait: 2 * time.Second, Reason: "rate limited"})
	reads(s)
	changes(s)
	subtask(s)
	s.add(event.TextDelta{Text: "All \"green\""}, event.TextDelta{Text: " now: 世界\u2028\n"})
	s.reply(chat.Usage{In: 900, Out: 9, Cached: 512}, chat.Text("All \"green\" now: 世界\u2028\n"))
	s.add(event.ContextUsed{Used: 909, Max: 128000, Prompt: 900})
	s.add(event.TaskCompleted{TaskID: s.task, Summary: "All green", Author: "main"})
	s.add(event.StateChanged{Busy: false})
}

func reads(s *script) {
	s.add(event.ReasoningDelta{Text: "I should look "}, event.ReasoningDelta{Text: "first.\n"})
	s.add(event.TextDelta{Text: "Let me "}, event.TextDelta{Text: "look."})
	a := call("call_a", "read", `{"path":"main.go"}`)
	b := call("call_b", "read", `{"path":"no\u001b[31mpe.go"}`)
	s.reply(chat.Usage{In: 400, Out: 30, Reasoning: 12, Cost: 0.01},
		chat.Reasoning{Text: "I should look first.\n", Field: "reasoning"}, chat.Text("Let me look."), a, b)
	s.add(event.ContextUsed{Used: 430, Max: 128000, Prompt: 400})
	s.request(a, true)
	s.request(b, true)
	s.add(event.ToolStarted{CallID: "call_a", Tool: "read", Title: "main.go"})
	s.add(event.ToolStarted{CallID: "call_b", Tool: "read", Title: "no\x1b[31mpe.go"})
	s.complete(b, `{"ok":false,"error":"no such file"}`, true, 2)
	s.complete(a, `{"ok":true,"content":"package main"}`, false, 3)
	ra := s.finish(a, event.ToolFinished{
		Title: "main.go", Summary: "12 lines", Content: display.Code{Lang: "go", Source: "package main"},
		Result: chat.ToolResult{Text: `{"ok":true,"content":"package main"}`}, Duration: 3 * time.Millisecond,
	})
	rb := s.finish(b, event.ToolFinished{
		Title: "no\x1b[31mpe.go", Result: chat.ToolResult{Text: `{"ok":false,"error":"no such file"}`, Failed: true},
		Failed: true, Duration: 2 * time.Millisecond,
	})
	s.say(chat.ToolMessage(ra))
	s.say(chat.ToolMessage(rb))
}

func changes(s *script) {
	test := call("call_c", "bash", `{"command":"go test ./..."}`)
	write := call("call_d", "write", `{"path":"a.txt","content":"x"}`)
	odd := call("call_e", "nope", `{}`)
	s.reply(chat.Usage{In: 600, Out: 40, Cost: 0.02}, test, write, odd)
	s.add(event.ContextUsed{Used: 640, Max: 128000, Prompt: 600})
	s.ask("ui_1", "call_c", "bash", "Run go test ./...?", display.Code{Lang: "sh", Source: "go test ./..."},
		uip.OptionAlways)
	s.request(test, false)
	s.add(event.ToolStarted{CallID: "call_c", Tool: "bash", Title: "go test ./..."})
	s.add(event.ToolOutput{CallID: "call_c", Text: "--- FAIL: Test\x1b[0mX\nFA"},
		event.ToolOutput{CallID: "call_c", Text: "IL\nexit"})
	s.complete(test, `{"ok":false,"exit_code":1}`, true, 1234)
	rt := s.finish(test, event.ToolFinished{
		Title: "go test ./...", Summary: "exit 1", Content: display.Text("--- FAIL: TestX"),
		Result: chat.ToolResult{Text: `{"ok":false,"exit_code":1}`, Failed: true}, Failed: true,
		Duration: 1234 * time.Millisecond,
	})
	s.ask("ui_2", "call_d", "write", "Write a.txt?", display.Diff{Unified: "--- a.txt\n+++ a.txt\n@@ -0,0 +1 @@\n+x\n",
		Added: 1}, uip.OptionReject)
	s.request(write, false)
	s.complete(write, `{"ok":false,"error":"refused by the person","denied":true}`, true, 0)
	rw := s.finish(write, event.ToolFinished{
		Title:  "a.txt",
		Result: chat.ToolResult{Text: `{"ok":false,"error":"refused by the person","denied":true}`, Failed: true},
		Failed: true, Denied: true,
	})
	s.request(odd, false)
	s.complete(odd, `{"ok":false,"error":"there is no tool named nope"}`, true, 0)
	ro := s.finish(odd, event.ToolFinished{
		Result: chat.ToolResult{Text: `{"ok":false,"error":"there is no tool named nope"}`, Failed: true}, Failed: true,
	})
	s.say(chat.ToolMessage(rt))
	s.say(chat.ToolMessage(rw))
	s.say(chat.ToolMessage(ro))
}

func subtask(s *script) {
	c := call("call_f", "task", `{"agent":"explore","objective":"find callers"}`)
	s.reply(chat.Usage{In: 800, Out: 20}, c)
	s.add(event.ContextUsed{Used: 820, Max: 128000, Prompt: 800})
	s.request(c, false)
	s.add(event.ToolStarted{CallID: "call_f", Tool: "task", Title: "explore: find callers"})

	parent := s.task
	s.task = "t2"
	s.add(event.TaskCreated{
		TaskID: "t2", Title: "find callers", Intent: "find callers of Foo", Priority: event.PriorityNormal,
		AgentID: "explore", ParentID: parent, Author: "main",
	})
	s.add(event.TaskStarted{TaskID: "t2", AgentID: "explore", Author: "main"})
	s.say(chat.TextMessage(chat.User, "find callers of Foo"))
	s.add(event.TextDelta{Text: "none found"})
	s.reply(chat.Usage{In: 50, Out: 2}, chat.Text("none found"))
	s.add(event.ContextUsed{Used: 52, Max: 128000, Prompt: 50})
	s.add(event.TaskCompleted{TaskID: "t2", Summary: "none found", Author: "explore"})
	s.task = parent

	s.complete(c, `{"ok":true,"summary":"none found"}`, false, 70)
	s.say(chat.ToolMessage(s.finish(c, event.ToolFinished{
		Title: "explore: find callers", Summary: "done", Content: display.Table{Header: display.DataCells("file", "line"),
			Rows: [][]display.Cell{display.DataCells("a.go", "1")}},
		Result: chat.ToolResult{Text: `{"ok":true,"summary":"none found"}`}, Duration: 70 * time.Millisecond,
	})))
}

func interrupted(s *script) {
	s.begin("t3", "And now?")
	s.add(event.TextDelta{Text: "Half an ans"})
	s.add(event.MessageAdded{Message: chat.TextMessage(chat.Assistant, "Half an ans"), Interrupted: true, Model: "gpt-x"})
	s.say(chat.TextMessage(chat.User, "[Request interrupted by user]"))
	s.add(event.Interrupted{Text: "[Request interrupted by user]"})
	s.add(event.TaskCanceled{TaskID: s.task, Reason: "interrupted", Author: "user"})
	s.add(event.StateChanged{Busy: false})
}

func failed(s *script) {
	s.begin("t4", "Again")
	s.add(event.TodosChanged{Todos: []event.Todo{
		{ID: "1", Content: "read it", Status: event.TodoCompleted},
		{ID: "2", Content: "mend it", Status: event.TodoInProgress},
	}})
	s.add(event.TaskFailed{TaskID: s.task, Reason: "ask gpt-x: quota used up: no credit left", Code: "quota_exceeded",
		Author: "main"})
	s.add(event.StateChanged{Busy: false})
}

func (s *script) begin(task, intent string) {
	s.task = task
	s.add(event.TaskCreated{
		TaskID: task, Title: intent, Intent: intent, Priority: event.PriorityForeground, AgentID: "main", Author: "user",
	})
	s.add(event.TaskStarted{TaskID: task, AgentID: "main", Author: "main"})
	s.add(event.StateChanged{Busy: true})
	s.add(event.MessageAdded{Message: chat.TextMessage(chat.User, intent), Reminders: "<reminder>be brief</reminder>"})
}

func (s *script) say(m chat.Message) { s.add(event.MessageAdded{Message: m}) }

func (s *script) reply(u chat.Usage, parts ...chat.Part) {
	m := chat.Message{Role: chat.Assistant, Parts: parts}
	stop := "end"
	if len(m.Calls()) > 0 {
		stop = "tools"
	}
	s.add(event.MessageAdded{Message: m, Model: "gpt-x", Usage: &u, StopReason: stop})
}

func (s *script) request(c chat.ToolCall, readOnly bool) {
	s.add(event.ToolCallRequested{
		CallID: c.ID, Tool: c.Name, Author: "main", TaskID: s.task, Input: c.Args, Timestamp: s.now.UnixMilli(),
		Effects: []event.Effect{{Kind: event.EffectRead, Target: "x"}}, ReadOnly: readOnly, Verdict: "allow",
		DecidedBy: "rules",
	})
}

func (s *script) complete(c chat.ToolCall, output string, failed bool, ms int64) {
	s.add(event.ToolCallCompleted{
		CallID: c.ID, Tool: c.Name, Author: "main", TaskID: s.task, Output: json.RawMessage(output),
		IsError: failed, DurationMs: ms, Timestamp: s.now.UnixMilli(),
	})
}

func (s *script) finish(c chat.ToolCall, f event.ToolFinished) chat.ToolResult {
	f.CallID, f.Tool, f.Result.CallID, f.Result.Name = c.ID, c.Name, c.ID, c.Name
	s.add(f)
	return f.Result
}

func (s *script) ask(id, callID, tool, title string, content display.Block, answer string) {
	s.add(event.InteractionRequested{Request: uip.Request{
		ID: id, TaskID: s.task, Author: "main", Kind: uip.KindConfirm, Purpose: uip.PurposeConfirmRiskyAction,
		Display: uip.Display{Title: title, Content: content, Metadata: map[string]string{"toolCallId": callID}},
		Options: []uip.Option{
			{ID: uip.OptionApprove, Label: "Allow once", Style: uip.StyleDanger},
			{ID: uip.OptionAlways, Label: "Always allow " + tool},
			{ID: uip.OptionReject, Label: "Refuse", Style: uip.StylePlain, Default: true},
		},
	}})
	s.add(event.InteractionResponded{Response: uip.Response{ID: id, TaskID: s.task, Author: "user", Option: answer}})
}

func call(id, name, args string) chat.ToolCall {
	return chat.ToolCall{ID: id, Name: name, Args: json.RawMessage(args)}
}

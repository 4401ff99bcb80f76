package eventtest

import (
	"encoding/json"

	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/uip"
)

// Samples returns one of each durable event, with every field set to something
// that survives being written and read again. Callers may change it.
func Samples() []event.Event {
	return []event.Event{
		event.TaskCreated{TaskID: "t1", Title: "tidy", Intent: "tidy <up> & \"quote\"", Priority: event.PriorityForeground,
			AgentID: "main", ParentID: "t0", CallID: "call_0", Author: "user",
			Run: &event.RunOptions{Window: 9, ConfigFile: "/c.json", AllowedTools: "read", DisallowedTools: "bash",
				SystemPrompt: "s", AppendSystemPrompt: "a"}},
		event.TaskStarted{TaskID: "t1", AgentID: "main", Author: "main",
			Run: &event.RunOptions{Window: 9, ConfigFile: "/c.json", AllowedTools: "read", DisallowedTools: "bash",
				SystemPrompt: "s", AppendSystemPrompt: "a"}},
		event.TaskCompleted{TaskID: "t1", Summary: "tidied\nup", Author: "main"},
		event.TaskFailed{TaskID: "t1", Reason: "no words: 没有", Code: "rate_limited", ErrorText: "no words: 没有", Steps: 9,
			Author: "main"},
		event.TaskCanceled{TaskID: "t1", Reason: "Esc", Author: "user"},
		event.InteractionRequested{Request: uip.Request{
			ID: "ui_1", TaskID: "t1", Author: "main", Kind: uip.KindConfirm, Purpose: uip.PurposeConfirmRiskyAction,
			Display: uip.Display{
				Title: "Write a.txt?", Description: "asked by rule",
				Content:  display.Diff{Unified: "--- a\n+++ b\n@@ -1,2 +1,2 @@\n--- old\n+<new>\n same\n", Added: 1, Deleted: 1},
				Metadata: map[string]string{"toolCallId": "c1"},
			},
			Options: []uip.Option{{ID: uip.OptionApprove, Label: "Yes", Style: uip.StyleDanger, Default: true},
				{ID: uip.OptionReject, Label: "No", Style: uip.StylePlain}},
			Validation: &uip.Validation{Regex: "^x", Required: true, Description: "a word with x"},
			Digest:     "ab12",
			Parts: []uip.Request{{ID: "ui_1.1", TaskID: "t1", Author: "main", Kind: uip.KindInput,
				Purpose: uip.PurposeRequestInfo, Display: uip.Display{Title: "Why?"}}},
		}},
		event.InteractionResponded{Response: uip.Response{ID: "ui_1", TaskID: "t1", Author: "user", Option: uip.OptionReject,
			Input: "why?", Comment: "not now", Dismissed: true, Parts: []uip.Response{{ID: "ui_1.1", Option: uip.OptionApprove}},
			AnsweredBy: "stdin", Args: json.RawMessage(`{"command":"ls"}`), Stop: true}},
		event.ToolCallRequested{
			Title: "ls", CallID: "c1", Tool: "bash", Author: "main", TaskID: "t1",
			Input: json.RawMessage(`{"command":"ls > x && :"}`), Timestamp: 1700000000000,
			Effects: []event.Effect{{Kind: event.EffectExec, Target: "ls <x> & y"}}, Sandbox: "writes only below /w",
			KeysMissing: true, AutoAllowed: event.AllowanceRisks, ReadOnly: true, Verdict: "ask", Reasons: []string{"writes"},
			DecidedBy: "user",
			Before:    []event.FileState{file("a.txt"), {Path: "none"}}, Tree: "tree", Repository: "state",
		},
		event.ToolCallCompleted{
			CallID: "c1", Tool: "bash", Author: "main", TaskID: "t1", Summary: "exit 1",
			Output: json.RawMessage(`{"stdout":"\u0000"}`), IsError: true, OutcomeUnknown: true, DurationMs: 12,
			Timestamp: 1700000000012,
			Changes:   []event.FileChange{{Before: file("a.txt"), After: file("a.txt"), Doubt: event.DoubtOther}},
			SeenFiles: []event.FileState{file("a.txt")},
		},
		event.MessageAdded{
			Message: reply(), Reminders: "be brief", ReminderNames: []string{"todos"}, Interrupted: true, Model: "m",
			Usage:      &chat.Usage{In: 1, Out: 2, Cached: 3, Reasoning: 4, Cost: 0.5, CacheWritten: 5, Unpriced: true},
			StopReason: "stop", Window: 9, Tools: map[string]int{"read": 90},
			Request: &chat.SentRequest{Wire: "openai", Model: "m", Effort: "high", Head: "{", Tail: "}", CallsAsText: true,
				Size: 2, Checksum: 7},
			Blocks: display.Blocks{display.Shell{Command: "ls", HasRun: true, ExitCode: 1, DurationMs: 2, Truncated: true,
				Stdout: "a\n", Stderr: "<b", Error: "timed out"}},
		},
		event.Spent{Model: "m", Usage: chat.Usage{In: 1, Out: 2, Cached: 3, Reasoning: 4, Cost: 0.5, CacheWritten: 5,
			Unpriced: true}, Reason: event.UsageForSummary},
		event.LocalAdded{Input: "/help", Output: "no", Failed: true, Blocks: display.Blocks{
			display.Text("no"), display.Code{Lang: "sh", Source: "ls"}, display.Diff{Unified: "+a", Added: 1, Deleted: 2},
			display.Table{Header: display.TextCells("name"), Rows: [][]display.Cell{display.DataCells("a<")}, FirstWidth: 9},
			display.Checklist{{State: display.StateCompleted, Text: "tidy"}},
		}},
		event.ModeChanged{Mode: "plan", Preset: "plan"},
		event.ContextReplaced{Reason: event.ReplaceCompacted, Messages: []chat.Message{chat.TextMessage(chat.User, "so far")},
			Keep: 2, TokensBefore: 900, TokensAfter: 90, Description: "a summary stands for 7 messages", Window: 9},
		event.ContextRestored{Messages: 7},
		event.ContextRewound{ToSeq: 3, Messages: 4, Turns: 1, RedoableTurns: 2, IsUndo: true},
		event.TodosChanged{Todos: []event.Todo{{ID: "1", Content: "tidy", Status: event.TodoInProgress, Priority: "high"}}},
		event.Unknown{Log: event.LogDomain, Type: "TaskPaused", Version: 7,
			Payload: json.RawMessage(`{"taskId":"t1","why":["<",1.50,null]}`)},
		event.Unknown{Log: event.LogAudit, Type: "ToolCallRequested", Version: 2, Payload: json.RawMessage(`[]`)},
		event.Unknown{Log: event.LogConversation, Type: "Compacted", Version: 1, Payload: json.RawMessage(`"…"`)},
	}
}

func file(path string) event.FileState {
	return event.FileState{Path: path, Hash: "h", Mode: 0o644, Link: "b.txt", Size: 5, ContentLost: true}
}

func reply() chat.Message {
	return chat.Message{Role: chat.Assistant, Parts: []chat.Part{
		chat.Reasoning{Text: "hm", Field: "reasoning_content", Details: json.RawMessage(`[{"signature":"=="}]`)},
		chat.Text("I shall <run> it."),
		chat.Image{MediaType: "image/png", Data: []byte{0, 1, 2}},
		chat.ToolCall{ID: "c1", Name: "bash", Args: json.RawMessage(`{ "command": "ls" }`),
			Extra: json.RawMessage(`{"g":{"s":"x"}}`)},
		chat.ToolCall{ID: "c2", Name: "bash", Args: json.RawMessage(`{}`), Broken: `{"comm`},
	}}
}

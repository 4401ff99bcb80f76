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
		event.TaskCreated{TaskID: "t1", Title: "tidy", Intent: "tidy <up> & \"quote\"", Priority: event.Foreground, AgentID: "main", ParentID: "t0", CallID: "call_0", Author: "user", Run: &event.Run{Window: 9, Config: "/c.json", Allowed: "read", Disallowed: "bash", System: "s", Appended: "a"}},
		event.TaskStarted{TaskID: "t1", AgentID: "main", Author: "main", Run: &event.Run{Window: 9, Config: "/c.json", Allowed: "read", Disallowed: "bash", System: "s", Appended: "a"}},
		event.TaskCompleted{TaskID: "t1", Summary: "tidied\nup", Author: "main"},
		event.TaskFailed{TaskID: "t1", Reason: "no words: 没有", Code: "rate_limited", Says: "no words: 没有", Steps: 9, Author: "main"},
		event.TaskCanceled{TaskID: "t1", Reason: "Esc", Author: "user"},
		event.InteractionRequested{Request: uip.Request{
			ID: "ui_1", TaskID: "t1", Author: "main", Kind: uip.Confirm, Purpose: uip.ConfirmRiskyAction,
			Display: uip.Display{
				Title: "Write a.txt?", Description: "asked by rule",
				Content:  display.Diff{Unified: "--- a\n+++ b\n@@ -1,2 +1,2 @@\n--- old\n+<new>\n same\n", Added: 1, Deleted: 1},
				Metadata: map[string]string{"toolCallId": "c1"},
			},
			Options:    []uip.Option{{ID: uip.Approve, Label: "Yes", Style: uip.Danger, Default: true}, {ID: uip.Reject, Label: "No", Style: uip.Plain}},
			Validation: &uip.Validation{Regex: "^x", Required: true, Says: "a word with x"},
			Digest:     "ab12",
			Parts:      []uip.Request{{ID: "ui_1.1", TaskID: "t1", Author: "main", Kind: uip.Input, Purpose: uip.RequestInfo, Display: uip.Display{Title: "Why?"}}},
		}},
		event.InteractionResponded{Response: uip.Response{ID: "ui_1", TaskID: "t1", Author: "user", Option: uip.Reject, Input: "why?", Comment: "not now", Dismissed: true, Parts: []uip.Response{{ID: "ui_1.1", Option: uip.Approve}}, Via: "stdin", Args: json.RawMessage(`{"command":"ls"}`), Stop: true}},
		event.ToolCallRequested{
			Title: "ls", CallID: "c1", Tool: "bash", Author: "main", TaskID: "t1", Input: json.RawMessage(`{"command":"ls > x && :"}`), Timestamp: 1700000000000,
			Effects: []event.Effect{{Kind: event.EffectExec, Target: "ls <x> & y"}}, Confined: "writes only below /w", Keyless: true, Unasked: event.RisksUnasked, ReadOnly: true, Verdict: "ask", Reasons: []string{"writes"}, DecidedBy: "user",
			Before: []event.FileState{file("a.txt"), {Path: "none"}}, Tree: "tree", Repository: "state",
		},
		event.ToolCallCompleted{
			CallID: "c1", Tool: "bash", Author: "main", TaskID: "t1", Summary: "exit 1", Output: json.RawMessage(`{"stdout":"\u0000"}`), IsError: true, Unknown: true, DurationMs: 12, Timestamp: 1700000000012,
			Changes: []event.FileChange{{Before: file("a.txt"), After: file("a.txt"), Doubt: event.DoubtOther}}, Saw: []event.FileState{file("a.txt")},
		},
		event.MessageAdded{
			Message: reply(), Reminders: "be brief", Reminded: []string{"todos"}, Interrupted: true, Model: "m", Usage: &chat.Usage{In: 1, Out: 2, Cached: 3, Reasoning: 4, Cost: 0.5, Written: 5, Unpriced: true}, Stop: "stop", Window: 9, Tools: map[string]int{"read": 90},
			Sent:   &chat.Sent{Wire: "openai", Model: "m", Effort: "high", Head: "{", Tail: "}", AsText: true, Size: 2, Sum: 7},
			Blocks: display.Blocks{display.Shell{Command: "ls", Ran: true, Exit: 1, Millis: 2, Truncated: true, Stdout: "a\n", Stderr: "<b", Error: "timed out"}},
		},
		event.Spent{Model: "m", Usage: chat.Usage{In: 1, Out: 2, Cached: 3, Reasoning: 4, Cost: 0.5, Written: 5, Unpriced: true}, For: event.ForSummary},
		event.LocalAdded{Input: "/help", Output: "no", Failed: true, Blocks: display.Blocks{
			display.Text("no"), display.Code{Lang: "sh", Source: "ls"}, display.Diff{Unified: "+a", Added: 1, Deleted: 2},
			display.Table{Head: display.Words("name"), Rows: [][]display.Cell{display.Data("a<")}, First: 9},
			display.Checklist{{State: display.Completed, Text: "tidy"}},
		}},
		event.ModeChanged{Mode: "plan", Preset: "plan"},
		event.ContextReplaced{Reason: event.Compacted, Messages: []chat.Message{chat.Say(chat.User, "so far")}, Keep: 2, TokensBefore: 900, TokensAfter: 90, Done: "a summary stands for 7 messages", Window: 9},
		event.ContextRestored{Messages: 7},
		event.ContextRewound{To: 3, Messages: 4, Turns: 1, Undone: 2, Undo: true},
		event.TodosChanged{Todos: []event.Todo{{ID: "1", Content: "tidy", Status: event.TodoInProgress, Priority: "high"}}},
		event.Unknown{Log: event.Domain, Type: "TaskPaused", Version: 7, Payload: json.RawMessage(`{"taskId":"t1","why":["<",1.50,null]}`)},
		event.Unknown{Log: event.Audit, Type: "ToolCallRequested", Version: 2, Payload: json.RawMessage(`[]`)},
		event.Unknown{Log: event.Conversation, Type: "Compacted", Version: 1, Payload: json.RawMessage(`"…"`)},
	}
}

func file(path string) event.FileState {
	return event.FileState{Path: path, Hash: "h", Mode: 0o644, Link: "b.txt", Size: 5, Lost: true}
}

func reply() chat.Message {
	return chat.Message{Role: chat.Assistant, Parts: []chat.Part{
		chat.Reasoning{Text: "hm", Field: "reasoning_content", Details: json.RawMessage(`[{"signature":"=="}]`)},
		chat.Text("I shall <run> it."),
		chat.Image{MediaType: "image/png", Data: []byte{0, 1, 2}},
		chat.ToolCall{ID: "c1", Name: "bash", Args: json.RawMessage(`{ "command": "ls" }`), Extra: json.RawMessage(`{"g":{"s":"x"}}`)},
		chat.ToolCall{ID: "c2", Name: "bash", Args: json.RawMessage(`{}`), Broken: `{"comm`},
	}}
}

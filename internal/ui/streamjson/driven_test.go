package streamjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/ui/streamjson"
)

func drivenOptions() streamjson.Options {
	return streamjson.Options{Session: "s", Driver: &streamjson.DriverOptions{
		ConvertCall: func(name string, args json.RawMessage) (string, json.RawMessage) {
			return strings.ToUpper(name[:1]) + name[1:], args
		},
		ConvertMode: func(name string) string { return "their " + name },
		SessionInfo: func() streamjson.SessionInfo {
			return streamjson.SessionInfo{Model: "m", Mode: "build", Tools: []string{"bash"}, Version: "1"}
		},
	}}
}

// TestNoLineIsLongerThanProgramsTake: a message is cut, and says so; what asks for
// a decision is not sent at all.
func TestNoLineIsLongerThanProgramsTake(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	huge := strings.Repeat("ä\n", 1<<20)
	many := make([]chat.Part, 0, 20000)
	for range 20000 {
		many = append(many, chat.ToolCall{ID: "c", Name: "bash", Args: json.RawMessage(`{"command":"` + strings.Repeat("x", 100) + `"}`)})
	}
	for name, m := range map[string]chat.Message{
		"text":      {Role: chat.Assistant, Parts: []chat.Part{chat.Text(huge)}},
		"thinking":  {Role: chat.Assistant, Parts: []chat.Part{chat.Reasoning{Text: huge}}},
		"a call":    {Role: chat.Assistant, Parts: []chat.Part{chat.ToolCall{ID: "c", Name: "write", Args: json.RawMessage(`{"content":"` + strings.Repeat("x", 3<<20) + `"}`)}}},
		"a result":  {Role: chat.Tool, Parts: []chat.Part{chat.ToolResult{CallID: "c", Text: huge}}},
		"two texts": {Role: chat.Assistant, Parts: []chat.Part{chat.Text(huge), chat.Text(huge)}},
	} {
		var out bytes.Buffer
		r := streamjson.New(&out, drivenOptions())
		if err := r.Emit(t.Context(), event.Record{Seq: 1, Session: "s", Event: event.MessageAdded{Message: m}}); err != nil {
			t.Fatal(err)
		}
		if out.Len() > 1<<20 || !json.Valid(out.Bytes()) || !strings.Contains(out.String(), "[cut: ") {
			t.Errorf("%s: %d bytes, %.200s", name, out.Len(), out.String())
		}
	}
	var out bytes.Buffer
	r := streamjson.New(&out, drivenOptions())
	if err := r.WriteLine(map[string]string{"input": huge}); !errors.Is(err, streamjson.ErrTooLong) || out.Len() != 0 {
		t.Errorf("a request: %v, %d bytes", err, out.Len())
	}
	err := r.Emit(t.Context(), event.Record{Seq: 2, Session: "s", Event: event.MessageAdded{Message: chat.Message{Role: chat.Assistant, Parts: many}}})
	if out.Len() > 1<<20 || err == nil && out.Len() == 0 {
		t.Errorf("many calls: %d bytes, %v", out.Len(), err)
	}
}

func TestAProgramThatDrivesIsToldInItsOwnWords(t *testing.T) {
	var out bytes.Buffer
	r := streamjson.New(&out, drivenOptions())
	said := func(role chat.Role, parts ...chat.Part) event.Record {
		added := event.MessageAdded{Message: chat.Message{Role: role, Parts: parts}}
		if role == chat.Assistant {
			added.Model, added.Usage = "m", &chat.Usage{In: 5, Out: 2}
		}
		return event.Record{Seq: 1, Session: "s", Event: added}
	}
	if err := errors.Join(
		r.Emit(t.Context(), event.Record{Session: "s", Event: event.SessionOpened{Dir: "/w"}}), r.Begin(),
		r.Emit(t.Context(), said(chat.User, chat.Text("mine"))),
		r.Emit(t.Context(), said(chat.Assistant, chat.Reasoning{Text: "hm"}, chat.ToolCall{ID: "c", Name: "bash"})),
		r.Emit(t.Context(), said(chat.Tool, chat.ToolResult{CallID: "c", Text: `{"ok":true,"exit_code":0}`})),
		r.Emit(t.Context(), said(chat.Tool, chat.ToolResult{CallID: "c", Text: "{ no JSON"})),
		r.Emit(t.Context(), event.Record{Seq: 1, Session: "s", Event: event.Spent{Model: "m", Usage: chat.Usage{In: 2, Out: 1}, Reason: event.UsageForSummary}}),
		r.ReportMode("plan"), r.Finish(t.Context(), streamjson.Outcome{Err: errors.New("down"), Provider: true, Structured: json.RawMessage(`{"n":1}`)}),
	); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, want := range [][]string{
		{`"subtype":"init"`, `"cwd":"/w"`, `"tools":["Bash"]`, `"permissionMode":"their build"`, `"mcp_servers":[]`, `"claude_code_version":"2.`, `"coder_version":"1"`},
		{`"type":"assistant"`, `"thinking":"hm","signature":""`, `"name":"Bash"`},
		{`"type":"user"`, `"is_error":false}]}`, `"tool_use_result":{"ok":true,"exit_code":0}`},
		{`"type":"user"`, `"parent_tool_use_id":null}`},
		{`"subtype":"status"`, `"permissionMode":"their plan"`},
		{`"subtype":"success","is_error":true`, `"result":"down"`, `"structured_output":{"n":1}`, `"modelUsage":{"m":{"inputTokens":7,"outputTokens":3`},
	} {
		for _, w := range want {
			if i >= len(lines) || !strings.Contains(lines[i], w) {
				t.Errorf("line %d has no %s:\n%s", i+1, w, out.String())
			}
		}
	}
	if strings.Contains(out.String(), "mine") {
		t.Error("the program is told what it said")
	}
}

// TestATurnLastsFromItsBeginning: what a program changed before it is no part of it.
func TestATurnLastsFromItsBeginning(t *testing.T) {
	o := drivenOptions()
	start := time.Unix(1_700_000_000, 0)
	o.Now = func() time.Time { return start.Add(11 * time.Second) }
	var out bytes.Buffer
	r := streamjson.New(&out, o)
	for _, step := range []error{
		r.Emit(t.Context(), event.Record{Seq: 1, Time: start, Session: "s", Event: event.ModeChanged{Mode: "plan"}}),
		r.Begin(),
		r.Emit(t.Context(), event.Record{Seq: 2, Time: start.Add(10 * time.Second), Session: "s", Event: event.MessageAdded{Message: chat.Message{Role: chat.User}}}),
		r.Finish(t.Context(), streamjson.Outcome{}),
	} {
		if step != nil {
			t.Fatal(step)
		}
	}
	if !strings.Contains(out.String(), `"duration_ms":1000,`) {
		t.Error(out.String())
	}
}

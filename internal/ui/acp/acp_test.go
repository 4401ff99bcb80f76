package acp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/ui/acp"
)

// editor answers every request by what answer returns: a result, or with a "!"
// before it an error.
type editor struct {
	*acp.Conn
	sent   []acp.Message
	answer func(method string, params map[string]any) string
}

func newEditor(t *testing.T, answer func(method string, params map[string]any) string) *editor {
	t.Helper()
	e := &editor{answer: answer}
	e.Conn = acp.NewConn(writer(func(line []byte) error {
		var m acp.Message
		if err := json.Unmarshal(line, &m); err != nil {
			return err
		}
		e.sent = append(e.sent, m)
		if m.IsRequest() {
			var params map[string]any
			if err := json.Unmarshal(m.Params, &params); err != nil {
				return err
			}
			back := acp.Message{ID: m.ID}
			if text, failed := strings.CutPrefix(answer(m.Method, params), "!"); failed {
				back.Error = &acp.Error{Code: acp.CodeInternal, Message: text}
			} else {
				back.Result = json.RawMessage(text)
			}
			e.HandleResponse(back)
		}
		return nil
	}))
	return e
}

type writer func([]byte) error

func (w writer) Write(p []byte) (int, error) { return len(p), w(p) }

// updates are what the editor was told, without the session.
func (e *editor) updates(t *testing.T) (all []string) {
	t.Helper()
	for _, m := range e.sent {
		var p struct{ Update json.RawMessage }
		if m.Method != "session/update" {
			continue
		}
		if err := json.Unmarshal(m.Params, &p); err != nil {
			t.Fatal(err)
		}
		all = append(all, string(p.Update))
	}
	return all
}

func TestWhatHappensIsToldAsItHappens(t *testing.T) {
	e := newEditor(t, nil)
	f := &acp.Sink{Conn: e.Conn, Session: "s", Root: "/w"}
	call := chat.ToolCall{ID: "c1", Name: "edit", Args: json.RawMessage(`{"path":"a.txt"}`)}
	diff := display.Diff{Unified: "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-old\n+new\n three\n"}
	story := []struct {
		task string
		event.Event
	}{
		{"t", event.ReasoningDelta{Text: "hm"}},
		{"t", event.TextDelta{Text: "I "}},
		{"t", event.TextDelta{Text: "will"}},
		{"t", event.MessageAdded{Message: chat.Message{Role: chat.Assistant, Parts: []chat.Part{chat.Text("I will"), call}}}},
		{"t", event.ToolCallRequested{CallID: "c1", Tool: "edit", Effects: []event.Effect{{Kind: event.EffectWrite, Target: "a.txt"}, {Kind: event.EffectExec, Target: "ls"}}}},
		{"t", event.ToolStarted{CallID: "c1", Tool: "edit", Title: "a.txt"}},
		{"t", event.ToolFinished{CallID: "c1", Tool: "edit", Title: "a.txt", Content: diff, Result: chat.ToolResult{CallID: "c1", Text: `{"ok":true}`}}},
		{"t", event.ToolFinished{CallID: "c2", Tool: "bash", Denied: true, Result: chat.ToolResult{CallID: "c2", Text: `{"ok":false,"error":"denied: no"}`}}},
		{"t", event.TodosChanged{Todos: []event.Todo{{Content: "do", Status: event.TodoPending}}}},
		{"t", event.TodosChanged{}},
		{"t", event.ModeChanged{Mode: "plan"}},
		{"sub", event.TaskCreated{TaskID: "sub", ParentID: "t"}},
		{"sub", event.TextDelta{Text: "for the other agent"}},
		{"t", event.MessageAdded{Message: chat.TextMessage(chat.User, "mine")}},
		{"t", event.MessageAdded{Message: chat.TextMessage(chat.Assistant, "not streamed")}},
		{"t", event.LocalAdded{Input: "/x", Output: "said"}},
	}
	for _, s := range story {
		if err := f.Emit(t.Context(), event.Record{Session: "s", Task: s.task, Event: s.Event}); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}`,
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"I "}}`,
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"will"}}`,
		`{"sessionUpdate":"tool_call","toolCallId":"c1","title":"edit","kind":"edit","status":"pending","rawInput":{"path":"a.txt"}}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"c1","locations":[{"path":"/w/a.txt"}]}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"c1","title":"edit a.txt","kind":"edit","status":"in_progress"}`,
		`{"sessionUpdate":"tool_call_update","content":[{"type":"diff","path":"/w/a.txt","oldText":"one\nold\nthree\n","newText":"one\nnew\nthree\n"}],"toolCallId":"c1","title":"edit a.txt","kind":"edit","status":"completed","rawOutput":{"ok":true}}`,
		`{"sessionUpdate":"tool_call","content":[{"type":"content","content":{"type":"text","text":"denied: no"}}],"toolCallId":"c2","title":"bash","kind":"execute","status":"failed","rawOutput":{"ok":false,"error":"denied: no"}}`,
		`{"entries":[{"content":"do","priority":"medium","status":"pending"}],"sessionUpdate":"plan"}`,
		`{"entries":[],"sessionUpdate":"plan"}`,
		`{"sessionUpdate":"current_mode_update","currentModeId":"plan"}`,
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"not streamed"}}`,
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"said"}}`,
	}
	if got := e.updates(t); !reflect.DeepEqual(got, want) {
		t.Errorf("told:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAConversationIsToldAgain(t *testing.T) {
	e := newEditor(t, nil)
	f := &acp.Sink{Conn: e.Conn, Session: "s", Root: "/w", Replay: true}
	for _, m := range []chat.Message{
		chat.TextMessage(chat.System, "secret"), {Role: chat.User, Parts: []chat.Part{chat.Text("go"), chat.Image{MediaType: "image/png", Data: []byte("px")}}}, chat.TextMessage(chat.User, event.InterruptionPrefix+"]"),
		{Role: chat.Assistant, Parts: []chat.Part{chat.ToolCall{ID: "c", Name: "read"}}}, chat.ToolMessage(chat.ToolResult{CallID: "c", Text: "text", Failed: true}),
		chat.TextMessage(chat.Assistant, "done"),
	} {
		if err := f.Emit(t.Context(), event.Record{Actor: event.ActorUser, Event: event.MessageAdded{Message: m}}); err != nil {
			t.Fatal(err)
		}
	}
	got := strings.Join(e.updates(t), "\n")
	if strings.Contains(got, "interrupted") {
		t.Errorf("the person is said to have said that they interrupted it:\n%s", got)
	}
	for _, want := range []string{`"user_message_chunk","content":{"type":"text","text":"go"}`, `"user_message_chunk","content":{"type":"image","data":"cHg=","mimeType":"image/png"}`, `"tool_call","toolCallId":"c"`, `"status":"failed"`, `"agent_message_chunk"`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if strings.Contains(got, "secret") {
		t.Error("the system text is told")
	}
}

func TestDiffsAreToldChangeByChange(t *testing.T) {
	for name, tt := range map[string]struct{ diff, want string }{
		"a new file":       {"--- /dev/null\n+++ b/n\n@@ -0,0 +1,1 @@\n+x\n\\ No newline at end of file\n", `{"type":"diff","path":"/w/n","newText":"x"}`},
		"a file gone":      {"--- a/g\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n", `{"type":"diff","path":"/w/g","oldText":"x\n","newText":""}`},
		"two places":       {"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n@@ -9 +9 @@\n-c\n+d\n", `{"type":"diff","path":"/w/f","oldText":"a\n","newText":"b\n"},{"type":"diff","path":"/w/f","oldText":"c\n","newText":"d\n"}`},
		"two files":        {"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n--- a/g\n+++ b/g\n@@ -1,2 +1 @@\n same\n-c\n", `{"type":"diff","path":"/w/f","oldText":"a\n","newText":"b\n"},{"type":"diff","path":"/w/g","oldText":"same\nc\n","newText":"same\n"}`},
		"cut off":          {"--- a/f\n+++ b/f\n@@ -1,9 +1,9 @@\n-a\n+b\n", `{"type":"diff","path":"/w/f","oldText":"a\n","newText":"b\n"}`},
		"dashes in it":     {"--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n--- old\n+++ new\n same\n", `{"type":"diff","path":"/w/f","oldText":"-- old\nsame\n","newText":"++ new\nsame\n"}`},
		"no line at first": {"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n", `{"type":"diff","path":"/w/f","oldText":"a","newText":"b\n"}`},
	} {
		e := newEditor(t, nil)
		f := &acp.Sink{Conn: e.Conn, Session: "s", Root: "/w"}
		done := event.ToolFinished{CallID: "c", Tool: "edit", Content: display.Diff{Unified: tt.diff}}
		if err := f.Emit(t.Context(), event.Record{Event: done}); err != nil {
			t.Fatal(err)
		}
		if got := e.updates(t)[0]; !strings.Contains(got, `"content":[`+tt.want+`]`) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func confirm() uip.Request {
	return uip.Request{
		ID: "q", Kind: uip.KindConfirm, Purpose: uip.PurposeConfirmRiskyAction, Args: json.RawMessage(`{"command":"ls"}`),
		Display: uip.Display{Title: "bash ls", Description: "why", Content: display.Code{Lang: "sh", Source: "ls"}, Metadata: map[string]string{"toolCallId": "c", "toolName": "bash"}},
		Options: []uip.Option{{ID: uip.OptionApprove, Label: "Yes"}, {ID: uip.OptionAlways, Label: "Always"}, {ID: uip.OptionReject, Label: "No"}},
	}
}

func TestWhatAnEditorSaysAboutACall(t *testing.T) {
	for answer, want := range map[string]uip.Response{
		`{"outcome":{"outcome":"selected","optionId":"approve"}}`: {Option: uip.OptionApprove},
		`{"outcome":{"outcome":"selected","optionId":"always"}}`:  {Option: uip.OptionAlways},
		`{"outcome":{"outcome":"selected","optionId":"reject"}}`:  {Option: uip.OptionReject},
		`{"outcome":{"outcome":"cancelled"}}`:                     {Option: uip.OptionReject, Stop: true},
		`{}`:                                                      {Option: uip.OptionReject, Stop: true},
		`!cannot ask`:                                             {Option: uip.OptionReject, Comment: "cannot ask"},
	} {
		e := newEditor(t, func(method string, params map[string]any) string {
			options := params["options"].([]any)
			first := options[0].(map[string]any)
			if method != "session/request_permission" || params["sessionId"] != "s" || first["kind"] != "allow_once" || len(options) != 3 {
				t.Errorf("asked %s %v", method, params)
			}
			return answer
		})
		a, err := (&acp.Sink{Conn: e.Conn, Session: "s", Root: "/w"}).Interactor().Ask(t.Context(), confirm())
		if err != nil || a.Option != want.Option || a.Stop != want.Stop || a.Comment != want.Comment || a.AnsweredBy != "acp" || a.Author != "user" {
			t.Errorf("%s: %+v, %v", answer, a, err)
		}
	}
	e := newEditor(t, func(string, map[string]any) string {
		return `{"outcome":{"outcome":"selected","optionId":"whatever"}}`
	})
	if a, err := (&acp.Sink{Conn: e.Conn}).Interactor().Ask(t.Context(), confirm()); err == nil && uip.CheckResponse(confirm(), a) == nil {
		t.Errorf("an option that was not offered is taken: %+v", a)
	}
}

func TestQuestionsAreChoices(t *testing.T) {
	colour := uip.Request{ID: "q.1", Kind: uip.KindSelect, Purpose: uip.PurposeChooseStrategy, Display: uip.Display{Title: "Which?"}, Options: []uip.Option{{ID: "r", Label: "Red"}, {ID: "b", Label: "Blue"}}}
	shape := colour
	shape.ID = "q.2"
	both := uip.Request{ID: "q", Kind: uip.KindComposite, Purpose: uip.PurposeRequestInfo, Parts: []uip.Request{colour, shape}, Display: uip.Display{Metadata: map[string]string{"toolCallId": "c"}}}
	choice := "b"
	e := newEditor(t, func(string, map[string]any) string {
		return `{"outcome":{"outcome":"selected","optionId":"` + choice + `"}}`
	})
	person := (&acp.Sink{Conn: e.Conn, Session: "s"}).Interactor()
	if a, err := person.Ask(t.Context(), both); err != nil || uip.CheckResponse(both, a) != nil || a.PartAnswer(colour).Option != "b" || a.PartAnswer(shape).Option != "b" {
		t.Errorf("%+v, %v", a, err)
	}
	choice = "dismiss"
	if a, err := person.Ask(t.Context(), both); err != nil || !a.Dismissed {
		t.Errorf("%+v, %v", a, err)
	}
	words := uip.Request{ID: "w", Kind: uip.KindInput, Purpose: uip.PurposeRequestInfo, Display: uip.Display{Title: "Name?"}}
	if a, err := person.Ask(t.Context(), words); err != nil || !a.Dismissed {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestAnEditorThatIsGoneAllowsNothing(t *testing.T) {
	c := acp.NewConn(io.Discard)
	c.Close()
	if a, err := (&acp.Sink{Conn: c}).Interactor().Ask(t.Context(), confirm()); err != nil || !a.IsUnanswered() || a.Option != uip.OptionReject {
		t.Errorf("%+v, %v", a, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (&acp.Sink{Conn: acp.NewConn(io.Discard)}).Interactor().Ask(ctx, confirm()); !errors.Is(err, context.Canceled) {
		t.Errorf("after a cancel: %v", err)
	}
}

func TestPrompts(t *testing.T) {
	for blocks, want := range map[string]string{
		`[{"type":"text","text":"look at "},{"type":"resource_link","uri":"file:///w/src/a.go","name":"a.go"}]`: "look at @src/a.go 0",
		`[{"type":"resource_link","uri":"file:///else/b","name":"b"}]`:                                          "@/else/b 0",
		`[{"type":"resource_link","uri":"file:///w/my%20file","name":"b"}]`:                                     `@"my file" 0`,
		`[{"type":"resource_link","uri":"https://x.org/y","name":"y"}]`:                                         "https://x.org/y 0",
		`[{"type":"resource","resource":{"uri":"file:///w/a","text":"unsaved"}}]`:                               "<resource uri=\"file:///w/a\">\nunsaved\n</resource> 0",
		`[{"type":"text","text":"see"},{"type":"image","mimeType":"image/png","data":"AAAA"}]`:                  "see 1",
		`[{"type":"audio","data":"AAAA"}]`:                                                                      "error",
		`[{"type":"image","mimeType":"image/png","data":"!"}]`:                                                  "error",
		`[]`: "error",
	} {
		var p acp.Prompt
		if err := json.Unmarshal([]byte(`{"prompt":`+blocks+`}`), &p); err != nil {
			t.Fatal(err)
		}
		said, err := p.Input("/w")
		got := said.Text() + " " + string(rune('0'+len(said.Pictures)))
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%s: %q (%v), want %q", blocks, got, err, want)
		}
	}
}

func TestALinkStandsAloneInWhatIsSaid(t *testing.T) {
	link := func(path string) acp.Block { return acp.Block{Type: "resource_link", URI: "file:///w/" + path} }
	word := func(s string) acp.Block { return acp.Block{Type: "text", Text: s} }
	for want, blocks := range map[string][]acp.Block{
		"see @a.txt please":     {word("see"), link("a.txt"), word("please")},
		"see @a.txt, please":    {word("see "), link("a.txt"), word(", please")},
		"@a.txt @b.txt":         {link("a.txt"), link("b.txt")},
		"in\n@a.txt\nit says":   {word("in\n"), link("a.txt"), word("\nit says")},
		`what of @"my file" 变了`: {word("what of"), link("my%20file"), word("变了")},
	} {
		said, err := acp.Prompt{Blocks: blocks}.Input("/w")
		if err != nil || said.Text() != want {
			t.Errorf("%q, want %q, %v", said.Text(), want, err)
		}
	}
}

func TestOutputIsToldInEverLargerPieces(t *testing.T) {
	var out bytes.Buffer
	f := &acp.Sink{Conn: acp.NewConn(&out), Session: "s", Root: "/w"}
	ctx := t.Context()
	started := event.Record{Event: event.ToolStarted{CallID: "c", Tool: "bash", Title: "x"}}
	if err := f.Emit(ctx, started); err != nil {
		t.Fatal(err)
	}
	for range 20000 {
		if err := f.Emit(ctx, event.Record{Event: event.ToolOutput{CallID: "c", Text: "line\n"}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Emit(ctx, event.Record{Event: event.ToolOutput{CallID: "not told of", Text: "line\n"}}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Count(out.String(), "tool_call_update")
	if lines < 20 || out.Len() > 20*20000*len("line\n") || strings.Contains(out.String(), "not told of") {
		t.Errorf("%d updates, %d bytes", lines, out.Len())
	}
}

func TestServersOfTheEditorBecomeSettings(t *testing.T) {
	var o acp.OpenRequest
	text := `{"cwd":"/w","mcpServers":[{"name":"a","command":"x","args":["y"],"env":[{"name":"K","value":"V"}]},{"type":"http","name":"b","url":"http://h","headers":[{"name":"H","value":"1"}]}]}`
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(o.MCPSettings())
	want := `{"a":{"args":["y"],"command":"x","env":{"K":"V"},"type":"stdio"},"b":{"headers":{"H":"1"},"type":"http","url":"http://h"}}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
}

func TestAnswersHaveTheIdTheyWereAskedUnder(t *testing.T) {
	var out bytes.Buffer
	c := acp.NewConn(&out)
	if err := errors.Join(c.Reply(json.RawMessage(`"x"`), nil, nil), c.Reply(json.RawMessage(`7`), nil, errors.New("no")), c.Reply(json.RawMessage(`8`), nil, &acp.Error{Code: acp.CodeNotFound, Message: "none"})); err != nil {
		t.Fatal(err)
	}
	want := `{"jsonrpc":"2.0","id":"x","result":{}}` + "\n" + `{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"no"}}` + "\n" + `{"jsonrpc":"2.0","id":8,"error":{"code":-32002,"message":"none"}}` + "\n"
	if out.String() != want {
		t.Errorf("wrote %s", out.String())
	}
}

// FuzzDiffs: whatever a diff looks like, what is told of it is well formed.
func FuzzDiffs(f *testing.F) {
	f.Add("--- a/f\n+++ b/f\n@@ -1,2 +1 @@\n same\n-c\n\\ No newline at end of file\n")
	f.Add("@@ -1,9 +1,-3 @@\n+\n")
	f.Fuzz(func(t *testing.T, diff string) {
		var out bytes.Buffer
		face := &acp.Sink{Conn: acp.NewConn(&out), Session: "s", Root: "/w"}
		if err := face.Emit(t.Context(), event.Record{Event: event.ToolFinished{CallID: "c", Tool: "edit", Content: display.Diff{Unified: diff}}}); err != nil || !json.Valid(out.Bytes()) {
			t.Errorf("%q: %v, %s", diff, err, out.String())
		}
	})
}

// TestOnlyTextBlocksAreTyped: what an editor adds is not the person's word.
func TestOnlyTextBlocksAreTyped(t *testing.T) {
	var p acp.Prompt
	in := `{"prompt":[{"type":"text","text":"sum up "},{"type":"resource_link","uri":"https://link.org/y","name":"y"},` +
		`{"type":"resource","resource":{"uri":"https://uri.org","text":"see https://text.org"}}]}`
	if err := json.Unmarshal([]byte(in), &p); err != nil {
		t.Fatal(err)
	}
	said, err := p.Input("/w")
	if err != nil {
		t.Fatal(err)
	}
	for _, piece := range said.UserText {
		if piece.Origin == chat.OriginTyped && strings.Contains(piece.Text, ".org") {
			t.Errorf("%q counts as typed", piece.Text)
		}
	}
}

package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/uip"
	"coder/internal/tool/bash"
	"coder/internal/ui/control"
	"coder/internal/ui/drive"
	"coder/internal/ui/streamjson"
)

// channel is one whose program answers every request by answer.
func channel(t *testing.T, answer func(request map[string]any) string) *control.Channel {
	t.Helper()
	c := &control.Channel{Root: "/w", ApplyUpdate: func(control.Update) {}}
	c.DecidesCalls.Store(true)
	c.WriteLine = func(line any) error {
		var sent struct {
			Type    string         `json:"type"`
			ID      string         `json:"request_id"`
			Request map[string]any `json:"request"`
		}
		text, err := json.Marshal(line)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > 1<<20 {
			return streamjson.ErrTooLong
		}
		if json.Unmarshal(text, &sent) == nil && sent.Type == "control_request" {
			var back control.Line
			if err := json.Unmarshal([]byte(strings.ReplaceAll(answer(sent.Request), "ID", sent.ID)), &back); err != nil {
				t.Fatal(err)
			}
			c.HandleResponse(back)
		}
		return nil
	}
	return c
}

func success(payload string) string {
	return `{"type":"control_response","response":{"subtype":"success","request_id":"ID","response":` + payload + `}}`
}

func call(args string) uip.Request {
	return uip.Request{
		ID: "q", Author: "main", Kind: uip.KindConfirm, Purpose: uip.PurposeConfirmRiskyAction, Args: json.RawMessage(args),
		Display: uip.Display{Title: "write a.txt", Metadata: map[string]string{"toolCallId": "c1", "toolName": "write", "remembers": "changes to a.txt", "remembers.session": "changes to a.txt"}},
		Options: []uip.Option{{ID: uip.OptionApprove}, {ID: uip.OptionSession, Rules: []string{"write(/w/a.txt)"}}, {ID: uip.OptionAlwaysBelow}, {ID: uip.OptionAlways, Rules: []string{"write(/w/a.txt)"}}, {ID: uip.OptionReject}},
	}
}

func TestWhatAProgramSaysAboutACall(t *testing.T) {
	const args = `{"path":"a.txt","content":"ä"}`
	const unread = "the answer to can_use_tool cannot be read: behavior must be allow or deny, not "
	offered := `{"type":"addRules","rules":[{"toolName":"Write","ruleContent":"/w/a.txt"}],"behavior":"allow","destination":"`
	for name, tt := range map[string]struct {
		answer string
		want   uip.Response
	}{
		"yes":                  {success(`{"behavior":"allow"}`), uip.Response{Option: uip.OptionApprove}},
		"the same arguments":   {success(`{"behavior":"allow","updatedInput":{"content":"\u00e4","file_path":"/w/a.txt"}}`), uip.Response{Option: uip.OptionApprove}},
		"others":               {success(`{"behavior":"allow","updatedInput":{"content":"b"}}`), uip.Response{Option: uip.OptionApprove, Args: json.RawMessage(`{"content":"b"}`)}},
		"always":               {success(`{"behavior":"allow","updatedPermissions":[` + offered + `localSettings"}]}`), uip.Response{Option: uip.OptionAlways}},
		"in this session":      {success(`{"behavior":"allow","updatedPermissions":[` + offered + `session"}]}`), uip.Response{Option: uip.OptionSession}},
		"always, with others":  {success(`{"behavior":"allow","updatedInput":{"content":"b"},"updatedPermissions":[` + offered + `session"}]}`), uip.Response{Option: uip.OptionApprove, Args: json.RawMessage(`{"content":"b"}`)}},
		"no":                   {success(`{"behavior":"deny","message":"why"}`), uip.Response{Option: uip.OptionReject, Comment: "why"}},
		"no, and stop":         {success(`{"behavior":"deny","message":"","interrupt":true}`), uip.Response{Option: uip.OptionReject, Stop: true}},
		"nothing":              {success(`{}`), uip.Response{Option: uip.OptionReject, Comment: unread + `""`}},
		"an error":             {`{"type":"control_response","response":{"subtype":"error","request_id":"ID","error":"no callback"}}`, uip.Response{Option: uip.OptionReject, Comment: "the program answered with an error: no callback"}},
		"another behaviour":    {success(`{"behavior":"maybe"}`), uip.Response{Option: uip.OptionReject, Comment: unread + `"maybe"`}},
		"rules of another use": {success(`{"behavior":"allow","updatedPermissions":[{"type":"addRules","rules":[{"toolName":"Bash"}],"behavior":"allow","destination":"session"}]}`), uip.Response{Option: uip.OptionApprove}},
	} {
		t.Run(name, func(t *testing.T) {
			var changed []control.Update
			c := channel(t, func(r map[string]any) string {
				if r["tool_name"] != "Write" || r["input"].(map[string]any)["file_path"] != "/w/a.txt" || r["tool_use_id"] != "c1" {
					t.Errorf("it was asked %v", r)
				}
				return tt.answer
			})
			c.ApplyUpdate = func(u control.Update) { changed = append(changed, u) }
			got, err := c.Interactor().Ask(t.Context(), call(args))
			if err != nil || got.Option != tt.want.Option || got.Comment != tt.want.Comment || got.Stop != tt.want.Stop || string(got.Args) != string(tt.want.Args) {
				t.Errorf("%+v, %v; want %+v", got, err, tt.want)
			}
			if got.AnsweredBy != "stdin" || got.Author != "user" {
				t.Errorf("it stands on record as of %q by %q", got.Author, got.AnsweredBy)
			}
			if want := strings.Contains(name, "another use"); (len(changed) == 1) != want {
				t.Errorf("changed %v", changed)
			}
		})
	}
}

func TestWhatCannotBeShownIsNotLetPass(t *testing.T) {
	c := channel(t, func(map[string]any) string { t.Error("it was asked"); return success(`{"behavior":"allow"}`) })
	large := `{"path":"a.txt","content":"` + strings.Repeat("x", 1<<20) + `"}`
	if a, err := c.Interactor().Ask(t.Context(), call(large)); err != nil || a.Option != uip.OptionReject {
		t.Errorf("a call: %.200v, %v", a, err)
	}
	if _, err := c.RunHook(t.Context(), "h", json.RawMessage(large)); !errors.Is(err, bash.ErrTooLarge) {
		t.Errorf("a hook: %v", err)
	}
}

func TestSomeHunksOfAChange(t *testing.T) {
	q := call(`{"path":"a.txt","content":"x"}`)
	q.Display.Content = display.Diff{Unified: "--- a/a\n+++ b/a\n@@ -1,1 +1,1 @@\n-1\n+I\n@@ -9,1 +9,1 @@\n-9\n+X\n"}
	q.Options = append(q.Options, uip.Option{ID: uip.OptionSome})
	q.Display.Metadata[uip.MetaHunks] = "2"
	for decision, want := range map[string]string{
		`{"behavior":"allow","hunks":[2],"message":"later"}`:         "some 2 later",
		`{"behavior":"allow"}`:                                       "approve  ",
		`{"behavior":"allow","hunks":[1],"updatedInput":{"path":1}}`: "approve  ", // other arguments have other hunks
		`{"behavior":"deny","hunks":[1],"message":"no"}`:             "reject  no",
	} {
		c := channel(t, func(r map[string]any) string {
			if r["hunks"] != 2.0 || !strings.HasPrefix(r["diff"].(string), "--- a/a\n") {
				t.Errorf("it was asked %v", r)
			}
			return success(decision)
		})
		a, err := c.Interactor().Ask(t.Context(), q)
		if got := a.Option + " " + a.Input + " " + a.Comment; err != nil || got != want || uip.CheckResponse(q, a) != nil {
			t.Errorf("%s is %q, %v, %v, want %q", decision, got, err, uip.CheckResponse(q, a), want)
		}
	}
}

func TestQuestionsAreAskedAsTheToolThatProgramsKnow(t *testing.T) {
	colour := uip.Request{ID: "q.1", Kind: uip.KindSelect, Purpose: uip.PurposeChooseStrategy, Display: uip.Display{Title: "Which colour?"}, Options: []uip.Option{{ID: "a", Label: "Red"}, {ID: "b", Label: "Blue"}}}
	name := uip.Request{ID: "q.2", Kind: uip.KindInput, Purpose: uip.PurposeRequestInfo, Display: uip.Display{Title: "What name?"}}
	both := uip.Request{ID: "q", Kind: uip.KindComposite, Purpose: uip.PurposeRequestInfo, Parts: []uip.Request{colour, name}}
	c := channel(t, func(r map[string]any) string {
		if r["tool_name"] != "AskUserQuestion" {
			t.Errorf("it was asked %v", r)
		}
		return success(`{"behavior":"allow","updatedInput":{"answers":{"Which colour?":"Blue","What name?":"Ada"}}}`)
	})
	a, err := c.Interactor().Ask(t.Context(), both)
	if err != nil || a.PartAnswer(colour).Option != "b" || a.PartAnswer(name).Input != "Ada" || uip.CheckResponse(both, a) != nil {
		t.Errorf("%+v, %v, %v", a, err, uip.CheckResponse(both, a))
	}
	plan := uip.Request{
		ID: "p", Kind: uip.KindSelect, Purpose: uip.PurposeChooseStrategy, Display: uip.Display{Content: display.Text("1. do it")},
		Options: []uip.Option{{ID: "startEditing"}, {ID: "keepPlanning"}},
	}
	answer := `{"behavior":"allow"}`
	c = channel(t, func(r map[string]any) string {
		if r["tool_name"] != "ExitPlanMode" || r["input"].(map[string]any)["plan"] != "1. do it" {
			t.Errorf("it was asked %v", r)
		}
		return success(answer)
	})
	if a, err := c.Interactor().Ask(t.Context(), plan); err != nil || a.Option != "startEditing" {
		t.Errorf("%+v, %v", a, err)
	}
	answer = `{"behavior":"deny","message":"tests first"}`
	if a, err := c.Interactor().Ask(t.Context(), plan); err != nil || a.Input != "tests first" || uip.CheckResponse(plan, a) != nil {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestMessagesHoldWordsAndPictures(t *testing.T) {
	for in, want := range map[string]string{
		`"hello"`: "hello 0",
		`[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}},{"type":"text","text":"b"}]`: "a\nb 1",
		`[{"type":"document","source":{"type":"text","data":"words"}}]`:                                                                              "words 0",
		`[{"type":"video"}]`: "[a block of type video was omitted] 0",
		`[{"type":"image","source":{"type":"base64","data":"!"}}]`: "error",
		`5`: "error",
	} {
		var l control.Line
		if err := json.Unmarshal([]byte(`{"type":"user","message":{"content":`+in+`}}`), &l); err != nil {
			t.Fatal(err)
		}
		m, err := l.ToMessage()
		got := m.Text() + " " + string(rune('0'+len(m.Pictures)))
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%s: %q (%v), want %q", in, got, err, want)
		}
	}
}

func TestWhoEndedTheSessionNeedNotHearOfIt(t *testing.T) {
	c := &control.Channel{WriteLine: func(any) error { return nil }}
	c.Close()
	for name, want := range map[string]error{"SessionEnd": nil, "Stop": drive.ErrGone} {
		if _, err := c.RunHook(t.Context(), "h", json.RawMessage(`{"hook_event_name":"`+name+`"}`)); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnInterruptWithdrawsTheQuestion(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var sent []string
	c := &control.Channel{WriteLine: func(line any) error {
		text, err := json.Marshal(line)
		sent = append(sent, string(text))
		cancel()
		return err
	}}
	c.DecidesCalls.Store(true)
	if _, err := c.Interactor().Ask(ctx, call(`{}`)); !errors.Is(err, context.Canceled) || len(sent) != 2 || !strings.Contains(sent[1], `"control_cancel_request","request_id":"1"`) {
		t.Errorf("%v, sent %v", err, sent)
	}
}

func FuzzLines(f *testing.F) {
	f.Add(`{"type":"user","message":{"content":[{"type":"image","source":{"type":"base64","data":"AAAA"}}]}}`)
	f.Add(`{"type":"control_response","response":{"subtype":"success","request_id":"1","response":{"behavior":"allow"}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var l control.Line
		if json.Unmarshal([]byte(text), &l) != nil {
			return
		}
		if m, err := l.ToMessage(); err == nil && m.Verbatim != l.ClientComposed {
			t.Errorf("%q: %+v", text, m)
		}
		_ = (&control.Channel{}).HandleResponse(l)
	})
}

// An answer to what was never asked is told to be none.
func TestAnAnswerToNothing(t *testing.T) {
	var c control.Channel
	var l control.Line
	if err := json.Unmarshal([]byte(strings.ReplaceAll(success(`{"behavior":"allow"}`), "ID", "nosuch")), &l); err != nil {
		t.Fatal(err)
	}
	if err := c.HandleResponse(l); err == nil {
		t.Error("it was taken")
	}
}

// TestWhoseWordsAMessageHas: documents, results and composed messages are not typed.
func TestWhoseWordsAMessageHas(t *testing.T) {
	for line, want := range map[string]chat.Origin{
		`{"message":{"content":"x.org"}}`:                                                                     chat.OriginTyped,
		`{"message":{"content":[{"type":"text","text":"x.org"}]}}`:                                            chat.OriginTyped,
		`{"message":{"content":[{"type":"document","source":{"type":"text","data":"x.org"}}]}}`:               chat.OriginAttached,
		`{"message":{"content":[{"type":"tool_result","content":"x.org"}]}}`:                                  chat.OriginAttached,
		`{"client_composed":true,"message":{"content":"x.org"}}`:                                              chat.OriginComposed,
		`{"client_composed":true,"message":{"content":[{"type":"text","text":"x.org"}]}}`:                     chat.OriginComposed,
		`{"client_composed":false,"message":{"content":[{"type":"text","text":"see x.org, not [a block]"}]}}`: chat.OriginTyped,
	} {
		var l control.Line
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		m, err := l.ToMessage()
		if err != nil || len(m.UserText) != 1 || m.UserText[0].Origin != want {
			t.Errorf("%s: %v, %v, want %s", line, m.UserText, err, want)
		}
	}
}

package chat_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"coder/internal/core/chat"
)

var call = chat.ToolCall{ID: "c1", Name: "bash", Args: json.RawMessage(`{ "command": "ls > x" }`)}

var messages = map[string]chat.Message{
	"system":    chat.TextMessage(chat.System, "be brief"),
	"user":      chat.TextMessage(chat.User, "<hi> & \"bye\"\n没有\u2028"),
	"empty":     {Role: chat.User},
	"assistant": chat.TextMessage(chat.Assistant, "hello"),
	"calls": {Role: chat.Assistant, Parts: []chat.Part{
		chat.Reasoning{Text: "hm", Field: "reasoning_content", Details: json.RawMessage(`[{"signature":"<=="}]`)},
		chat.Text("I look."), call, chat.ToolCall{ID: "c2", Name: "bash", Args: json.RawMessage("{}"), Broken: `{"comm`, Extra: json.RawMessage(`{"g":1}`)},
	}},
	"calls only":     {Role: chat.Assistant, Parts: []chat.Part{call}},
	"thoughts only":  {Role: chat.Assistant, Parts: []chat.Part{chat.Reasoning{Text: "hm"}}},
	"details only":   {Role: chat.Assistant, Parts: []chat.Part{chat.Reasoning{Details: json.RawMessage(`{}`)}}},
	"result":         chat.ToolMessage(chat.ToolResult{CallID: "c1", Name: "bash", Text: "a\nb"}),
	"failed result":  chat.ToolMessage(chat.ToolResult{CallID: "c1", Name: "bash", Text: "no", Failed: true}),
	"empty result":   chat.ToolMessage(chat.ToolResult{CallID: "c1"}),
	"picture":        {Role: chat.User, Parts: []chat.Part{chat.Text("see"), chat.Image{MediaType: "image/png", Data: []byte{0, 255}}, chat.Text("here")}},
	"picture result": {Role: chat.Tool, Parts: []chat.Part{chat.ToolResult{CallID: "c1", Name: "read", Text: "a.png"}, chat.Image{MediaType: "image/png", Data: []byte{1}}}},
}

func TestMessageRoundTrip(t *testing.T) {
	for name, m := range messages {
		b, err := m.MarshalJSON()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got chat.Message
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatalf("%s: %s: %v", name, b, err)
		}
		if !reflect.DeepEqual(got, m) {
			t.Errorf("%s: %s\ngave back %#v\nwant %#v", name, b, got, m)
		}
	}
}

func TestWireForm(t *testing.T) {
	for name, want := range map[string]string{
		"user":          `{"role":"user","content":"<hi> & \"bye\"\n没有\u2028"}`,
		"empty":         `{"role":"user","content":""}`,
		"calls only":    `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"bash","arguments":"{ \"command\": \"ls > x\" }"}}]}`,
		"thoughts only": `{"role":"assistant","content":"","reasoning":"hm"}`,
		"result":        `{"role":"tool","content":"a\nb","tool_call_id":"c1","name":"bash"}`,
		"failed result": `{"role":"tool","content":"no","tool_call_id":"c1","name":"bash","failed":true}`,
		"picture":       `{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AP8="}},{"type":"text","text":"here"}]}`,
	} {
		b, err := messages[name].MarshalJSON()
		if err != nil || string(b) != want {
			t.Errorf("%s is written\n%s, %v, want\n%s", name, b, err, want)
		}
	}
}

// A strict message has the keys that every server of the OpenAI form knows.
func TestStrict(t *testing.T) {
	known := []string{"role", "content", "reasoning", "tool_calls", "tool_call_id", "name"}
	for name, m := range messages {
		b, err := m.MarshalOpenAI()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var keys map[string]json.RawMessage
		if err := json.Unmarshal(b, &keys); err != nil {
			t.Fatalf("%s: %s: %v", name, b, err)
		}
		for k := range keys {
			if !slices.Contains(known, k) {
				t.Errorf("%s has the key %s", name, k)
			}
		}
		var calls []map[string]json.RawMessage
		if raw, ok := keys["tool_calls"]; ok {
			if err := json.Unmarshal(raw, &calls); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range calls {
			if len(c) != 3 || c["id"] == nil || c["type"] == nil || c["function"] == nil {
				t.Errorf("%s: call is %s", name, b)
			}
		}
	}
	if messages["calls"].Calls()[1].Broken == "" {
		t.Error("Strict changed the message itself")
	}
}

func TestUnmarshalRefuses(t *testing.T) {
	for _, text := range []string{
		``, `[]`, `"x"`, `{"role":1}`, `{"role":"user","content":5}`, `{"role":"user","content":{}}`, `{"role":"user","content":[5]}`,
		`{"role":"user","content":[{"type":"image_url","image_url":{"url":"http://x/y.png"}}]}`,
		`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,???"}}]}`,
		`{"role":"user","content":[{"type":"audio"}]}`,
	} {
		var m chat.Message
		if err := json.Unmarshal([]byte(text), &m); err == nil {
			t.Errorf("%s is %#v", text, m)
		}
	}
}

func TestTextReasoningCalls(t *testing.T) {
	m := chat.Message{Role: chat.Assistant, Parts: []chat.Part{
		chat.Reasoning{Text: "a"}, chat.Text("b"), call, chat.Reasoning{Text: "c"}, chat.Text("d"), chat.ToolCall{ID: "c2"},
	}}
	if m.Text() != "bd" || m.Reasoning() != "ac" {
		t.Errorf("text %q, reasoning %q", m.Text(), m.Reasoning())
	}
	if calls := m.Calls(); len(calls) != 2 || calls[0].ID != "c1" || calls[1].ID != "c2" {
		t.Errorf("calls are %v", calls)
	}
	if (chat.Message{}).Text() != "" || (chat.Message{}).Calls() != nil {
		t.Error("an empty message says something")
	}
	n := 0
	for range chat.PartsOf[chat.Text](m) {
		n++
		break
	}
	if n != 1 {
		t.Errorf("selected %d", n)
	}
}

func TestSameIsIdentity(t *testing.T) {
	a, b := chat.TextMessage(chat.User, "x"), chat.TextMessage(chat.User, "x")
	copied := a
	if !chat.IsSame(a, copied) || chat.IsSame(a, b) {
		t.Error("a message is itself and no other")
	}
	if chat.IsSame(a, chat.Message{Role: chat.User, Parts: append(a.Parts, chat.Text("y"))}) {
		t.Error("a longer message is another one")
	}
	if chat.IsSame(a, chat.Message{Role: chat.System, Parts: a.Parts}) {
		t.Error("a message said by another is another one")
	}
}

func TestUsageAdd(t *testing.T) {
	got := chat.Usage{In: 1, Out: 2, Cached: 3, Reasoning: 4, Cost: 0.5}.Add(chat.Usage{In: 10, Out: 20, Cached: 30, Reasoning: 40, Cost: 0.25})
	if want := (chat.Usage{In: 11, Out: 22, Cached: 33, Reasoning: 44, Cost: 0.75}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// A message that was read is written and read again without a change.
func FuzzMessageJSON(f *testing.F) {
	for _, m := range messages {
		b, err := json.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"role":"tool","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"tool_calls":[{}]}`))
	f.Add([]byte(`{"role":"user","content":null,"reasoning_details":null,"tool_call_id":"x"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var m chat.Message
		if json.Unmarshal(data, &m) != nil {
			return
		}
		b, err := m.MarshalJSON()
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if !json.Valid(b) || bytes.Contains(b, []byte("\n")) {
			t.Fatalf("not JSON on one line: %s", b)
		}
		var again chat.Message
		if err := json.Unmarshal(b, &again); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if again.Text() != m.Text() || again.Reasoning() != m.Reasoning() || len(again.Calls()) != len(m.Calls()) {
			t.Fatalf("%#v came back as %#v", m, again)
		}
		if b2, err := again.MarshalJSON(); err != nil || !bytes.Equal(b, b2) {
			t.Fatalf("%s\nbecame\n%s, %v", b, b2, err)
		}
		if s, err := m.MarshalOpenAI(); err != nil || !json.Valid(s) {
			t.Fatalf("strict: %s, %v", s, err)
		}
	})
}

func BenchmarkMessageJSON(b *testing.B) {
	m := chat.Message{Role: chat.Assistant, Parts: []chat.Part{chat.Text(strings.Repeat("some words\n", 100)), call}}
	data, err := json.Marshal(m)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			m.MarshalJSON()
		}
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			var m chat.Message
			json.Unmarshal(data, &m)
		}
	})
}

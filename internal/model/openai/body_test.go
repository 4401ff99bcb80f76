package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"coder/internal/core/chat"
	"coder/internal/model/provider"
	"coder/internal/model/transport"
	"coder/testkit/faultserver"
)

type memory = transport.BodyCache[bodyWriter, dialect, struct{}]

// everything is a conversation with every kind of part.
func everything() []chat.Message {
	return []chat.Message{
		{Role: chat.User, Parts: []chat.Part{chat.Text("look: <\"\u2028\x01é\xff>"), chat.Image{MediaType: "image/png", Data: []byte{1, 2, 3}}}},
		{Role: chat.Assistant, Parts: []chat.Part{
			chat.Reasoning{Text: "hm", Field: "reasoning", Details: []byte(`[{"type":"reasoning.text","text":"hm","signature":"s"}]`)},
			chat.ToolCall{ID: "a", Name: "read", Args: []byte(`{"path":"x"}`), Extra: []byte(`{"google":{"thought_signature":"z"}}`)},
			chat.ToolCall{ID: "b", Name: "read", Args: []byte(`{}`), Broken: `{"path": x`},
		}},
		chat.ToolMessage(chat.ToolResult{CallID: "a", Name: "read", Text: "content"}),
		chat.ToolMessage(chat.ToolResult{CallID: "b", Name: "read", Text: "not JSON", Failed: true}),
		{Role: chat.Assistant, Parts: []chat.Part{chat.Reasoning{Text: "other", Field: "signed-elsewhere", Details: []byte(`{"x":1}`)}, chat.Text("one "), chat.Text("two")}},
		{Role: chat.Assistant, Parts: []chat.Part{chat.Reasoning{Text: "only thought", Field: "reasoning_content"}}},
		chat.TextMessage(chat.User, ""),
	}
}

const everythingAsSent = `{"role":"user","content":[{"type":"text","text":"look: <\"` + "\u2028" + `\u0001é` + "\uFFFD" + `>"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AQID"}}]},` +
	`{"role":"assistant","content":null,"reasoning":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm","signature":"s"}],` +
	`"tool_calls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{\"path\":\"x\"}"},"extra_content":{"google":{"thought_signature":"z"}}},` +
	`{"id":"b","type":"function","function":{"name":"read","arguments":"{}"}}]},` +
	`{"role":"tool","tool_call_id":"a","content":"content"},` +
	`{"role":"tool","tool_call_id":"b","content":"not JSON"},` +
	`{"role":"assistant","content":"one two"},` +
	`{"role":"assistant","content":"","reasoning_content":"only thought"},` +
	`{"role":"user","content":""}`

// text is the body of a request; it is given back at once.
func text(t testing.TB, k *memory, h head, msgs []chat.Message) string {
	t.Helper()
	open, sent, done := k.Body(h, msgs)
	defer done()
	r, err := open()
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil || len(b) != sent.Size {
		t.Fatalf("read %d of %d bytes: %v", len(b), sent.Size, err)
	}
	if again, ok := Rebuild(*sent, msgs); t.Name() != "TestOnlyNewMessagesAreEncoded" && (!ok || string(again) != string(b)) {
		t.Errorf("it cannot be written again: %.300s", b) // but where the test put in what was never said
	}
	return string(b)
}

func TestBody(t *testing.T) {
	tools := []provider.ToolSpec{
		{Name: "read", Doc: "reads", Schema: []byte(`{"type":"object","required":["path"]}`)},
		{Name: "list", Doc: "lists", Schema: []byte(`not JSON`)},
	}
	toolsAsSent := `,"tools":[{"type":"function","function":{"name":"read","description":"reads","parameters":{"type":"object","required":["path"]}}},` +
		`{"type":"function","function":{"name":"list","description":"lists","parameters":{"type":"object","properties":{}}}}]`
	for _, tc := range []struct {
		name string
		head head
		msgs []chat.Message
		want string
	}{
		{"all", head{Model: "m", System: "be brief", Tools: tools, MaxTokens: 7}, everything(),
			`{"model":"m","stream":true,"stream_options":{"include_usage":true},"max_tokens":7` + toolsAsSent +
				`,"messages":[{"role":"system","content":"be brief"},` + everythingAsSent + `]}`},
		{"nothing", head{Model: "m"}, nil, `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[]}`},
		{"another dialect", head{Model: "m", MaxTokens: 7, Dialect: dialect{noStreamOptions: true, wantsMaxCompletion: true, noReasoning: true, noExtra: true}}, everything()[1:2],
			`{"model":"m","stream":true,"max_completion_tokens":7,"messages":[{"role":"assistant","content":null,` +
				`"tool_calls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{\"path\":\"x\"}"}},` +
				`{"id":"b","type":"function","function":{"name":"read","arguments":"{}"}}]}]}`},
	} {
		var k memory
		if got := text(t, &k, tc.head, tc.msgs); got != tc.want {
			t.Errorf("%s:\n%s, want\n%s", tc.name, got, tc.want)
		} else if !json.Valid([]byte(got)) {
			t.Errorf("%s: not JSON", tc.name)
		}
	}
}

// talkOf makes a conversation of n messages.
func talkOf(n int) []chat.Message {
	var ms []chat.Message
	for i := range n {
		switch i % 3 {
		case 0:
			ms = append(ms, chat.TextMessage(chat.User, fmt.Sprint("question ", i, strings.Repeat(" and more", 50))))
		case 1:
			ms = append(ms, chat.Message{Role: chat.Assistant, Parts: []chat.Part{chat.ToolCall{ID: fmt.Sprint("c", i), Name: "read", Args: []byte(`{"path":"a.txt"}`)}}})
		case 2:
			ms = append(ms, chat.ToolMessage(chat.ToolResult{CallID: fmt.Sprint("c", i-1), Text: strings.Repeat("line\n", 200)}))
		}
	}
	return ms
}

func TestLongerBodiesBeginLikeShorterOnes(t *testing.T) {
	var k memory
	msgs := talkOf(50)
	h := head{Model: "m", System: "s"}
	before := ""
	for n := range msgs {
		now := text(t, &k, h, msgs[:n+1])
		if !strings.HasPrefix(now, before) {
			t.Fatalf("body of %d messages does not begin with that of %d", n+1, n)
		}
		if fresh := text(t, new(memory), h, msgs[:n+1]); now != fresh {
			t.Fatalf("body of %d messages differs from one made afresh", n+1)
		}
		before = strings.TrimSuffix(now, bodyTail)
	}
}

// Messages are immutable; this test breaks the rule to see what is read again.
func TestOnlyNewMessagesAreEncoded(t *testing.T) {
	var k memory
	msgs := talkOf(1000)
	first := text(t, &k, head{Model: "m"}, msgs)
	for i := range msgs {
		msgs[i].Parts[0] = chat.Text("changed")
	}
	msgs = append(msgs, chat.TextMessage(chat.User, "new"))
	want := strings.TrimSuffix(first, bodyTail) + `,{"role":"user","content":"new"}` + bodyTail
	if got := text(t, &k, head{Model: "m"}, msgs); got != want {
		t.Error("old messages were encoded again")
	}
}

func TestOtherHeadsAndTalksAreToldApart(t *testing.T) {
	var k memory
	msgs := talkOf(9)
	heads := []head{
		{Model: "m"}, {Model: "n"}, {Model: "m", System: "s"}, {Model: "m", MaxTokens: 1}, {Model: "m", Dialect: dialect{noExtra: true}},
		{Model: "m", Tools: []provider.ToolSpec{{Name: "a"}}}, {Model: "m", Tools: []provider.ToolSpec{{Name: "a", Doc: "d"}}},
		{Model: "m", Tools: []provider.ToolSpec{{Name: "a", Schema: []byte(`{}`)}}},
	}
	compacted := append([]chat.Message{msgs[0], chat.TextMessage(chat.User, "summary")}, msgs[6:]...)
	for range 3 {
		for _, h := range heads {
			for _, talk := range [][]chat.Message{msgs, msgs[:4], compacted, talkOf(9), msgs[3:]} {
				if got, want := text(t, &k, h, talk), text(t, new(memory), h, talk); got != want {
					t.Fatalf("got\n%s, want\n%s", got, want)
				}
			}
		}
	}
}

// Two requests of one conversation at the same time have bodies of their own,
// and one being sent does not change when its conversation goes another way.
func TestBytesUnderWayStay(t *testing.T) {
	var k memory
	msgs := talkOf(9)
	want := text(t, &k, head{Model: "m"}, msgs)
	first, _, doneFirst := k.Body(head{Model: "m"}, msgs)
	second, _, doneSecond := k.Body(head{Model: "m"}, msgs)
	doneFirst()
	for range 3 {
		text(t, &k, head{Model: "m"}, append(msgs[:5:5], chat.TextMessage(chat.User, strings.Repeat("other ", 1000))))
		text(t, &k, head{Model: "m"}, append(msgs[:9:9], chat.TextMessage(chat.User, strings.Repeat("longer ", 1000))))
	}
	doneSecond()
	for _, open := range []func() (io.ReadCloser, error){first, second} {
		r, _ := open()
		if got, _ := io.ReadAll(r); string(got) != want {
			t.Error("the bytes of an earlier body changed")
		}
	}
}

// Several conversations at once, each growing; what arrives is what was said.
func TestConcurrentConversations(t *testing.T) {
	s := faultserver.Start(t, faultserver.Options{})
	c := client(t, transport.Options{BaseURL: s.Base("ok")})
	start := talkOf(6)
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			req := provider.Request{Model: fmt.Sprint("m", i%3), Messages: start[:len(start):len(start)]}
			for n := range 8 {
				req.Messages = append(req.Messages, chat.TextMessage(chat.User, fmt.Sprint("talk ", i, " step ", n)))
				if _, err := provider.Collect(c.Stream(t.Context(), req), func(provider.Delta) error { return nil }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for _, r := range s.Requests() {
		ms := r.Messages()
		var i, last int
		fmt.Sscanf(string(ms[len(ms)-1].Content), `"talk %d step %d"`, &i, &last)
		if len(ms) != 6+last+1 {
			t.Fatalf("%d messages at step %d", len(ms), last)
		}
		for n, m := range ms[6:] {
			if want := fmt.Sprintf(`"talk %d step %d"`, i, n); string(m.Content) != want {
				t.Fatalf("message is %s, want %s", m.Content, want)
			}
		}
	}
}

func FuzzQuotedMessage(f *testing.F) {
	f.Add("hello", `{"a":1}`, `[]`, "id")
	f.Add("0\xff", "0", "0", `"`)
	f.Add("\xff\u2028\"\\", `{`, `{"a":`, "\x00")
	f.Fuzz(func(t *testing.T, text, args, raw, id string) {
		b := appendMessage([]byte("["), chat.Message{Role: chat.Assistant, Parts: []chat.Part{
			chat.Reasoning{Text: text, Field: "reasoning", Details: []byte(raw)}, chat.Text(text),
			chat.ToolCall{ID: id, Name: text, Args: []byte(args), Extra: []byte(raw)},
			chat.Image{MediaType: id, Data: []byte(raw)},
		}}, dialect{})
		b = appendMessage(b, chat.ToolMessage(chat.ToolResult{CallID: id, Text: text}), dialect{})
		if !json.Valid(append(b, ']')) {
			t.Errorf("not JSON: %s", b)
		}
	})
}

// BenchmarkStep is the body of one more step of a long conversation.
func BenchmarkStep(b *testing.B) {
	for _, n := range []int{10, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var k memory
			msgs := talkOf(n)
			h := head{Model: "m", System: strings.Repeat("rules ", 1000), Tools: manyTools()}
			_, _, done := k.Body(h, msgs)
			done()
			b.ReportAllocs()
			for b.Loop() {
				msgs = append(msgs, chat.TextMessage(chat.User, "go on"))
				_, _, done := k.Body(h, msgs)
				done()
			}
		})
	}
}

func manyTools() []provider.ToolSpec {
	var ts []provider.ToolSpec
	for i := range 30 {
		ts = append(ts, provider.ToolSpec{Name: fmt.Sprint("tool", i), Doc: strings.Repeat("does things ", 20), Schema: bytes.Repeat([]byte(" "), rand.IntN(3))})
	}
	return ts
}

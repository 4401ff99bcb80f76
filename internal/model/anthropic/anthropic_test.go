package anthropic_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"coder/internal/core/chat"
	"coder/internal/model/anthropic"
	"coder/internal/model/provider"
	"coder/internal/model/transport"
	"coder/testkit/faultserver"
	"coder/testkit/providertest"
)

const key = "sk-ant-test-0123456789abcdef"

func open(t testing.TB, base string) provider.Provider {
	t.Helper()
	c := anthropic.New(transport.Options{BaseURL: base, APIKey: key})
	t.Cleanup(c.CloseIdle)
	return c
}

func TestExchanges(t *testing.T) { providertest.TestExchanges(t, "messages", open) }

func TestSlow(t *testing.T) {
	providertest.TestSlow(t, "messages", func(t testing.TB, base string, through http.RoundTripper) provider.Provider {
		c := anthropic.New(transport.Options{BaseURL: base, APIKey: "a-key-0123456789", RoundTripper: through})
		t.Cleanup(c.CloseIdle)
		return c
	})
}

func TestContract(t *testing.T) {
	providertest.TestProvider(t, func(t *testing.T, replies ...[]provider.Delta) provider.Provider {
		s := faultserver.Start(t, faultserver.Options{})
		for _, r := range replies {
			s.Script(spoken(r))
		}
		return open(t, s.Base(""))
	})
}

// spoken is a reply as this wire has it: each run of deltas of one kind is a block.
func spoken(ds []provider.Delta) faultserver.Reply {
	var b strings.Builder
	event := func(kind, members string, args ...any) {
		fmt.Fprintf(&b, "event: %s\ndata: {\"type\":%q%s}\n\n", kind, kind, fmt.Sprintf(members, args...))
	}
	event("message_start", `,"message":{"id":"m","model":"m","content":[],"usage":{"input_tokens":1}}`)
	at, kind, whole := -1, "", false
	block := func(next, content string) {
		if next != kind {
			if at >= 0 {
				event("content_block_stop", `,"index":%d`, at)
			}
			at, kind = at+1, next
			event("content_block_start", `,"index":%d,"content_block":%s`, at, content)
		}
	}
	for _, d := range ds {
		switch d := d.(type) {
		case provider.TextDelta:
			block("text", `{"type":"text","text":""}`)
			event("content_block_delta", `,"index":%d,"delta":{"type":"text_delta","text":%s}`, at, quoted(string(d)))
			event("ping", "")
		case provider.ReasoningDelta:
			block("thinking", `{"type":"thinking","thinking":"","signature":""}`)
			event("content_block_delta", `,"index":%d,"delta":{"type":"thinking_delta","thinking":%s}`, at, quoted(d.Text))
		case provider.CallDelta:
			block(fmt.Sprint("call ", d.Index), fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":{}}`, d.ID, d.Name))
			event("content_block_delta", `,"index":%d,"delta":{"type":"input_json_delta","partial_json":%s}`, at, quoted(d.Args))
		case provider.Done:
			whole = true
			event("content_block_stop", `,"index":%d`, at)
			in, out, cached := 2, 1, 0
			if d.Usage != nil {
				in, out, cached = d.Usage.In, d.Usage.Out, d.Usage.Cached
			}
			stop := map[provider.Stop]string{provider.StopTools: "tool_use", provider.StopLength: "max_tokens", provider.StopFilter: "refusal", provider.StopEnd: "end_turn"}[d.Stop]
			event("message_delta", `,"delta":{"stop_reason":%q},"usage":{"input_tokens":%d,"cache_read_input_tokens":%d,"output_tokens":%d}`, stop, in-cached, cached, out)
			event("message_stop", "")
		}
	}
	return faultserver.Reply{Body: b.String(), Cut: !whole}
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func TestComplaints(t *testing.T) {
	thought := chat.Message{Role: chat.Assistant, Parts: []chat.Part{
		chat.Reasoning{Text: "hm", Field: "anthropic", Details: []byte(`[{"type":"thinking","length":2,"signature":"c2ln"}]`)}, chat.Text("So."),
	}}
	providertest.TestComplaint(t, "messages", 400, "messages.1.content.0: Invalid `signature` in `thinking` block", "c2ln", open, thought, chat.TextMessage(chat.User, "go on"))
	providertest.TestComplaint(t, "messages", 400, "cache_control: Extra inputs are not permitted", "cache_control", open)
}

func TestWishes(t *testing.T) {
	warm := func(change func(*provider.Request)) func(*provider.Request) {
		return func(r *provider.Request) { providertest.Warm(r); change(r) }
	}
	providertest.TestWishes(t, "messages", open, []string{`"temperature"`, `"thinking":{`, `"output_config"`}, []providertest.Wish{
		{Name: "effort is a budget, without a temperature", Tune: providertest.Warm, Want: []string{`"thinking":{"type":"enabled","budget_tokens":24576}`, `"max_tokens":32768`}},
		{Name: "a level by name", Tune: warm(func(r *provider.Request) { r.ByLevel = true }), Want: []string{`"thinking":{"type":"adaptive"},"output_config":{"effort":"high"}`}},
		{Name: "a budget is part of the reply", Tune: warm(func(r *provider.Request) { r.MaxTokens = 4000 }), Want: []string{`"thinking":{"type":"enabled","budget_tokens":2000}`, `"max_tokens":4000`}},
		{Name: "no room to think", Tune: warm(func(r *provider.Request) { r.MaxTokens = 1000 }), Want: []string{`"max_tokens":1000`, `"temperature":0.25`}},
		{Name: "no effort", Tune: warm(func(r *provider.Request) { r.Effort = "none" }), Want: []string{`"temperature":0.25`}},
		{Name: "too warm", Tune: func(r *provider.Request) { t := 1.5; r.Temperature = &t }, Want: []string{`"temperature":1,`}},
	})
	wishing := providertest.Wishing(open)
	providertest.TestComplaint(t, "messages", 400, "thinking.type.enabled is not supported for this model. Use thinking.type.adaptive and output_config.effort", "budget_tokens", wishing)
	providertest.TestComplaint(t, "messages", 400, "temperature: Extra inputs are not permitted", `"temperature"`, func(t testing.TB, url string) provider.Provider {
		return provider.MapRequests(open(t, url), func(r *provider.Request) { providertest.Warm(r); r.Effort = "" })
	})
}

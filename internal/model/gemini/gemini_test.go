package gemini_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"coder/internal/core/chat"
	"coder/internal/model/gemini"
	"coder/internal/model/provider"
	"coder/internal/model/transport"
	"coder/testkit/faultserver"
	"coder/testkit/providertest"
)

const key = "AIza-test-0123456789abcdef"

func open(t testing.TB, base string) provider.Provider {
	t.Helper()
	c := gemini.New(transport.Options{BaseURL: base, APIKey: key})
	t.Cleanup(c.CloseIdle)
	return c
}

func TestExchanges(t *testing.T) { providertest.TestExchanges(t, "gemini", open) }

func TestSlow(t *testing.T) {
	providertest.TestSlow(t, "gemini", func(t testing.TB, base string, through http.RoundTripper) provider.Provider {
		c := gemini.New(transport.Options{BaseURL: base, APIKey: "a-key-0123456789", RoundTripper: through})
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

// spoken is a reply as this wire has it. Calls come whole.
func spoken(ds []provider.Delta) faultserver.Reply {
	var b strings.Builder
	chunk := func(part, more string) {
		fmt.Fprintf(&b, "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[%s]}%s\n\n", part, more)
	}
	whole := false
	var calls []provider.CallDelta
	for _, d := range ds {
		switch d := d.(type) {
		case provider.TextDelta:
			chunk(fmt.Sprintf(`{"text":%s}`, quoted(string(d))), `}]}`)
		case provider.ReasoningDelta:
			chunk(fmt.Sprintf(`{"text":%s,"thought":true}`, quoted(d.Text)), `}]}`)
		case provider.CallDelta:
			if d.Index == len(calls) {
				calls = append(calls, provider.CallDelta{})
			}
			c := &calls[d.Index]
			c.ID, c.Name, c.Args = c.ID+d.ID, c.Name+d.Name, c.Args+d.Args
		case provider.Done:
			whole = true
			for _, c := range calls {
				chunk(fmt.Sprintf(`{"functionCall":{"id":%q,"name":%q,"args":%s}}`, c.ID, c.Name, c.Args), `}]}`)
			}
			in, out, cached := 2, 1, 0
			if d.Usage != nil {
				in, out, cached = d.Usage.In, d.Usage.Out, d.Usage.Cached
			}
			chunk("", fmt.Sprintf(`,"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":%d,"candidatesTokenCount":%d,"cachedContentTokenCount":%d}}`, in, out, cached))
		}
	}
	return faultserver.Reply{Body: b.String(), Cut: !whole}
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func TestComplaints(t *testing.T) {
	call := chat.Message{Role: chat.Assistant, Parts: []chat.Part{chat.ToolCall{ID: "a", Name: "read", Args: []byte(`{}`)}}}
	providertest.TestComplaint(t, "gemini", 400, "Function call is missing a thought_signature in functionCall parts.", `"args":{}}}]`, open, call, chat.ToolMessage(chat.ToolResult{CallID: "a", Text: "x"}))
	providertest.TestComplaint(t, "gemini", 400, "Unknown name 'parametersJsonSchema': Cannot find field.", "parametersJsonSchema", open)
	providertest.TestComplaint(t, "gemini", 400, "Thinking is not enabled for this model", "thinkingConfig", open)
}

func TestWishes(t *testing.T) {
	providertest.TestWishes(t, "gemini", open, []string{`"temperature"`, "thinkingBudget", "thinkingLevel"}, []providertest.Wish{
		{Name: "effort and temperature", Tune: providertest.Warm, Want: []string{`"thinkingConfig":{"includeThoughts":true,"thinkingBudget":24576}`, `"temperature":0.25`}},
		{Name: "none", Tune: func(r *provider.Request) { r.Effort = "none" }, Want: []string{`"thinkingBudget":0`}},
	})
	wishing := providertest.Wishing(open)
	providertest.TestComplaint(t, "gemini", 400, "Thinking budget is not supported for this model, use thinking level", "thinkingBudget", wishing)
	providertest.TestComplaint(t, "gemini", 400, "Invalid value at temperature", "temperature", wishing)
}

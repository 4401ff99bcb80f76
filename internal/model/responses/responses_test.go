package responses_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"coder/internal/core/chat"
	"coder/internal/model/provider"
	"coder/internal/model/responses"
	"coder/internal/model/transport"
	"coder/testkit/faultserver"
	"coder/testkit/providertest"
)

func open(t testing.TB, base string) provider.Provider {
	t.Helper()
	c := responses.New(transport.Options{BaseURL: base, APIKey: "sk-test-0123456789abcdef"})
	t.Cleanup(c.CloseIdle)
	return c
}

func TestExchanges(t *testing.T) { providertest.TestExchanges(t, "responses", open) }

func TestSlow(t *testing.T) {
	providertest.TestSlow(t, "responses", func(t testing.TB, base string, through http.RoundTripper) provider.Provider {
		c := responses.New(transport.Options{BaseURL: base, APIKey: "a-key-0123456789", RoundTripper: through})
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

// spoken is a reply as this wire has it: each run of deltas of one kind is an item.
func spoken(ds []provider.Delta) faultserver.Reply {
	var b strings.Builder
	event := func(kind, members string, args ...any) {
		fmt.Fprintf(&b, "event: %s\ndata: {\"type\":%q%s}\n\n", kind, kind, fmt.Sprintf(members, args...))
	}
	event("response.created", `,"response":{"id":"r","status":"in_progress"}`)
	at, kind, item, whole := -1, "", "", false
	begin := func(next, content string) {
		if next != kind {
			if at >= 0 {
				event("response.output_item.done", `,"output_index":%d,"item":%s`, at, item)
			}
			at, kind, item = at+1, next, content
			event("response.output_item.added", `,"output_index":%d,"item":%s`, at, item)
		}
	}
	for _, d := range ds {
		switch d := d.(type) {
		case provider.TextDelta:
			begin("text", `{"type":"message","role":"assistant","content":[]}`)
			event("response.output_text.delta", `,"output_index":%d,"delta":%s`, at, quoted(string(d)))
		case provider.ReasoningDelta:
			begin("reasoning", `{"type":"reasoning","id":"rs","summary":[]}`)
			event("response.reasoning_summary_text.delta", `,"output_index":%d,"delta":%s`, at, quoted(d.Text))
		case provider.CallDelta:
			begin(fmt.Sprint("call ", d.Index), fmt.Sprintf(`{"type":"function_call","call_id":%q,"name":%q,"arguments":""}`, d.ID, d.Name))
			event("response.function_call_arguments.delta", `,"output_index":%d,"delta":%s`, at, quoted(d.Args))
		case provider.Done:
			whole = true
			begin("end", `{"type":"end"}`)
			in, out, cached := 2, 1, 0
			if d.Usage != nil {
				in, out, cached = d.Usage.In, d.Usage.Out, d.Usage.Cached
			}
			event("response.completed", `,"response":{"status":"completed","usage":{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d},"output_tokens":%d}}`, in, cached, out)
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
		chat.Reasoning{Field: "responses", Details: []byte(`[{"item":{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"c2ln"}}]`)}, chat.Text("So."),
	}}
	providertest.TestComplaint(t, "responses", 404, "Item with id 'rs_1' not found.", "rs_1", open, thought, chat.TextMessage(chat.User, "go on"))
	providertest.TestComplaint(t, "responses", 400, "Encrypted content is not supported with this model.", "reasoning.encrypted_content", open)
	providertest.TestComplaint(t, "responses", 400, "Unknown parameter: 'store'.", "store", open)
}

func TestWishes(t *testing.T) {
	providertest.TestWishes(t, "responses", open, []string{`"temperature"`, `"reasoning":{`}, []providertest.Wish{
		{Name: "effort and temperature", Tune: providertest.Warm, Want: []string{`"reasoning":{"effort":"high"}`, `"temperature":0.25`}},
	})
	wishing := providertest.Wishing(open)
	providertest.TestComplaint(t, "responses", 400, "Unsupported parameter: 'reasoning.effort' is not supported with this model.", `"effort"`, wishing)
	providertest.TestComplaint(t, "responses", 400, "Unsupported parameter: 'temperature' is not supported with this model.", "temperature", wishing)
}

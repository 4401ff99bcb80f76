package responses

import (
	"encoding/json"
	"fmt"
	"io"
	"testing"

	"coder/internal/core/chat"
	"coder/internal/model/provider"
	"coder/internal/model/transport"
	"coder/testkit/providertest"
)

func TestEveryConversationIsTaken(t *testing.T) {
	providertest.TestConversations(t, func() providertest.Talk {
		sealed := make(map[string]bool)
		talk := talk(t, head{Model: "m", System: "be brief", Tools: []provider.ToolSpec{{Name: "read", Doc: "reads"}, {Name: "x", Schema: []byte(`{"type":"object"}`)}}})
		talk.Taken = func(body []byte) error { return providertest.CheckResponses(body, sealed) }
		talk.Think = func(turn, blocks int, text string, calls int) chat.Reasoning {
			var ts []thought
			for k := range blocks {
				secret := fmt.Sprintf("sealed-%d-%d", turn, k)
				sealed[secret] = true
				item := fmt.Appendf(nil, `{"type":"reasoning","id":"rs_%d","summary":[],"encrypted_content":%q}`, k, secret)
				ts = append(ts, thought{Item: item, Text: min(k*3, len(text)), Calls: min(k, calls)})
			}
			details, _ := json.Marshal(ts)
			return chat.Reasoning{Text: "a summary", Field: reasoningField, Details: details}
		}
		talk.Foreign = []chat.Reasoning{
			{Text: "elsewhere", Field: "reasoning_content", Details: []byte(`[{"type":"x"}]`)},
			{Text: "not sealed", Field: reasoningField, Details: []byte(`[{"item":{"type":"reasoning","summary":[]}}]`)},
		}
		return talk
	})
}

// talk holds conversations on a head.
func talk(t *testing.T, h head) providertest.Talk {
	var memory transport.BodyCache[bodyWriter, dialect, openCalls]
	return providertest.Talk{Body: func(said []chat.Message) (string, string) {
		open, sent, done := memory.Body(h, said)
		defer done()
		r, err := open()
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r)
		if err != nil || len(body) != sent.Size {
			t.Fatalf("%d bytes, %d announced, %v", len(body), sent.Size, err)
		}
		if again, ok := Rebuild(*sent, said); !ok || string(again) != string(body) {
			t.Errorf("it cannot be written again: %.300s", body)
		}
		var s openCalls
		for _, m := range said {
			_, s = bodyWriter{}.Append(h, nil, s, m)
		}
		return string(body), bodyWriter{}.End(h, s)
	}}
}

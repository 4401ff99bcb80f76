package gemini

import (
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
		signatures := make(map[string]bool)
		sign := func(turn int) string {
			s := fmt.Sprintf("c2lnbi0%d", turn)
			signatures[s] = true
			return s
		}
		talk := talk(t, head{System: "be brief", Tools: []provider.ToolSpec{{Name: "read", Doc: "reads"}, {Name: "x", Schema: []byte(`{"type":"object"}`)}}, Dialect: dialect{needsSignatures: true}})
		talk.Taken = func(body []byte) error { return providertest.CheckGemini(body, signatures) }
		talk.Think = func(turn, _ int, _ string, _ int) chat.Reasoning {
			return chat.Reasoning{Text: "hm", Field: thoughtField, Details: fmt.Appendf(nil, `{"signature":%q}`, sign(turn))}
		}
		talk.Foreign = []chat.Reasoning{{Text: "elsewhere", Field: "anthropic", Details: []byte(`[{"type":"x","signature":"no"}]`)}}
		talk.Sign = func(turn int, first *chat.ToolCall) {
			first.Extra = fmt.Appendf(nil, `{"google":{"thought_signature":%q}}`, sign(turn))
		}
		return talk
	})
}

// talk holds conversations on a head.
func talk(t *testing.T, h head) providertest.Talk {
	var memory transport.BodyCache[bodyWriter, dialect, bodyState]
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
		var s bodyState
		for _, m := range said {
			_, s = bodyWriter{}.Append(h, nil, s, m)
		}
		return string(body), bodyWriter{}.End(h, s)
	}}
}

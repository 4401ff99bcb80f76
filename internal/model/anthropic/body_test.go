package anthropic

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
		signatures := make(map[string]string)
		talk := talk(t, head{Model: "m", System: "be brief", Tools: []provider.ToolSpec{{Name: "read", Doc: "reads"}, {Name: "x", Schema: []byte(`{"type":"object"}`)}}})
		talk.Taken = func(body []byte) error { return providertest.CheckMessages(body, signatures) }
		talk.Think = func(turn, blocks int, text string, calls int) chat.Reasoning {
			var ts []thought
			var all string
			for k := range blocks {
				words, signature := fmt.Sprintf("thought %d.%d ", turn, k), fmt.Sprintf("sig-%d-%d", turn, k)
				signatures[signature] = words
				all += words
				ts = append(ts, thought{Type: "thinking", Length: len(words), Signature: signature, Text: min(k*3, len(text)), Calls: min(k, calls)})
			}
			details, _ := json.Marshal(ts)
			return chat.Reasoning{Text: all, Field: thinkingField, Details: details}
		}
		talk.Foreign = []chat.Reasoning{
			{Text: "elsewhere", Field: "reasoning_content", Details: []byte(`[{"type":"x"}]`)},
			{Text: "shortened", Field: thinkingField, Details: []byte(`[{"type":"thinking","length":900,"signature":"s"}]`)},
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

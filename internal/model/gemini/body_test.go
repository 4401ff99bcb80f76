package gemini

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"coder/internal/core/chat"
	"coder/internal/model/provider"
	"coder/internal/model/providertest"
	"coder/internal/model/transport"

	"pgregory.net/rapid"
)

// Whatever was said, over whichever wire, the vendor takes it; and from step to
// step the bytes before the newest message stay as they are.
func TestEveryConversationIsTaken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var memory transport.Memory[head, state]
		signatures := map[string]bool{}
		var said []chat.Message
		var before string
		for i := range rapid.IntRange(1, 12).Draw(t, "messages") {
			said = append(said, anyMessage(t, i, said, signatures))
			h := head{dialect: dialect{mustBeSigned: true}, system: rapid.SampledFrom([]string{"", "be brief"}).Draw(t, "system"), tools: []provider.ToolSpec{{Name: "read", Doc: "reads"}, {Name: "x", Schema: []byte(`{"type":"object"}`)}}}
			if i > 0 {
				h.system = "be brief"
			}
			open, length, done := memory.Body(h, said)
			r, err := open()
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(r)
			if err != nil || int64(len(body)) != length {
				t.Fatalf("%d bytes, %d announced, %v", len(body), length, err)
			}
			done()
			// A reply is asked for only after something of the person's or of tools.
			if m := said[len(said)-1]; m.Role != chat.Assistant && strings.Contains(string(body), `"role"`) {
				if err := providertest.CheckGemini(body, signatures); err != nil {
					t.Fatalf("%v\n%s", err, body)
				}
			}
			kept := string(body)
			_, s := h.all(said)
			kept = strings.TrimSuffix(kept, h.End(s))
			if i > 1 && !strings.HasPrefix(kept, before) {
				t.Fatalf("the beginning changed:\n%s\n%s", before, kept)
			}
			before = kept
		}
	})
}

// anyMessage is one that may come next: results answer calls that were made, or
// none, or are missing.
func anyMessage(t *rapid.T, i int, said []chat.Message, signatures map[string]bool) chat.Message {
	words := rapid.SampledFrom([]string{"", " \n", "hello", "世界 👋", "a\xffb", `"quoted"`})
	if i > 0 {
		var calls []chat.ToolCall
		for _, m := range said {
			calls = append(calls, m.Calls()...)
		}
		switch {
		case len(calls) > 0 && rapid.IntRange(0, 3).Draw(t, "answer") > 0:
			c := rapid.SampledFrom(calls).Draw(t, "call")
			return chat.Answer(chat.ToolResult{CallID: c.ID, Name: c.Name, Text: words.Draw(t, "result"), Failed: rapid.Bool().Draw(t, "failed")})
		case rapid.Bool().Draw(t, "reply"):
			return anyReply(t, i, signatures)
		}
	}
	m := chat.Say(chat.User, "word "+words.Draw(t, "words"))
	if rapid.Bool().Draw(t, "image") {
		m.Parts = append(m.Parts, chat.Image{MediaType: "image/png", Data: []byte("png")})
	}
	return m
}

func anyReply(t *rapid.T, i int, signatures map[string]bool) chat.Message {
	m := chat.Message{Role: chat.Assistant}
	text := rapid.SampledFrom([]string{"", "  ", "I look.", "longer text of several words"}).Draw(t, "text")
	n := rapid.IntRange(0, 2).Draw(t, "calls")
	sign := fmt.Sprintf("c2lnbi0%d", i)
	switch rapid.SampledFrom([]string{"none", "ours", "foreign"}).Draw(t, "thinking") {
	case "ours":
		signatures[sign] = true
		m.Parts = append(m.Parts, chat.Reasoning{Text: "hm", Field: thoughtField, Details: fmt.Appendf(nil, `{"signature":%q}`, sign)})
	case "foreign":
		m.Parts = append(m.Parts, chat.Reasoning{Text: "elsewhere", Field: "anthropic", Details: []byte(`[{"type":"x","signature":"no"}]`)})
	}
	if text != "" {
		m.Parts = append(m.Parts, chat.Text(text))
	}
	for k := range n {
		id := rapid.SampledFrom([]string{"toolu_%d_%d", "call:%d/%d", "functions.read:%d.%d"}).Draw(t, "id")
		c := chat.ToolCall{ID: fmt.Sprintf(id, i, k), Name: "read", Args: json.RawMessage(`{"path":"x"}`)}
		if k == 0 && rapid.Bool().Draw(t, "signed") {
			signatures[sign] = true
			c.Extra = fmt.Appendf(nil, `{"google":{"thought_signature":%q}}`, sign)
		}
		m.Parts = append(m.Parts, c)
	}
	return m
}

// all is the messages as they are written, and the state after them.
func (h head) all(said []chat.Message) (b []byte, s state) {
	for _, m := range said {
		b, s = h.Append(b, s, m)
	}
	return b, s
}

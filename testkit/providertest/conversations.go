package providertest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"coder/internal/core/chat"

	"pgregory.net/rapid"
)

// A Talk is a wire on which one conversation is held.
type Talk struct {
	// Body is the body of a request with what was said, and the end of it that
	// the next one need not have.
	Body  func(said []chat.Message) (body, end string)
	Taken func(body []byte) error // what the vendor says to it
	// Think is thinking in so many blocks, as it comes over this wire in a reply
	// with a text and a number of calls.
	Think   func(turn, blocks int, text string, calls int) chat.Reasoning
	Foreign []chat.Reasoning                     // thinking that cannot go back
	Sign    func(turn int, first *chat.ToolCall) // what this wire adds to calls; may be nil
}

// TestConversations makes conversations up. Whatever was said, over whichever
// wire, the vendor takes it; and from step to step the bytes before the newest
// message stay as they are.
func TestConversations(t *testing.T, begin func() Talk) {
	rapid.Check(t, func(t *rapid.T) {
		talk, before := begin(), ""
		var said []chat.Message
		for turn := range rapid.IntRange(1, 12).Draw(t, "messages") {
			said = append(said, talk.next(t, turn, said))
			body, end := talk.Body(said)
			// A reply is asked for only after something of the person's or of tools.
			if said[turn].Role != chat.Assistant {
				if err := talk.Taken([]byte(body)); err != nil {
					t.Fatalf("%v\n%s", err, body)
				}
			}
			if !strings.HasPrefix(body, before) || !strings.HasSuffix(body, end) {
				t.Fatalf("the beginning changed:\n%s\n%s", before, body)
			}
			before = strings.TrimSuffix(body, end)
		}
	})
}

// next is a message that may come next: results answer calls that were made, or
// none, or are missing.
func (talk Talk) next(t *rapid.T, turn int, said []chat.Message) chat.Message {
	words := rapid.SampledFrom([]string{"", " \n", "hello", "世界 👋", "a\xffb", `"quoted"`})
	var calls []chat.ToolCall
	for _, m := range said {
		calls = append(calls, m.Calls()...)
	}
	switch {
	case len(calls) > 0 && rapid.IntRange(0, 3).Draw(t, "answer") > 0:
		c := rapid.SampledFrom(calls).Draw(t, "call")
		return chat.ToolMessage(chat.ToolResult{CallID: c.ID, Name: c.Name, Text: words.Draw(t, "result"),
			Failed: rapid.Bool().Draw(t, "failed")})
	case turn > 0 && rapid.Bool().Draw(t, "reply"):
		return talk.reply(t, turn)
	}
	m := chat.TextMessage(chat.User, "word "+words.Draw(t, "words"))
	if rapid.Bool().Draw(t, "image") {
		m.Parts = append(m.Parts, chat.Image{MediaType: "image/png", Data: []byte("png")})
	}
	return m
}

func (talk Talk) reply(t *rapid.T, turn int) chat.Message {
	m := chat.Message{Role: chat.Assistant}
	text := rapid.SampledFrom([]string{"", "  ", "I look.", "longer text of several words"}).Draw(t, "text")
	calls := rapid.IntRange(0, 2).Draw(t, "calls")
	switch rapid.SampledFrom([]string{"none", "ours", "foreign"}).Draw(t, "thinking") {
	case "ours":
		m.Parts = append(m.Parts, talk.Think(turn, rapid.IntRange(1, 3).Draw(t, "blocks"), text, calls))
	case "foreign":
		m.Parts = append(m.Parts, rapid.SampledFrom(talk.Foreign).Draw(t, "foreign"))
	}
	if text != "" {
		m.Parts = append(m.Parts, chat.Text(text))
	}
	for k := range calls {
		id := rapid.SampledFrom([]string{"toolu_%d_%d", "call:%d/%d", "functions.read:%d.%d"}).Draw(t, "id")
		c := chat.ToolCall{ID: fmt.Sprintf(id, turn, k), Name: "read", Args: json.RawMessage(`{"path":"x"}`)}
		if k == 0 && talk.Sign != nil && rapid.Bool().Draw(t, "signed") {
			talk.Sign(turn, &c)
		}
		m.Parts = append(m.Parts, c)
	}
	return m
}

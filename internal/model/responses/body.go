package responses

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"

	"coder/internal/core/chat"
	"coder/internal/model/jsonscan"
	"coder/internal/model/transport"
)

// bodyWriter writes request bodies for this wire.
type bodyWriter struct{}

// head is the part of a body before the input.
type head = transport.Head[dialect]

func (bodyWriter) Begin(h head) []byte {
	b := append([]byte(nil), `{"model":`...)
	b = transport.Quote(b, h.Model)
	b = append(b, `,"stream":true`...)
	if !h.Dialect.noStore {
		b = append(b, `,"store":false`...)
	}
	if !h.Dialect.noEncrypted {
		b = append(b, `,"include":["reasoning.encrypted_content"]`...)
	}
	if h.MaxTokens > 0 {
		b = append(b, `,"max_output_tokens":`...)
		b = strconv.AppendInt(b, int64(h.MaxTokens), 10)
	}
	if h.Effort != "" && !h.Dialect.noEffort {
		b = append(transport.Quote(append(b, `,"reasoning":{"effort":`...), h.Effort), '}')
	}
	if h.Temperature != "" && !h.Dialect.noTemperature {
		b = append(append(b, `,"temperature":`...), h.Temperature...)
	}
	if len(h.Tools) > 0 {
		b = append(b, `,"tools":[`...)
		for _, t := range h.Tools {
			b = append(transport.Comma(b), `{"type":"function",`...)
			b = transport.AppendTool(b, t, `,"strict":false,"parameters":`)
			b = append(b, '}')
		}
		b = append(b, ']')
	}
	if h.System != "" {
		b = append(b, `,"instructions":`...)
		b = transport.Quote(b, h.System)
	}
	return append(b, `,"input":[`...)
}

// openCalls holds the calls without a result.
type openCalls = transport.Pending

// End adds a result for every unanswered call: this wire rejects a call without a result.
func (bodyWriter) End(_ head, s openCalls) string {
	return string(append(appendUnanswered(nil, s), `]}`...))
}

// appendUnanswered writes a "no result" result for every call
// without one. The call comes before it, so a comma is due.
func appendUnanswered(b []byte, s openCalls) []byte {
	for _, c := range s {
		b = appendResult(append(b, ','), c.ID, transport.NoResult)
	}
	return b
}

// Append writes a message as its items.
func (bodyWriter) Append(h head, b []byte, s openCalls, m chat.Message) ([]byte, openCalls) {
	switch m.Role {
	case chat.Tool:
		for r := range chat.PartsOf[chat.ToolResult](m) {
			var asked bool
			if s, _, asked = s.Without(r.CallID); asked {
				b = appendResult(transport.Comma(b), r.CallID, r.Text)
			} else {
				b = appendText(b, "user", "input_text", transport.OrphanResult(r))
			}
		}
		return b, s
	case chat.Assistant:
		return appendReply(h, appendUnanswered(b, s), m)
	}
	b = appendUnanswered(b, s)
	open := false
	part := func(kind string) {
		if !open {
			b, open = append(transport.Comma(b), `{"type":"message","role":"user","content":[`...), true
		}
		b = append(transport.Comma(b), `{"type":"`...)
		b = append(b, kind...)
	}
	for _, p := range m.Parts {
		switch p := p.(type) {
		case chat.Text:
			part(`input_text","text":`)
			b = append(transport.Quote(b, string(p)), '}')
		case chat.Image:
			kind := `input_image","image_url":"data:`
			if p.MediaType == chat.PDF {
				kind = `input_file","filename":"document.pdf","file_data":"data:`
			}
			part(kind)
			media := transport.Quote(nil, p.MediaType)
			b = append(append(b, media[1:len(media)-1]...), `;base64,`...)
			b = append(base64.StdEncoding.AppendEncode(b, p.Data), `"}`...)
		}
	}
	if open {
		b = append(b, `]}`...)
	}
	return b, nil
}

func appendText(b []byte, role, kind, text string) []byte {
	b = append(transport.Comma(b), `{"type":"message","role":"`...)
	b = append(append(b, role...), `","content":[{"type":"`...)
	b = append(append(b, kind...), `","text":`...)
	return append(transport.Quote(b, text), `}]}`...)
}

func appendResult(b []byte, id, text string) []byte {
	b = append(b, `{"type":"function_call_output","call_id":`...)
	b = append(transport.Quote(b, shortenID(id)), `,"output":`...)
	return append(transport.Quote(b, text), '}')
}

// appendReply writes a model's reply with its reasoning in the
// original place: a reasoning item must precede the item it led to.
func appendReply(h head, b []byte, m chat.Message) (_ []byte, s openCalls) {
	text, calls := m.Text(), m.Calls()
	said, called := 0, 0
	until := func(textEnd, callEnd int) {
		if textEnd = min(textEnd, len(text)); textEnd > said {
			b = appendText(b, "assistant", "output_text", text[said:textEnd])
			said = textEnd
		}
		for ; called < min(callEnd, len(calls)); called++ {
			c := calls[called]
			b = append(transport.Comma(b), `{"type":"function_call","call_id":`...)
			b = append(transport.Quote(b, shortenID(c.ID)), `,"name":`...)
			b = append(transport.Quote(b, c.Name), `,"arguments":`...)
			b = append(transport.Quote(b, string(transport.Args(c))), '}')
			s = s.With(c)
		}
	}
	if !h.Dialect.noReasoning {
		for _, t := range decodeThoughts(m) {
			until(t.Text, t.Calls)
			if said < len(text) || called < len(calls) { // it led to something
				b = append(transport.Comma(b), t.Item...)
			}
		}
	}
	until(len(text), len(calls))
	return b, s
}

// reasoningField marks reasoning that came over this wire.
const reasoningField = "responses"

// thought is a reasoning item as received, and how much text and how many calls came before it.
type thought struct {
	Item  json.RawMessage `json:"item"`
	Text  int             `json:"text,omitzero"`
	Calls int             `json:"calls,omitzero"`
}

// decodeThoughts returns a message's reasoning items that can go back, or none if they came over another
// wire. An item is useless without its content or a server that stores it.
func decodeThoughts(m chat.Message) (ts []thought) {
	for r := range chat.PartsOf[chat.Reasoning](m) {
		if r.Field != reasoningField || json.Unmarshal(r.Details, &ts) != nil {
			return nil
		}
		return slices.DeleteFunc(ts, func(t thought) bool {
			return !jsonscan.IsObject(t.Item) || jsonscan.String(jsonscan.Get(t.Item, "encrypted_content")) == ""
		})
	}
	return nil
}

// maxIDLength is the maximum length of an id on this wire.
const maxIDLength = 64

func shortenID(id string) string {
	if len(id) <= maxIDLength && id != "" {
		return id
	}
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(id))
	return fmt.Sprintf("call_%016x", sum.Sum64())
}

package responses

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"

	"coder/internal/core/chat"
	"coder/internal/model/jsonscan"
	"coder/internal/model/provider"
	"coder/internal/model/transport"

	"github.com/go-json-experiment/json/jsontext"
)

// head is all of a body that comes before the input.
type head struct {
	model, system string
	tools         []provider.ToolSpec
	maxTokens     int
	effort        string
	temperature   string // as it is written
	dialect       dialect
}

func (h head) Same(o head) bool {
	return h.model == o.model && h.system == o.system && h.maxTokens == o.maxTokens && h.effort == o.effort && h.temperature == o.temperature && h.dialect == o.dialect && transport.SameTools(h.tools, o.tools)
}

func (h head) Own() head {
	h.tools = slices.Clone(h.tools)
	return h
}

func (h head) Begin() []byte {
	b := append([]byte(nil), `{"model":`...)
	b = quote(b, h.model)
	b = append(b, `,"stream":true`...)
	if !h.dialect.noStore {
		b = append(b, `,"store":false`...)
	}
	if !h.dialect.noEncrypted {
		b = append(b, `,"include":["reasoning.encrypted_content"]`...)
	}
	if h.maxTokens > 0 {
		b = append(b, `,"max_output_tokens":`...)
		b = strconv.AppendInt(b, int64(h.maxTokens), 10)
	}
	if h.effort != "" && !h.dialect.noEffort {
		b = append(quote(append(b, `,"reasoning":{"effort":`...), h.effort), '}')
	}
	if h.temperature != "" && !h.dialect.noTemperature {
		b = append(append(b, `,"temperature":`...), h.temperature...)
	}
	if len(h.tools) > 0 {
		b = append(b, `,"tools":[`...)
		for _, t := range h.tools {
			b = append(next(b), `{"type":"function","name":`...)
			b = quote(b, t.Name)
			b = append(b, `,"description":`...)
			b = quote(b, t.Doc)
			b = append(b, `,"strict":false,"parameters":`...)
			if jsonscan.IsObject(t.Schema) {
				b = append(b, t.Schema...)
			} else {
				b = append(b, `{"type":"object","properties":{}}`...)
			}
			b = append(b, '}')
		}
		b = append(b, ']')
	}
	if h.system != "" {
		b = append(b, `,"instructions":`...)
		b = quote(b, h.system)
	}
	return append(b, `,"input":[`...)
}

// state is the calls that have no result yet.
type state struct{ waiting []string }

// End answers the calls that nobody answered: this wire refuses a call without
// a result.
func (h head) End(s state) string { return string(append(s.unanswered(nil), `]}`...)) }

// unanswered says of each call without a result that it has none. The call
// stands before it, so a comma is due.
func (s *state) unanswered(b []byte) []byte {
	for _, id := range s.waiting {
		b = appendResult(append(b, ','), id, "There is no result of this call.")
	}
	s.waiting = nil
	return b
}

// Append writes a message as the items it is made of.
func (h head) Append(b []byte, s state, m chat.Message) ([]byte, state) {
	switch m.Role {
	case chat.Tool:
		for r := range chat.Select[chat.ToolResult](m) {
			if i := slices.Index(s.waiting, r.CallID); i >= 0 {
				s.waiting = slices.Delete(slices.Clone(s.waiting), i, i+1)
				b = appendResult(next(b), r.CallID, r.Text)
			} else {
				b = appendSaid(b, "user", "input_text", "A result of "+cmp.Or(r.Name, "a tool")+":\n"+r.Text)
			}
		}
		return b, s
	case chat.Assistant:
		b = s.unanswered(b)
		return h.appendReply(b, s, m)
	}
	b = s.unanswered(b)
	open := false
	part := func(kind string) {
		if !open {
			b, open = append(next(b), `{"type":"message","role":"user","content":[`...), true
		}
		b = append(next(b), `{"type":"`...)
		b = append(b, kind...)
	}
	for _, p := range m.Parts {
		switch p := p.(type) {
		case chat.Text:
			part(`input_text","text":`)
			b = append(quote(b, string(p)), '}')
		case chat.Image:
			part(`input_image","image_url":"data:`)
			media := quote(nil, p.MediaType)
			b = append(append(b, media[1:len(media)-1]...), `;base64,`...)
			b = append(base64.StdEncoding.AppendEncode(b, p.Data), `"}`...)
		}
	}
	if open {
		b = append(b, `]}`...)
	}
	return b, s
}

func appendSaid(b []byte, role, kind, text string) []byte {
	b = append(next(b), `{"type":"message","role":"`...)
	b = append(append(b, role...), `","content":[{"type":"`...)
	b = append(append(b, kind...), `","text":`...)
	return append(quote(b, text), `}]}`...)
}

func appendResult(b []byte, id, text string) []byte {
	b = append(b, `{"type":"function_call_output","call_id":`...)
	b = append(quote(b, shortID(id)), `,"output":`...)
	return append(quote(b, text), '}')
}

// appendReply writes what the model said, its reasoning where it stood: such an
// item has to come back before the one it led to.
func (h head) appendReply(b []byte, s state, m chat.Message) ([]byte, state) {
	text, calls := m.Text(), m.Calls()
	said, called := 0, 0
	until := func(textEnd, callEnd int) {
		if textEnd = min(textEnd, len(text)); textEnd > said {
			b = appendSaid(b, "assistant", "output_text", text[said:textEnd])
			said = textEnd
		}
		for ; called < min(callEnd, len(calls)); called++ {
			c := calls[called]
			b = append(next(b), `{"type":"function_call","call_id":`...)
			b = append(quote(b, shortID(c.ID)), `,"name":`...)
			b = append(quote(b, c.Name), `,"arguments":`...)
			if c.Broken != "" || !jsonscan.IsObject(c.Args) {
				b = append(b, `"{}"`...)
			} else {
				b = quote(b, string(c.Args))
			}
			b = append(b, '}')
			s.waiting = append(s.waiting[:len(s.waiting):len(s.waiting)], c.ID)
		}
	}
	if !h.dialect.noReasoning {
		for _, t := range thoughts(m) {
			until(t.Text, t.Calls)
			if said < len(text) || called < len(calls) { // it leads to something
				b = append(next(b), t.Item...)
			}
		}
	}
	until(len(text), len(calls))
	return b, s
}

// reasoningField names reasoning that came over this wire.
const reasoningField = "responses"

// thought is a reasoning item as it came, and how much text and how many calls
// came before it.
type thought struct {
	Item  json.RawMessage `json:"item"`
	Text  int             `json:"text,omitzero"`
	Calls int             `json:"calls,omitzero"`
}

// thoughts are the reasoning items of a message that can go back; none if it
// came another way. Without its content, or a server that keeps it, one is
// worth nothing.
func thoughts(m chat.Message) (ts []thought) {
	for r := range chat.Select[chat.Reasoning](m) {
		if r.Field != reasoningField || json.Unmarshal(r.Details, &ts) != nil {
			return nil
		}
		return slices.DeleteFunc(ts, func(t thought) bool {
			return !jsonscan.IsObject(t.Item) || jsonscan.String(jsonscan.Get(t.Item, "encrypted_content")) == ""
		})
	}
	return nil
}

// longestID is how long an id may be on this wire.
const longestID = 64

func shortID(id string) string {
	if len(id) <= longestID && id != "" {
		return id
	}
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(id))
	return fmt.Sprintf("call_%016x", sum.Sum64())
}

// next puts a comma where one is due in a list.
func next(b []byte) []byte {
	if len(b) > 0 && b[len(b)-1] != '[' {
		return append(b, ',')
	}
	return b
}

// quote appends s as a JSON string; what is not UTF-8 becomes U+FFFD.
func quote(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s) // the error only reports the replacement
	return b
}

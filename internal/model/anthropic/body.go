package anthropic

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/model/provider"
	"coder/internal/model/transport"
)

// form writes bodies of this wire.
type form struct{}

// head is all of a body that comes before the messages.
type head = transport.Head[dialect]

// usualMax is how much a reply may hold if nobody says: this wire wants a
// figure, and all of its models can do that much.
const usualMax = 8192

// Begin writes what stays the same: tools, then the system text, at whose end
// the server may remember both.
func (form) Begin(h head) []byte {
	b := append([]byte(nil), `{"model":`...)
	b = transport.Quote(b, h.Model)
	most, thinks := thinking(h)
	b = append(b, `,"max_tokens":`...)
	b = strconv.AppendInt(b, int64(most), 10)
	b = append(b, `,"stream":true`...)
	b = append(b, thinks...)
	if h.Temperature != "" && !h.Dialect.noTemperature && thinks == "" { // who thinks has no choice of it
		b = append(append(b, `,"temperature":`...), h.Temperature...)
	}
	for i, t := range h.Tools {
		b = append(b, [...]string{`,"tools":[{`, `},{`}[min(i, 1)]...)
		b = transport.AppendTool(b, t, `,"input_schema":`)
	}
	if len(h.Tools) > 0 {
		if h.System == "" {
			b = append(b, breakpoint(h)...)
		}
		b = append(b, `}]`...)
	}
	if h.System != "" {
		b = append(b, `,"system":[{"type":"text","text":`...)
		b = transport.Quote(b, h.System)
		b = append(b, breakpoint(h)...)
		b = append(b, `}]`...)
	}
	return append(b, `,"messages":[`...)
}

// leastThinking is the smallest budget that this wire takes.
const leastThinking = 1024

// thinking is how much a reply may hold, and how hard the model is to think for
// it; a budget for that is part of what it may hold.
func thinking(h head) (most int, members string) {
	most = cmp.Or(h.MaxTokens, usualMax)
	budget := provider.ThinkingTokens(h.Effort)
	switch {
	case budget == 0 || h.Dialect.effort == asNothing:
		return most, ""
	case h.Dialect.effort == asLevel:
		return most, `,"thinking":{"type":"adaptive"},"output_config":{"effort":"` + strings.Replace(h.Effort, "minimal", "low", 1) + `"}`
	case h.MaxTokens == 0:
		most += budget
	default:
		budget = min(budget, most/2)
	}
	if budget < leastThinking {
		return most, ""
	}
	return most, fmt.Sprintf(`,"thinking":{"type":"enabled","budget_tokens":%d}`, budget)
}

// breakpoint marks the end of what is worth remembering for the next request.
func breakpoint(h head) string {
	if h.Dialect.noCaching {
		return ""
	}
	return `,"cache_control":{"type":"ephemeral"}`
}

// state is where a list of messages stands: it ends in a message of role whose
// last block lacks its closing brace, so that one more, or a breakpoint, can
// follow. waiting are the calls that have no result yet.
type state struct {
	role    role
	waiting transport.Pending
}

type role string

const (
	user      role = "user"
	assistant role = "assistant"
)

// End answers the calls that nobody answered, and closes the last block, which
// is worth remembering if it is the person's or a tool's, and the rest.
func (form) End(h head, s state) string {
	if s.role == "" {
		return `]}`
	}
	b := s.unanswered(nil)
	if s.role == user {
		b = append(b, breakpoint(h)...)
	}
	return string(append(b, `}]}]}`...))
}

// unanswered says of each call without a result that it has none.
func (s *state) unanswered(b []byte) []byte {
	for _, c := range s.waiting {
		b = appendResult(b, s, c.ID, transport.NoResult, true)
	}
	s.waiting = nil
	return b
}

// open begins a block of a message of role r, the one that is under way or the
// next. The person speaks first on this wire.
func (s *state) open(b []byte, r role) []byte {
	switch {
	case s.role == r:
		return append(b, `},{`...)
	case s.role != "":
		b = append(b, `}]},`...)
	case r == assistant:
		b = append(b, `{"role":"user","content":[{"type":"text","text":"(continued)"}]},`...)
	}
	s.role = r
	b = append(b, `{"role":"`...)
	b = append(b, r...)
	return append(b, `","content":[{`...)
}

// Append writes a message. This wire wants roles to take turns, each call to be
// answered in the very next message before anything else is said there, and no
// text without a word.
func (form) Append(h head, b []byte, s state, m chat.Message) ([]byte, state) {
	if m.Role == chat.Tool {
		for r := range chat.Select[chat.ToolResult](m) {
			var asked bool
			if s.waiting, _, asked = s.waiting.Without(r.CallID); asked {
				b = appendResult(b, &s, r.CallID, r.Text, r.Failed)
			} else {
				b = appendText(s.unanswered(b), &s, user, transport.Unasked(r))
			}
		}
		return b, s
	}
	b = s.unanswered(b)
	if m.Role == chat.Assistant {
		return appendReply(h, b, s, m)
	}
	for _, p := range m.Parts {
		switch p := p.(type) {
		case chat.Text:
			b = appendText(b, &s, user, string(p))
		case chat.Image:
			kind := `"type":"image"`
			if p.MediaType == chat.PDF {
				kind = `"type":"document"`
			}
			b = append(append(s.open(b, user), kind...), `,"source":{"type":"base64","media_type":`...)
			b = append(transport.Quote(b, p.MediaType), `,"data":"`...)
			b = append(base64.StdEncoding.AppendEncode(b, p.Data), `"}`...)
		}
	}
	return b, s
}

func appendText(b []byte, s *state, r role, text string) []byte {
	if strings.TrimSpace(text) == "" {
		return b
	}
	b = append(s.open(b, r), `"type":"text","text":`...)
	return transport.Quote(b, text)
}

func appendResult(b []byte, s *state, id, text string, failed bool) []byte {
	b = append(s.open(b, user), `"type":"tool_result","tool_use_id":`...)
	b = append(transport.Quote(b, safeID(id)), `,"content":`...)
	b = transport.Quote(b, cmp.Or(text, "(nothing)"))
	if failed {
		b = append(b, `,"is_error":true`...)
	}
	return b
}

// appendReply writes what the model said, its thinking where it stood: signed
// thinking has to come back as it was.
func appendReply(h head, b []byte, s state, m chat.Message) ([]byte, state) {
	text, calls := m.Text(), m.Calls()
	said, called := 0, 0
	until := func(textEnd, callEnd int) {
		if textEnd = min(textEnd, len(text)); textEnd > said {
			b = appendText(b, &s, assistant, text[said:textEnd])
			said = textEnd
		}
		for ; called < min(callEnd, len(calls)); called++ {
			c := calls[called]
			b = append(s.open(b, assistant), `"type":"tool_use","id":`...)
			b = append(transport.Quote(b, safeID(c.ID)), `,"name":`...)
			b = append(transport.Quote(b, c.Name), `,"input":`...)
			b = append(b, transport.Args(c)...)
			s.waiting = s.waiting.With(c)
		}
	}
	if !h.Dialect.noThinking {
		for _, t := range thoughts(m) {
			until(t.Text, t.Calls)
			b = append(s.open(b, assistant), `"type":`...)
			if b = transport.Quote(b, t.Type); t.Type == redacted {
				b = append(b, `,"data":`...)
				b = transport.Quote(b, t.Data)
				continue
			}
			b = append(b, `,"thinking":`...)
			b = append(transport.Quote(b, t.words), `,"signature":`...)
			b = transport.Quote(b, t.Signature)
		}
	}
	until(len(text), len(calls))
	return b, s
}

// thinkingField names thinking that came over this wire.
const thinkingField = "anthropic"

const redacted = "redacted_thinking"

// thought is a block of thinking: how long its words are among those of the
// reply, what vouches for them, and how much text and how many calls came
// before it.
type thought struct {
	Type      string `json:"type"`
	Length    int    `json:"length,omitzero"`
	Signature string `json:"signature,omitzero"`
	Data      string `json:"data,omitzero"`
	Text      int    `json:"text,omitzero"`
	Calls     int    `json:"calls,omitzero"`

	words string
}

// thoughts are the blocks of thinking of a message; none if they came another
// way or are not as they were: such are not for this wire.
func thoughts(m chat.Message) (ts []thought) {
	for r := range chat.Select[chat.Reasoning](m) {
		if r.Field != thinkingField || json.Unmarshal(r.Details, &ts) != nil {
			return nil
		}
		words := r.Text
		for i := range ts {
			if ts[i].Length < 0 || ts[i].Length > len(words) {
				return nil
			}
			ts[i].words, words = words[:ts[i].Length], words[ts[i].Length:]
		}
		if words != "" {
			return nil
		}
		return slices.DeleteFunc(ts, func(t thought) bool { return t.Type != redacted && t.Signature == "" })
	}
	return nil
}

// safeID is an id in the letters that this wire allows; one from another
// vendor may have others.
func safeID(id string) string {
	safe := strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, id)
	if safe == id && id != "" {
		return id
	}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(id))
	return fmt.Sprintf("%s_%08x", safe, sum.Sum32())
}

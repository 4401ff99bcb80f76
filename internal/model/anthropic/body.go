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

// bodyWriter writes request bodies for this wire.
type bodyWriter struct{}

// head is the part of a body before the messages.
type head = transport.Head[dialect]

// defaultMaxTokens is the reply limit if the request sets none: this
// wire requires one, and all its models support this much.
const defaultMaxTokens = 8192

// Begin writes the fixed start of a body, tools then system text,
// with a cache breakpoint at the end of the system text.
func (bodyWriter) Begin(h head) []byte {
	b := append([]byte(nil), `{"model":`...)
	b = transport.Quote(b, h.Model)
	most, thinks := thinkingParams(h)
	b = append(b, `,"max_tokens":`...)
	b = strconv.AppendInt(b, int64(most), 10)
	b = append(b, `,"stream":true`...)
	b = append(b, thinks...)
	if h.Temperature != "" && !h.Dialect.noTemperature && thinks == "" { // a thinking model does not accept a temperature
		b = append(append(b, `,"temperature":`...), h.Temperature...)
	}
	for i, t := range h.Tools {
		b = append(b, [...]string{`,"tools":[{`, `},{`}[min(i, 1)]...)
		b = transport.AppendTool(b, t, `,"input_schema":`)
	}
	if len(h.Tools) > 0 {
		if h.System == "" {
			b = append(b, cacheBreakpoint(h)...)
		}
		b = append(b, `}]`...)
	}
	if h.System != "" {
		b = append(b, `,"system":[{"type":"text","text":`...)
		b = transport.Quote(b, h.System)
		b = append(b, cacheBreakpoint(h)...)
		b = append(b, `}]`...)
	}
	return append(b, `,"messages":[`...)
}

// minThinkingTokens is the smallest thinking budget that this wire accepts.
const minThinkingTokens = 1024

// thinkingParams returns the reply limit in tokens, and the members that set
// the thinking effort. A thinking budget counts towards the limit.
func thinkingParams(h head) (most int, members string) {
	most = cmp.Or(h.MaxTokens, defaultMaxTokens)
	budget := provider.ThinkingTokens(h.Effort)
	switch {
	case budget == 0 || h.Dialect.effort == effortNone:
		return most, ""
	case h.Dialect.effort == effortLevel:
		return most, `,"thinking":{"type":"adaptive"},"output_config":{"effort":"` +
			strings.Replace(h.Effort, "minimal", "low", 1) + `"}`
	case h.MaxTokens == 0:
		most += budget
	default:
		budget = min(budget, most/2)
	}
	if budget < minThinkingTokens {
		return most, ""
	}
	return most, fmt.Sprintf(`,"thinking":{"type":"enabled","budget_tokens":%d}`, budget)
}

// cacheBreakpoint marks the end of a prefix for the server to cache.
func cacheBreakpoint(h head) string {
	if h.Dialect.noCaching {
		return ""
	}
	return `,"cache_control":{"type":"ephemeral"}`
}

// bodyState is the state of a partly written list of messages. The last message has
// this role, and its last block lacks its closing brace, so that another block
// or a breakpoint can follow. waiting holds the calls without a result.
type bodyState struct {
	role    role
	pending transport.Pending
}

type role string

const (
	roleUser      role = "user"
	roleAssistant role = "assistant"
)

// End adds a result for every unanswered call and closes the last block, with a breakpoint if a user or
// tool message ends the list, then the body.
func (bodyWriter) End(h head, s bodyState) string {
	if s.role == "" {
		return `]}`
	}
	b := s.closeUnanswered(nil)
	if s.role == roleUser {
		b = append(b, cacheBreakpoint(h)...)
	}
	return string(append(b, `}]}]}`...))
}

// closeUnanswered writes a "no result" result for every call without one.
func (s *bodyState) closeUnanswered(b []byte) []byte {
	for _, c := range s.pending {
		b = appendResult(b, s, c.ID, transport.NoResult, true)
	}
	s.pending = nil
	return b
}

// openBlock begins a block of a message with role r, in the current
// message or a new one. On this wire the user speaks first.
func (s *bodyState) openBlock(b []byte, r role) []byte {
	switch {
	case s.role == r:
		return append(b, `},{`...)
	case s.role != "":
		b = append(b, `}]},`...)
	case r == roleAssistant:
		b = append(b, `{"role":"user","content":[{"type":"text","text":"(continued)"}]},`...)
	}
	s.role = r
	b = append(b, `{"role":"`...)
	b = append(b, r...)
	return append(b, `","content":[{`...)
}

// Append writes a message. On this wire roles must alternate, every call must be answered at the start
// of the next message, and a text block must not be empty.
func (bodyWriter) Append(h head, b []byte, s bodyState, m chat.Message) ([]byte, bodyState) {
	if m.Role == chat.Tool {
		for r := range chat.PartsOf[chat.ToolResult](m) {
			var asked bool
			if s.pending, _, asked = s.pending.Without(r.CallID); asked {
				b = appendResult(b, &s, r.CallID, r.Text, r.Failed)
			} else {
				b = appendText(s.closeUnanswered(b), &s, roleUser, transport.OrphanResult(r))
			}
		}
		return b, s
	}
	b = s.closeUnanswered(b)
	if m.Role == chat.Assistant {
		return appendReply(h, b, s, m)
	}
	for _, p := range m.Parts {
		switch p := p.(type) {
		case chat.Text:
			b = appendText(b, &s, roleUser, string(p))
		case chat.Image:
			kind := `"type":"image"`
			if p.MediaType == chat.PDF {
				kind = `"type":"document"`
			}
			b = append(append(s.openBlock(b, roleUser), kind...), `,"source":{"type":"base64","media_type":`...)
			b = append(transport.Quote(b, p.MediaType), `,"data":"`...)
			b = append(base64.StdEncoding.AppendEncode(b, p.Data), `"}`...)
		}
	}
	return b, s
}

func appendText(b []byte, s *bodyState, r role, text string) []byte {
	if strings.TrimSpace(text) == "" {
		return b
	}
	b = append(s.openBlock(b, r), `"type":"text","text":`...)
	return transport.Quote(b, text)
}

func appendResult(b []byte, s *bodyState, id, text string, failed bool) []byte {
	b = append(s.openBlock(b, roleUser), `"type":"tool_result","tool_use_id":`...)
	b = append(transport.Quote(b, safeID(id)), `,"content":`...)
	b = transport.Quote(b, cmp.Or(text, "(nothing)"))
	if failed {
		b = append(b, `,"is_error":true`...)
	}
	return b
}

// appendReply writes a model's reply with its thinking in the
// original place: signed thinking must go back unchanged.
func appendReply(h head, b []byte, s bodyState, m chat.Message) ([]byte, bodyState) {
	text, calls := m.Text(), m.Calls()
	said, called := 0, 0
	until := func(textEnd, callEnd int) {
		if textEnd = min(textEnd, len(text)); textEnd > said {
			b = appendText(b, &s, roleAssistant, text[said:textEnd])
			said = textEnd
		}
		for ; called < min(callEnd, len(calls)); called++ {
			c := calls[called]
			b = append(s.openBlock(b, roleAssistant), `"type":"tool_use","id":`...)
			b = append(transport.Quote(b, safeID(c.ID)), `,"name":`...)
			b = append(transport.Quote(b, c.Name), `,"input":`...)
			b = append(b, transport.Args(c)...)
			s.pending = s.pending.With(c)
		}
	}
	if !h.Dialect.noThinking {
		for _, t := range decodeThoughts(m) {
			until(t.Text, t.Calls)
			b = append(s.openBlock(b, roleAssistant), `"type":`...)
			if b = transport.Quote(b, t.Type); t.Type == redactedType {
				b = append(b, `,"data":`...)
				b = transport.Quote(b, t.Data)
				continue
			}
			b = append(b, `,"thinking":`...)
			b = append(transport.Quote(b, t.text), `,"signature":`...)
			b = transport.Quote(b, t.Signature)
		}
	}
	until(len(text), len(calls))
	return b, s
}

// thinkingField marks thinking that came over this wire.
const thinkingField = "anthropic"

const redactedType = "redacted_thinking"

// thought is a block of thinking: the length of its text within the reply's reasoning, its signature,
// and how much text and how many calls came before it.
type thought struct {
	Type      string `json:"type"`
	Length    int    `json:"length,omitzero"`
	Signature string `json:"signature,omitzero"`
	Data      string `json:"data,omitzero"`
	Text      int    `json:"text,omitzero"`
	Calls     int    `json:"calls,omitzero"`

	text string
}

// decodeThoughts returns a message's blocks of thinking, or none if they came
// over another wire or were changed: this wire would reject those.
func decodeThoughts(m chat.Message) (ts []thought) {
	for r := range chat.PartsOf[chat.Reasoning](m) {
		if r.Field != thinkingField || json.Unmarshal(r.Details, &ts) != nil {
			return nil
		}
		words := r.Text
		for i := range ts {
			if ts[i].Length < 0 || ts[i].Length > len(words) {
				return nil
			}
			ts[i].text, words = words[:ts[i].Length], words[ts[i].Length:]
		}
		if words != "" {
			return nil
		}
		return slices.DeleteFunc(ts, func(t thought) bool { return t.Type != redactedType && t.Signature == "" })
	}
	return nil
}

// safeID returns id in the characters that this wire allows. Other vendors' ids may contain others.
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

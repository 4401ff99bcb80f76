package gemini

import (
	"encoding/base64"
	"encoding/json"
	"strconv"

	"coder/internal/core/chat"
	"coder/internal/model/jsonscan"
	"coder/internal/model/provider"
	"coder/internal/model/transport"
)

// bodyWriter writes request bodies for this wire.
type bodyWriter struct{}

// head is the part of a body before the contents.
type head = transport.Head[dialect]

func (bodyWriter) Begin(h head) []byte {
	b := []byte(`{"generationConfig":{`)
	if !h.Dialect.noThoughts {
		b = append(b, `"thinkingConfig":{"includeThoughts":true`...)
		switch {
		case h.Effort == "" || h.Dialect.noEffort:
		case h.Dialect.effortByLevel:
			level := "low"
			if provider.ThinkingTokens(h.Effort) > provider.ThinkingTokens("low") {
				level = "high"
			}
			b = append(append(append(b, `,"thinkingLevel":"`...), level...), '"')
		default:
			b = strconv.AppendInt(append(b, `,"thinkingBudget":`...),
				int64(min(provider.ThinkingTokens(h.Effort), maxThinkingTokens)), 10)
		}
		b = append(b, '}')
	}
	if h.Temperature != "" && !h.Dialect.noTemperature {
		b = append(append(transport.Comma(b), `"temperature":`...), h.Temperature...)
	}
	if h.MaxTokens > 0 {
		b = append(transport.Comma(b), `"maxOutputTokens":`...)
		b = strconv.AppendInt(b, int64(h.MaxTokens), 10)
	}
	b = append(b, '}')
	if len(h.Tools) > 0 {
		b = append(b, `,"tools":[{"functionDeclarations":[`...)
		for _, t := range h.Tools {
			b = append(transport.Comma(b), `{"name":`...)
			b = append(transport.Quote(b, t.Name), `,"description":`...)
			b = transport.Quote(b, t.Doc)
			if jsonscan.IsObject(t.Schema) && !jsonscan.IsNull(jsonscan.Get(t.Schema, "properties")) {
				if h.Dialect.legacySchemas {
					b = append(append(b, `,"parameters":`...), legacySchema(t.Schema)...)
				} else {
					b = append(append(b, `,"parametersJsonSchema":`...), t.Schema...)
				}
			}
			b = append(b, '}')
		}
		b = append(b, `]}]`...)
	}
	if h.System != "" {
		b = append(b, `,"systemInstruction":{"parts":[{"text":`...)
		b = append(transport.Quote(b, h.System), `}]}`...)
	}
	return append(b, `,"contents":[`...)
}

// maxThinkingTokens is the largest thinking budget that every model of this wire accepts.
const maxThinkingTokens = 24576

// legacySchema reduces a schema to the few keywords that older servers know.
func legacySchema(raw json.RawMessage) json.RawMessage {
	var whole any
	if json.Unmarshal(raw, &whole) != nil {
		return json.RawMessage(`{"type":"object"}`)
	}
	var reduce func(v any) any
	reduce = func(v any) any {
		o, ok := v.(map[string]any)
		if !ok {
			return v
		}
		kept := make(map[string]any)
		for k, x := range o {
			switch k {
			case "type", "description", "enum", "required", "format", "nullable":
				kept[k] = x
			case "items":
				kept[k] = reduce(x)
			case "anyOf", "oneOf":
				if list, ok := x.([]any); ok {
					for i := range list {
						list[i] = reduce(list[i])
					}
					kept["anyOf"] = list
				}
			case "properties":
				if props, ok := x.(map[string]any); ok {
					for name := range props {
						props[name] = reduce(props[name])
					}
					kept[k] = props
				}
			}
		}
		return kept
	}
	out, err := json.Marshal(reduce(whole))
	if err != nil {
		return json.RawMessage(`{"type":"object"}`)
	}
	return out
}

// bodyState is the state of partly written contents. The last content has this role and lacks its closing
// brackets, so that another part can follow. waiting holds the calls without a result.
type bodyState struct {
	role    role
	pending transport.Pending
}

type role string

const (
	roleUser  role = "user"
	roleModel role = "model"
)

// End adds a result for every unanswered call and closes the body.
func (bodyWriter) End(_ head, s bodyState) string {
	if s.role == "" {
		return `]}`
	}
	return string(append(s.closeUnanswered(nil), `]}]}`...))
}

// closeUnanswered writes a "no result" result for every call
// without one: this wire requires as many results as calls.
func (s *bodyState) closeUnanswered(b []byte) []byte {
	for _, c := range s.pending {
		b = appendResult(b, s, c.Name, transport.NoResult, true)
	}
	s.pending = nil
	return b
}

// openPart begins a part of a content with role r, in the current content or a new one.
func (s *bodyState) openPart(b []byte, r role) []byte {
	switch {
	case s.role == r:
		return append(b, ',')
	case s.role != "":
		b = append(b, `]},`...)
	case r == roleModel:
		b = append(b, `{"role":"user","parts":[{"text":"(continued)"}]},`...)
	}
	s.role = r
	b = append(append(b, `{"role":"`...), r...)
	return append(b, `","parts":[`...)
}

// Append writes a message as its parts.
func (bodyWriter) Append(h head, b []byte, s bodyState, m chat.Message) ([]byte, bodyState) {
	if m.Role == chat.Tool {
		for r := range chat.PartsOf[chat.ToolResult](m) {
			left, call, asked := s.pending.Without(r.CallID)
			if asked {
				s.pending, b = left, appendResult(b, &s, call.Name, r.Text, r.Failed)
			} else {
				b = appendText(s.closeUnanswered(b), &s, roleUser, transport.OrphanResult(r), "")
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
			b = appendText(b, &s, roleUser, string(p), "")
		case chat.Image:
			b = append(s.openPart(b, roleUser), `{"inlineData":{"mimeType":`...)
			b = append(transport.Quote(b, p.MediaType), `,"data":"`...)
			b = append(base64.StdEncoding.AppendEncode(b, p.Data), `"}}`...)
		}
	}
	return b, s
}

func appendText(b []byte, s *bodyState, r role, text, signature string) []byte {
	if text == "" {
		return b
	}
	b = transport.Quote(append(s.openPart(b, r), `{"text":`...), text)
	if signature != "" {
		b = transport.Quote(append(b, `,"thoughtSignature":`...), signature)
	}
	return append(b, '}')
}

func appendResult(b []byte, s *bodyState, name, text string, failed bool) []byte {
	b = append(s.openPart(b, roleUser), `{"functionResponse":{"name":`...)
	b = append(transport.Quote(b, name), `,"response":{`...)
	if failed {
		b = append(b, `"error":`...)
	} else {
		b = append(b, `"output":`...)
	}
	return append(transport.Quote(b, text), `}}}`...)
}

// unsignedPlaceholder is the vendor's placeholder for the signature of a call from another model.
const unsignedPlaceholder = "skip_thought_signature_validator"

func appendReply(h head, b []byte, s bodyState, m chat.Message) ([]byte, bodyState) {
	var signature string
	for r := range chat.PartsOf[chat.Reasoning](m) {
		if r.Field == thoughtField {
			signature = jsonscan.String(jsonscan.Get(r.Details, "signature"))
		}
	}
	b = appendText(b, &s, roleModel, m.Text(), signature)
	for i, c := range m.Calls() {
		b = append(s.openPart(b, roleModel), `{"functionCall":{"name":`...)
		b = append(transport.Quote(b, c.Name), `,"args":`...)
		b = append(append(b, transport.Args(c)...), '}')
		sign := jsonscan.String(jsonscan.Get(jsonscan.Get(c.Extra, "google"), "thought_signature"))
		if sign == "" && i == 0 && h.Dialect.needsSignatures {
			sign = unsignedPlaceholder
		}
		if sign != "" {
			b = transport.Quote(append(b, `,"thoughtSignature":`...), sign)
		}
		b = append(b, '}')
		s.pending = s.pending.With(c)
	}
	return b, s
}

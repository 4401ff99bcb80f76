package gemini

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"

	"coder/internal/core/chat"
	"coder/internal/model/jsonscan"
	"coder/internal/model/provider"
	"coder/internal/model/transport"

	"github.com/go-json-experiment/json/jsontext"
)

// head is all of a body that comes before the contents.
type head struct {
	system      string
	tools       []provider.ToolSpec
	maxTokens   int
	effort      string
	temperature string // as it is written
	dialect     dialect
}

func (h head) Same(o head) bool {
	return h.system == o.system && h.maxTokens == o.maxTokens && h.effort == o.effort && h.temperature == o.temperature && h.dialect == o.dialect && transport.SameTools(h.tools, o.tools)
}

func (h head) Own() head {
	h.tools = slices.Clone(h.tools)
	return h
}

func (h head) Begin() []byte {
	b := []byte(`{"generationConfig":{`)
	if !h.dialect.noThoughts {
		b = append(b, `"thinkingConfig":{"includeThoughts":true`...)
		switch {
		case h.effort == "" || h.dialect.noEffort:
		case h.dialect.byLevel:
			level := "low"
			if provider.ThinkingTokens(h.effort) > provider.ThinkingTokens("low") {
				level = "high"
			}
			b = append(append(append(b, `,"thinkingLevel":"`...), level...), '"')
		default:
			b = strconv.AppendInt(append(b, `,"thinkingBudget":`...), int64(min(provider.ThinkingTokens(h.effort), mostThinking)), 10)
		}
		b = append(b, '}')
	}
	if h.temperature != "" && !h.dialect.noTemperature {
		b = append(append(next(b), `"temperature":`...), h.temperature...)
	}
	if h.maxTokens > 0 {
		b = append(next(b), `"maxOutputTokens":`...)
		b = strconv.AppendInt(b, int64(h.maxTokens), 10)
	}
	b = append(b, '}')
	if len(h.tools) > 0 {
		b = append(b, `,"tools":[{"functionDeclarations":[`...)
		for _, t := range h.tools {
			b = append(next(b), `{"name":`...)
			b = append(quote(b, t.Name), `,"description":`...)
			b = quote(b, t.Doc)
			if jsonscan.IsObject(t.Schema) && !jsonscan.IsNull(jsonscan.Get(t.Schema, "properties")) {
				if h.dialect.oldSchemas {
					b = append(append(b, `,"parameters":`...), oldSchema(t.Schema)...)
				} else {
					b = append(append(b, `,"parametersJsonSchema":`...), t.Schema...)
				}
			}
			b = append(b, '}')
		}
		b = append(b, `]}]`...)
	}
	if h.system != "" {
		b = append(b, `,"systemInstruction":{"parts":[{"text":`...)
		b = append(quote(b, h.system), `}]}`...)
	}
	return append(b, `,"contents":[`...)
}

// mostThinking is the largest budget that every model of this wire takes.
const mostThinking = 24576

// oldSchema is a schema in the few words that older servers know.
func oldSchema(raw json.RawMessage) json.RawMessage {
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

// state is where the contents stand: they end in one of role that lacks its
// closing brackets, so that one more part can follow. waiting are the calls
// that have no result yet.
type state struct {
	role    role
	waiting []waiting
}

type waiting struct{ id, name string }

type role string

const (
	user  role = "user"
	model role = "model"
)

// End answers the calls that nobody answered, and closes the body.
func (h head) End(s state) string {
	if s.role == "" {
		return `]}`
	}
	return string(append(s.unanswered(nil), `]}]}`...))
}

// unanswered says of each call without a result that it has none: this wire
// wants as many results as there were calls.
func (s *state) unanswered(b []byte) []byte {
	for _, w := range s.waiting {
		b = appendResult(b, s, w.name, "There is no result of this call.", true)
	}
	s.waiting = nil
	return b
}

// open begins a part of a content of role r, the one under way or the next.
func (s *state) open(b []byte, r role) []byte {
	switch {
	case s.role == r:
		return append(b, ',')
	case s.role != "":
		b = append(b, `]},`...)
	case r == model:
		b = append(b, `{"role":"user","parts":[{"text":"(continued)"}]},`...)
	}
	s.role = r
	b = append(append(b, `{"role":"`...), r...)
	return append(b, `","parts":[`...)
}

// Append writes a message as the parts it is made of.
func (h head) Append(b []byte, s state, m chat.Message) ([]byte, state) {
	if m.Role == chat.Tool {
		for r := range chat.Select[chat.ToolResult](m) {
			i := slices.IndexFunc(s.waiting, func(w waiting) bool { return w.id == r.CallID })
			if i < 0 {
				b = appendText(s.unanswered(b), &s, user, "A result of "+cmp.Or(r.Name, "a tool")+":\n"+r.Text, "")
				continue
			}
			b = appendResult(b, &s, s.waiting[i].name, r.Text, r.Failed)
			s.waiting = slices.Delete(slices.Clone(s.waiting), i, i+1)
		}
		return b, s
	}
	b = s.unanswered(b)
	if m.Role == chat.Assistant {
		return h.appendReply(b, s, m)
	}
	for _, p := range m.Parts {
		switch p := p.(type) {
		case chat.Text:
			b = appendText(b, &s, user, string(p), "")
		case chat.Image:
			b = append(s.open(b, user), `{"inlineData":{"mimeType":`...)
			b = append(quote(b, p.MediaType), `,"data":"`...)
			b = append(base64.StdEncoding.AppendEncode(b, p.Data), `"}}`...)
		}
	}
	return b, s
}

func appendText(b []byte, s *state, r role, text, signature string) []byte {
	if text == "" {
		return b
	}
	b = quote(append(s.open(b, r), `{"text":`...), text)
	if signature != "" {
		b = quote(append(b, `,"thoughtSignature":`...), signature)
	}
	return append(b, '}')
}

func appendResult(b []byte, s *state, name, text string, failed bool) []byte {
	b = append(s.open(b, user), `{"functionResponse":{"name":`...)
	b = append(quote(b, name), `,"response":{`...)
	if failed {
		b = append(b, `"error":`...)
	} else {
		b = append(b, `"output":`...)
	}
	return append(quote(b, text), `}}}`...)
}

// unsigned stands in for the signature of a call that another model made; the
// vendor's own word for that.
const unsigned = "skip_thought_signature_validator"

func (h head) appendReply(b []byte, s state, m chat.Message) ([]byte, state) {
	var signature string
	for r := range chat.Select[chat.Reasoning](m) {
		if r.Field == thoughtField {
			signature = jsonscan.String(jsonscan.Get(r.Details, "signature"))
		}
	}
	b = appendText(b, &s, model, m.Text(), signature)
	for i, c := range m.Calls() {
		b = append(s.open(b, model), `{"functionCall":{"name":`...)
		b = append(quote(b, c.Name), `,"args":`...)
		if c.Broken != "" || !jsonscan.IsObject(c.Args) {
			b = append(b, `{}`...)
		} else {
			b = append(b, c.Args...)
		}
		b = append(b, '}')
		sign := jsonscan.String(jsonscan.Get(jsonscan.Get(c.Extra, "google"), "thought_signature"))
		if sign == "" && i == 0 && h.dialect.mustBeSigned {
			sign = unsigned
		}
		if sign != "" {
			b = quote(append(b, `,"thoughtSignature":`...), sign)
		}
		b = append(b, '}')
		s.waiting = append(s.waiting[:len(s.waiting):len(s.waiting)], waiting{c.ID, c.Name})
	}
	return b, s
}

// next puts a comma where one is due in a list or an object.
func next(b []byte) []byte {
	if c := b[len(b)-1]; c != '[' && c != '{' {
		return append(b, ',')
	}
	return b
}

// quote appends s as a JSON string; what is not UTF-8 becomes U+FFFD.
func quote(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s) // the error only reports the replacement
	return b
}

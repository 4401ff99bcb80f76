package openai

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/model/jsonscan"
	"coder/internal/model/provider"
	"coder/internal/model/transport"
)

// dialect holds what a server has rejected. The zero dialect omits nothing.
type dialect struct {
	noStreamOptions    bool // rejects stream_options
	wantsMaxCompletion bool // wants max_completion_tokens instead of max_tokens
	noReasoning        bool // rejects thinking in earlier messages
	noExtra            bool // rejects extra_content
	noEffort           bool // rejects reasoning_effort, or this level
	noTemperature      bool // the model's temperature is fixed
	progress           bool // reports prefill progress on request
}

// appendMessage appends m in the form of the chat completions wire.
func appendMessage(b []byte, m chat.Message, d dialect) []byte {
	if m.Role == chat.Tool { // a tool message answers exactly one call
		for r := range chat.PartsOf[chat.ToolResult](m) {
			b = append(transport.Comma(b), `{"role":"tool","tool_call_id":`...)
			b = transport.Quote(b, r.CallID)
			b = append(b, `,"content":`...)
			b = append(transport.Quote(b, r.Text), '}')
		}
		return b
	}
	b = append(transport.Comma(b), `{"role":`...)
	b = transport.Quote(b, string(m.Role))
	b = append(b, `,"content":`...)
	// Text is a string, as most servers want it, and a list of parts only if
	// there are images. A message of calls alone has null, as it came.
	calls, text := m.Calls(), m.Text()
	switch hasImage := slices.ContainsFunc(m.Parts, isImage); {
	case hasImage:
		b = appendParts(b, m)
	case text == "" && len(calls) > 0:
		b = append(b, "null"...)
	default:
		b = transport.Quote(b, text)
	}
	if !d.noReasoning {
		b = appendReasoning(b, m)
	}
	if len(calls) > 0 {
		b = append(b, `,"tool_calls":[`...)
		for _, c := range calls {
			b = append(transport.Comma(b), `{"id":`...)
			b = transport.Quote(b, c.ID)
			b = append(b, `,"type":"function","function":{"name":`...)
			b = transport.Quote(b, c.Name)
			b = append(b, `,"arguments":`...)
			b = append(transport.Quote(b, string(transport.Args(c))), '}')
			if !d.noExtra && jsonscan.IsObject(c.Extra) {
				b = append(b, `,"extra_content":`...)
				b = append(b, c.Extra...)
			}
			b = append(b, '}')
		}
		b = append(b, ']')
	}
	return append(b, '}')
}

func isImage(p chat.Part) bool {
	_, ok := p.(chat.Image)
	return ok
}

func appendParts(b []byte, m chat.Message) []byte {
	b = append(b, '[')
	for _, p := range m.Parts {
		switch p := p.(type) {
		case chat.Text:
			b = append(transport.Comma(b), `{"type":"text","text":`...)
			b = append(transport.Quote(b, string(p)), '}')
		case chat.Image:
			if p.MediaType == chat.PDF {
				b = append(transport.Comma(b), `{"type":"text","text":"[a PDF was here; this endpoint does not accept PDFs]"}`...)
				continue
			}
			b = append(transport.Comma(b), `{"type":"image_url","image_url":{"url":"data:`...)
			media := transport.Quote(nil, p.MediaType)
			b = append(b, media[1:len(media)-1]...)
			b = append(b, `;base64,`...)
			b = base64.StdEncoding.AppendEncode(b, p.Data)
			b = append(b, `"}}`...)
		}
	}
	return append(b, ']')
}

// appendReasoning appends thinking under its original field name. Thinking from another wire is omitted.
func appendReasoning(b []byte, m chat.Message) []byte {
	var text, field string
	var details json.RawMessage
	for r := range chat.PartsOf[chat.Reasoning](m) {
		switch r.Field {
		case "reasoning_content", "reasoning", "reasoning_text", "thinking":
			text, field = text+r.Text, r.Field
		case detailsField:
		default:
			continue
		}
		if r.Details != nil {
			details = r.Details
		}
	}
	if field != "" && text != "" {
		b = append(b, `,"`+field+`":`...)
		b = transport.Quote(b, text)
	}
	if len(details) > 0 && details[0] == '[' && jsonscan.IsComplete(details) {
		b = append(b, `,"reasoning_details":`...)
		b = append(b, details...)
	}
	return b
}

// adapt returns d without what the complaint, in lower case, is about.
func (d dialect) adapt(req provider.Request, complaint string) dialect {
	names := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(complaint, w) })
	}
	if names("stream_options", "include_usage") {
		d.noStreamOptions = true
	}
	if names("max_completion_tokens") {
		d.wantsMaxCompletion = true
	}
	if names("reasoning_content", "reasoning_details", "reasoning_text", "'reasoning'", `"reasoning"`) &&
		names("unsupported", "not supported", "unknown", "unrecognized", "unexpected", "not permitted", "extra ",
			"additional", "not allowed") {
		d.noReasoning = true
	}
	if names("extra_content") {
		d.noExtra = true
	}
	d.noEffort = d.noEffort || req.Effort != "" && names("reasoning_effort", "effort")
	d.noTemperature = d.noTemperature || req.Temperature != nil && names("temperature")
	return d
}

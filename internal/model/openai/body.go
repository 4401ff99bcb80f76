package openai

import (
	"slices"
	"strconv"

	"coder/internal/core/chat"
	"coder/internal/model/jsonscan"
	"coder/internal/model/provider"
	"coder/internal/model/transport"
)

// head is all of a body that comes before the messages.
type head struct {
	model, system string
	tools         []provider.ToolSpec
	maxTokens     int
	effort        string
	temperature   string // as it is written
	dialect       dialect
	progress      bool // the server is one that tells how far it has read, and has said so
}

func (h head) Same(o head) bool {
	return h.model == o.model && h.system == o.system && h.maxTokens == o.maxTokens && h.dialect == o.dialect && h.progress == o.progress && h.effort == o.effort && h.temperature == o.temperature && transport.SameTools(h.tools, o.tools)
}

func (h head) Own() head {
	h.tools = slices.Clone(h.tools)
	return h
}

// Begin writes the head, up to and including the system message.
func (h head) Begin() []byte {
	b := append([]byte(nil), `{"model":`...)
	b = quote(b, h.model)
	b = append(b, `,"stream":true`...)
	if !h.dialect.noStreamOptions {
		b = append(b, `,"stream_options":{"include_usage":true}`...)
	}
	if h.effort != "" && !h.dialect.noEffort {
		b = quote(append(b, `,"reasoning_effort":`...), h.effort)
	}
	if h.temperature != "" && !h.dialect.noTemperature {
		b = append(append(b, `,"temperature":`...), h.temperature...)
	}
	if h.progress {
		b = append(b, `,"return_progress":true`...)
	}
	if h.maxTokens > 0 {
		name := `,"max_tokens":` // every compatible server knows that name, and the one that gave it up says so
		if h.dialect.completionTokens {
			name = `,"max_completion_tokens":`
		}
		b = append(b, name...)
		b = strconv.AppendInt(b, int64(h.maxTokens), 10)
	}
	if len(h.tools) > 0 {
		b = append(b, `,"tools":[`...)
		for _, t := range h.tools {
			b = append(next(b), `{"type":"function","function":{"name":`...)
			b = quote(b, t.Name)
			b = append(b, `,"description":`...)
			b = quote(b, t.Doc)
			b = append(b, `,"parameters":`...)
			if jsonscan.IsObject(t.Schema) {
				b = append(b, t.Schema...)
			} else {
				b = append(b, `{"type":"object","properties":{}}`...)
			}
			b = append(b, `}}`...)
		}
		b = append(b, ']')
	}
	b = append(b, `,"messages":[`...)
	if h.system != "" {
		b = appendMessage(b, chat.Say(chat.System, h.system), h.dialect)
	}
	return b
}

// Append writes a message in the form of the chat completions wire, which does
// not depend on those before it.
func (h head) Append(b []byte, s struct{}, m chat.Message) ([]byte, struct{}) {
	return appendMessage(b, m, h.dialect), s
}

func (h head) End(struct{}) string { return tail }

const tail = `]}`

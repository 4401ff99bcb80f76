package openai

import (
	"strconv"

	"coder/internal/core/chat"
	"coder/internal/model/transport"
)

// bodyWriter writes request bodies for this wire.
type bodyWriter struct{}

// head is the part of a body before the messages.
type head = transport.Head[dialect]

// Begin writes the head, up to and including the system message.
func (bodyWriter) Begin(h head) []byte {
	b := append([]byte(nil), `{"model":`...)
	b = transport.Quote(b, h.Model)
	b = append(b, `,"stream":true`...)
	if !h.Dialect.noStreamOptions {
		b = append(b, `,"stream_options":{"include_usage":true}`...)
	}
	if h.Effort != "" && !h.Dialect.noEffort {
		b = transport.Quote(append(b, `,"reasoning_effort":`...), h.Effort)
	}
	if h.Temperature != "" && !h.Dialect.noTemperature {
		b = append(append(b, `,"temperature":`...), h.Temperature...)
	}
	if h.Dialect.progress {
		b = append(b, `,"return_progress":true`...)
	}
	if h.MaxTokens > 0 {
		name := `,"max_tokens":` // compatible servers know this name; a server that rejects it says so
		if h.Dialect.wantsMaxCompletion {
			name = `,"max_completion_tokens":`
		}
		b = append(b, name...)
		b = strconv.AppendInt(b, int64(h.MaxTokens), 10)
	}
	if len(h.Tools) > 0 {
		b = append(b, `,"tools":[`...)
		for _, t := range h.Tools {
			b = append(transport.Comma(b), `{"type":"function","function":{`...)
			b = transport.AppendTool(b, t, `,"parameters":`)
			b = append(b, `}}`...)
		}
		b = append(b, ']')
	}
	b = append(b, `,"messages":[`...)
	if h.System != "" {
		b = appendMessage(b, chat.TextMessage(chat.System, h.System), h.Dialect)
	}
	return b
}

// Append writes a message in the form of the chat completions
// wire, which does not depend on earlier messages.
func (bodyWriter) Append(h head, b []byte, s struct{}, m chat.Message) ([]byte, struct{}) {
	return appendMessage(b, m, h.Dialect), s
}

func (bodyWriter) End(head, struct{}) string { return bodyTail }

const bodyTail = `]}`

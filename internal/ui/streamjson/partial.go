package streamjson

import (
	"encoding/json"

	"coder/internal/core/chat"
	"coder/internal/core/event"
)

// partialReply is an arriving reply: a message whose blocks open and close. A reply that is requested again
// is closed without a stop reason, and the next one opens as its own message.
type partialReply struct {
	id    string
	kind  string // the open block's kind: text, thinking, a call, or none
	index int    // the open block's index
}

type streamEvent struct {
	Type    string  `json:"type"`
	Event   any     `json:"event"`
	Session string  `json:"session_id"`
	Parent  *string `json:"parent_tool_use_id"`
	UUID    string  `json:"uuid"`
}

type (
	messageStart struct {
		Type    string           `json:"type"`
		Message assistantMessage `json:"message"`
	}
	blockStart struct {
		Type  string `json:"type"`
		Index int    `json:"index"`
		Block block  `json:"content_block"`
	}
	blockDelta struct {
		Type  string `json:"type"`
		Index int    `json:"index"`
		Delta block  `json:"delta"`
	}
	blockStop struct {
		Type  string `json:"type"`
		Index int    `json:"index"`
	}
	messageDelta struct {
		Type  string    `json:"type"`
		Delta stopDelta `json:"delta"`
		Usage usage     `json:"usage"`
	}
	argsDelta struct {
		Type string `json:"type"`
		JSON string `json:"partial_json"`
	}
	stopDelta struct {
		Stop *string `json:"stop_reason"`
	}
	messageStop struct {
		Type string `json:"type"`
	}
)

// sendDelta sends one piece, opening its message and block first if necessary.
func (r *Renderer) sendDelta(rec event.Record, kind string, empty, delta block) error {
	if !r.options.Partial {
		return nil
	}
	p := r.partials[rec.Task]
	if p == nil {
		p = &partialReply{id: messageID(r.lineUUID("reply"))}
		r.partials[rec.Task] = p
		start := assistantMessage{ID: p.id, Type: "message", Role: chat.Assistant, Model: r.options.Model, Content: []block{}}
		if err := r.sendStreamEvent(rec, messageStart{"message_start", start}); err != nil {
			return err
		}
	}
	if p.kind != kind {
		if err := r.endBlock(rec, p); err != nil {
			return err
		}
		p.kind = kind
		if err := r.sendStreamEvent(rec, blockStart{"content_block_start", p.index, empty}); err != nil {
			return err
		}
	}
	return r.sendStreamEvent(rec, blockDelta{"content_block_delta", p.index, delta})
}

// sendCalls sends the calls of a complete reply, each as a block in one piece.
func (r *Renderer) sendCalls(rec event.Record, m chat.Message) error {
	for _, p := range m.Parts {
		if p, ok := p.(chat.ToolCall); ok {
			call := r.call(p)
			args := string(call.Input)
			call.Input = json.RawMessage("{}")
			if err := r.sendDelta(rec, "tool_use "+call.ID, call, argsDelta{"input_json_delta", args}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *Renderer) endBlock(rec event.Record, p *partialReply) error {
	if p.kind == "" {
		return nil
	}
	p.kind = ""
	p.index++
	return r.sendStreamEvent(rec, blockStop{"content_block_stop", p.index - 1})
}

func (r *Renderer) endPartial(rec event.Record, stop *string, used usage) error {
	p := r.partials[rec.Task]
	if p == nil {
		return nil
	}
	delete(r.partials, rec.Task)
	if err := r.endBlock(rec, p); err != nil {
		return err
	}
	if err := r.sendStreamEvent(rec, messageDelta{"message_delta", stopDelta{stop}, used}); err != nil {
		return err
	}
	return r.sendStreamEvent(rec, messageStop{"message_stop"})
}

func (r *Renderer) sendStreamEvent(rec event.Record, ev any) error {
	return r.writeFitted(streamEvent{"stream_event", ev, r.options.Session, r.origins.callOf(rec.Task),
		r.lineUUID("stream")})
}

package streamjson

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/core/event"
)

// envelope is a message with its stream metadata.
type envelope struct {
	Type    string  `json:"type"`
	Message any     `json:"message"`
	Session string  `json:"session_id"`
	UUID    string  `json:"uuid"`
	Parent  *string `json:"parent_tool_use_id"` // the call whose subtask this belongs to
	// Result is a call's result, for programs that show more than its text.
	Result json.RawMessage `json:"tool_use_result,omitempty"`
}

func (r *Renderer) envelope(rec event.Record, kind string, message any) envelope {
	return envelope{kind, message, r.options.Session, r.recordUUID(rec), r.origins.callOf(rec.Task), nil}
}

// maxResult limits the size of a result that is sent twice.
const maxResult = 64 << 10

// result returns the only result in m, as an object, for a driving program.
func (r *Renderer) result(m chat.Message) json.RawMessage {
	if r.options.Driver == nil || len(m.Parts) != 1 {
		return nil
	}
	p, ok := m.Parts[0].(chat.ToolResult)
	if !ok || len(p.Text) > maxResult || !strings.HasPrefix(p.Text, "{") || !json.Valid([]byte(p.Text)) {
		return nil
	}
	return json.RawMessage(p.Text)
}

type assistantMessage struct {
	ID      string    `json:"id"`
	Type    string    `json:"type"`
	Role    chat.Role `json:"role"`
	Model   string    `json:"model"`
	Content []block   `json:"content"`
	Stop    *string   `json:"stop_reason"`
	Usage   usage     `json:"usage"`
}

type userMessage struct {
	Role    chat.Role `json:"role"`
	Content []block   `json:"content"`
}

// block is one of the block types below.
type block any

type (
	textBlock struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	thinkingBlock struct {
		Type      string  `json:"type"`
		Thinking  string  `json:"thinking"`
		Signature *string `json:"signature,omitempty"` // "" for programs that insist on one
	}
	toolUseBlock struct {
		Type  string          `json:"type"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
	toolResultBlock struct {
		Type    string `json:"type"`
		CallID  string `json:"tool_use_id"`
		Content string `json:"content"`
		IsError bool   `json:"is_error"`
	}
	imageBlock struct {
		Type   string      `json:"type"`
		Source imageSource `json:"source"`
	}
	imageSource struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
	}
)

func messageID(uuid string) string { return "msg_" + strings.ReplaceAll(uuid, "-", "") }

func (r *Renderer) contentBlocks(m chat.Message) []block {
	bs := []block{}
	for _, p := range m.Parts {
		switch p := p.(type) {
		case chat.Text:
			bs = append(bs, textBlock{"text", r.large.Add(string(p))})
		case chat.Reasoning:
			if p.Text != "" { // sealed content is for the provider only
				think := thinkingBlock{Type: "thinking", Thinking: r.large.Add(p.Text)}
				if r.options.Driver != nil {
					think.Signature = new(string)
				}
				bs = append(bs, think)
			}
		case chat.ToolCall:
			bs = append(bs, r.call(p))
		case chat.ToolResult:
			bs = append(bs, toolResultBlock{"tool_result", p.CallID, r.large.Add(p.Text), p.Failed})
		case chat.Image:
			data := base64.StdEncoding.EncodeToString(p.Data)
			bs = append(bs, imageBlock{"image", imageSource{"base64", p.MediaType, data}})
		}
	}
	return bs
}

func (r *Renderer) call(c chat.ToolCall) toolUseBlock {
	name, args := c.Name, objectOrEmpty(c.Args)
	if r.options.Driver != nil {
		name, args = r.options.Driver.ConvertCall(name, args)
	}
	return toolUseBlock{"tool_use", c.ID, name, args}
}

// objectOrEmpty returns raw, or an empty object if raw is empty.
func objectOrEmpty(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("{}")
	}
	return raw
}

// stopReasons maps our stop reasons to the stream's words.
var stopReasons = map[string]string{"end": "end_turn", "tools": "tool_use", "length": "max_tokens",
	"loop": "max_tokens", "size": "max_tokens", "filter": "refusal"}

// stopReason returns nil for an incomplete reply, or if the model gave no reason.
func stopReason(e event.MessageAdded) *string {
	if s, ok := stopReasons[e.StopReason]; ok && !e.Interrupted {
		return &s
	}
	return nil
}

// usage counts tokens as the stream does: tokens read from or written to the provider's cache are not
// part of the input.
type usage struct {
	In      int `json:"input_tokens"`
	Out     int `json:"output_tokens"`
	Cached  int `json:"cache_read_input_tokens"`
	Written int `json:"cache_creation_input_tokens,omitzero"`
}

func toUsage(u *chat.Usage) usage {
	if u == nil {
		return usage{}
	}
	return usage{max(0, u.In-u.Cached-u.CacheWritten), u.Out, u.Cached, u.CacheWritten}
}

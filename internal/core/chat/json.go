package chat

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"

	"coder/internal/core/jsonx"
	"coder/internal/core/message"
)

// A Message is encoded in the OpenAI chat form: role, content, reasoning, tool_calls, tool_call_id,
// name. Data that this form cannot express has its own keys (reasoning_field, reasoning_details, failed,
// and per call broken, extra_content), so that decoding restores the message.

type wireMessage struct {
	Role             Role            `json:"role"`
	Content          any             `json:"content"` // nil, a string, or parts
	Reasoning        string          `json:"reasoning,omitempty"`
	ReasoningField   string          `json:"reasoning_field,omitempty"`
	ReasoningDetails json.RawMessage `json:"reasoning_details,omitempty"`
	ToolCalls        []wireCall      `json:"tool_calls,omitempty"`
	ToolCallID       string          `json:"tool_call_id,omitempty"`
	Name             string          `json:"name,omitempty"`
	Failed           bool            `json:"failed,omitempty"`
}

type wireCall struct {
	ID       string          `json:"id"`
	Type     string          `json:"type"`
	Function wireFunction    `json:"function"`
	Broken   string          `json:"broken,omitempty"`
	Extra    json.RawMessage `json:"extra_content,omitempty"`
}

type wireFunction struct {
	Name      string   `json:"name"`
	Arguments wireText `json:"arguments"`
}

// wireText is encoded as a JSON string without a copy, since it may be large.
type wireText []byte

func (t wireText) MarshalText() ([]byte, error) { return t, nil }

func (t *wireText) UnmarshalText(text []byte) error {
	*t = append(wireText(nil), text...)
	return nil
}

type wirePart struct {
	Type     string    `json:"type"`
	Text     string    `json:"text,omitempty"`
	ImageURL *wireLink `json:"image_url,omitempty"`
}

type wireLink struct {
	URL string `json:"url"`
}

// MarshalJSON encodes m so that UnmarshalJSON restores it.
func (m Message) MarshalJSON() ([]byte, error) { return jsonx.Marshal(m.toWire()) }

// JSONValue returns the value that MarshalJSON encodes, for callers that embed a large message in another
// value.
func (m Message) JSONValue(h *jsonx.Holes) any { return m.toWire().withHoles(h) }

// withHoles returns w with holes for its large texts.
func (w wireMessage) withHoles(h *jsonx.Holes) wireMessage {
	if text, ok := w.Content.(string); ok {
		w.Content = h.Add(text)
	}
	w.Reasoning = h.Add(w.Reasoning)
	return w
}

// MarshalOpenAI encodes m with the six keys of the OpenAI chat form and no others.
func (m Message) MarshalOpenAI() (json.RawMessage, error) {
	w := m.toWire()
	w.ReasoningField, w.ReasoningDetails, w.Failed = "", nil, false
	for i := range w.ToolCalls {
		w.ToolCalls[i].Broken, w.ToolCalls[i].Extra = "", nil
	}
	var large jsonx.Holes
	w = w.withHoles(&large)
	return large.Append(nil, w)
}

func (m Message) toWire() wireMessage {
	w := wireMessage{Role: m.Role}
	var (
		text   textBuilder
		parts  []wirePart
		images bool
	)
	for _, p := range m.Parts {
		switch p := p.(type) {
		case Text:
			text.WriteString(string(p))
			parts = append(parts, wirePart{Type: "text", Text: string(p)})
		case Image:
			images = true
			url := "data:" + p.MediaType + ";base64," + base64.StdEncoding.EncodeToString(p.Data)
			parts = append(parts, wirePart{Type: "image_url", ImageURL: &wireLink{url}})
		case Reasoning:
			w.Reasoning += p.Text
			w.ReasoningField, w.ReasoningDetails = p.Field, p.Details
		case ToolCall:
			w.ToolCalls = append(w.ToolCalls, wireCall{
				ID: p.ID, Type: "function", Broken: p.Broken, Extra: p.Extra,
				Function: wireFunction{Name: p.Name, Arguments: wireText(p.Args)},
			})
		case ToolResult:
			w.ToolCallID, w.Name, w.Failed = p.CallID, p.Name, p.Failed
			text.WriteString(p.Text)
			parts = append(parts, wirePart{Type: "text", Text: p.Text})
		}
	}
	switch {
	case images:
		w.Content = parts
	case text == "" && len(w.ToolCalls) > 0:
		w.Content = nil
	default:
		w.Content = string(text)
	}
	return w
}

// textBuilder concatenates parts of a text. A single part, which may be large, is not copied.
type textBuilder string

// WriteString appends a part.
func (j *textBuilder) WriteString(part string) { *j += textBuilder(part) }

// UnmarshalJSON decodes the output of MarshalJSON.
func (m *Message) UnmarshalJSON(data []byte) error {
	var w wireMessage
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*m = Message{Role: w.Role}
	if w.Reasoning != "" || len(w.ReasoningDetails) > 0 {
		m.Parts = append(m.Parts, Reasoning{Text: w.Reasoning, Field: w.ReasoningField, Details: w.ReasoningDetails})
	}
	parts, err := parseContent(w.Content)
	if err != nil {
		return message.Errorf("content of %s message: %w", w.Role, err)
	}
	if w.Role == Tool {
		parts = w.resultParts(parts)
	}
	m.Parts = append(m.Parts, parts...)
	for _, c := range w.ToolCalls {
		m.Parts = append(m.Parts, ToolCall{
			ID: c.ID, Name: c.Function.Name, Args: json.RawMessage(c.Function.Arguments), Broken: c.Broken, Extra: c.Extra,
		})
	}
	return nil
}

// resultParts returns the content of a tool message: the result, then its pictures.
func (w wireMessage) resultParts(content []Part) []Part {
	m := Message{Parts: content}
	parts := []Part{ToolResult{CallID: w.ToolCallID, Name: w.Name, Text: m.Text(), Failed: w.Failed}}
	for img := range PartsOf[Image](m) {
		parts = append(parts, img)
	}
	return parts
}

func parseContent(content any) ([]Part, error) {
	switch c := content.(type) {
	case nil:
		return nil, nil
	case string:
		if c == "" {
			return nil, nil
		}
		return []Part{Text(c)}, nil
	case []any:
		parts := make([]Part, 0, len(c))
		for _, v := range c {
			p, err := parseContentPart(v)
			if err != nil {
				return nil, err
			}
			parts = append(parts, p)
		}
		return parts, nil
	}
	return nil, errors.New("neither text nor a list of parts")
}

func parseContentPart(v any) (Part, error) {
	m, _ := v.(map[string]any)
	if link, ok := m["image_url"].(map[string]any); ok {
		url, _ := link["url"].(string)
		media, data, ok := strings.Cut(strings.TrimPrefix(url, "data:"), ";base64,")
		if !ok {
			return Image{}, message.Errorf("image is not a data URL")
		}
		b, err := base64.StdEncoding.DecodeString(data)
		return Image{MediaType: media, Data: b}, err
	}
	text, ok := m["text"].(string)
	if !ok && m["type"] != "text" {
		return nil, errors.New("a part is neither text nor an image")
	}
	return Text(text), nil
}

// Package chat defines the messages of a conversation between the user, a model and its tools. It is
// vocabulary only: no I/O, no goroutines, and no imports beyond the standard library.
//
// A Message is immutable: a holder may keep it, share it between goroutines, and compare it with another
// by the identity of its Parts (see [IsSame]). To change a message, make a new one.
package chat

import (
	"encoding/json"
	"iter"
	"strings"
)

// Role is the author of a message.
type Role string

// The roles of the OpenAI chat form.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool"
)

// Message is one contribution to the conversation.
type Message struct {
	Role  Role
	Parts []Part
}

// A Part is one of [Text], [Reasoning], [Image], [ToolCall] or [ToolResult].
type Part interface{ isPart() }

// Text is prose.
type Text string

// Reasoning is the model's own thinking. Field and Details are opaque to coder: Field is the name the
// provider used for the text, Details what it sent with it (signatures, encrypted blocks). Both are sent
// back unchanged.
type Reasoning struct {
	Text    string
	Field   string
	Details json.RawMessage
}

// Image is a picture shown to the model, or a [PDF].
type Image struct {
	MediaType string
	Data      []byte
}

// PDF is the media type of an [Image] that is a PDF.
const PDF = "application/pdf"

// ToolCall is the model's request to run a tool.
type ToolCall struct {
	ID   string
	Name string
	// Args is always a JSON object.
	Args json.RawMessage
	// Broken is the model's text if it was not a JSON object. Args is then {}, and the call must not run.
	Broken string
	// Extra is data that the provider attached to the call and expects back.
	Extra json.RawMessage
}

// ToolResult answers exactly one ToolCall.
type ToolResult struct {
	CallID string
	Name   string
	Text   string
	Failed bool
}

// ErrorText returns the error sentence of a failed result, or the whole text if it has none.
func (r ToolResult) ErrorText() string {
	var said struct{ Error string }
	if json.Unmarshal([]byte(r.Text), &said) != nil || said.Error == "" {
		return r.Text
	}
	return said.Error
}

func (Text) isPart()       {}
func (Reasoning) isPart()  {}
func (Image) isPart()      {}
func (ToolCall) isPart()   {}
func (ToolResult) isPart() {}

// TextMessage returns a plain-text message.
func TextMessage(r Role, text string) Message {
	return Message{Role: r, Parts: []Part{Text(text)}}
}

// ToolMessage returns the tool message that carries r.
func ToolMessage(r ToolResult) Message {
	return Message{Role: Tool, Parts: []Part{r}}
}

// Text joins the prose in m and omits everything else.
func (m Message) Text() string {
	if len(m.Parts) == 1 {
		if t, ok := m.Parts[0].(Text); ok {
			return string(t)
		}
	}
	var b strings.Builder
	for t := range PartsOf[Text](m) {
		b.WriteString(string(t))
	}
	return b.String()
}

// Reasoning joins the reasoning in m.
func (m Message) Reasoning() string {
	var b strings.Builder
	for r := range PartsOf[Reasoning](m) {
		b.WriteString(r.Text)
	}
	return b.String()
}

// Calls lists the tool calls in m, in the model's order.
func (m Message) Calls() []ToolCall {
	var calls []ToolCall
	for c := range PartsOf[ToolCall](m) {
		calls = append(calls, c)
	}
	return calls
}

// PartsOf yields the parts of m that have type P, in order.
func PartsOf[P Part](m Message) iter.Seq[P] {
	return func(yield func(P) bool) {
		for _, p := range m.Parts {
			if p, ok := p.(P); ok && !yield(p) {
				return
			}
		}
	}
}

// IsSame reports whether a and b are the same message, not just equal ones. Its cost does not depend on
// the length of the messages.
func IsSame(a, b Message) bool {
	if a.Role != b.Role || len(a.Parts) != len(b.Parts) {
		return false
	}
	return len(a.Parts) == 0 || &a.Parts[0] == &b.Parts[0]
}

// Usage counts the tokens and the cost of one reply. Cost is in US dollars if the provider reports it,
// else zero.
type Usage struct {
	In        int     `json:"in"`
	Out       int     `json:"out"`
	Cached    int     `json:"cached,omitzero"`
	Reasoning int     `json:"reasoning,omitzero"`
	Cost      float64 `json:"cost,omitzero"`
	// CacheWritten is the number of In tokens written to the provider's cache.
	CacheWritten int `json:"written,omitzero"`
	// Unpriced reports that Cost omits something with an unknown price.
	Unpriced bool `json:"unpriced,omitzero"`
	// Estimated reports that some counts are coder's estimates, because the provider reported none.
	Estimated bool `json:"-"`
}

// Add returns the sum of u and v.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		u.In + v.In, u.Out + v.Out, u.Cached + v.Cached, u.Reasoning + v.Reasoning, u.Cost + v.Cost,
		u.CacheWritten + v.CacheWritten, u.Unpriced || v.Unpriced, u.Estimated || v.Estimated,
	}
}

// Package chat holds the words of a conversation between a person, a model
// and its tools. It is vocabulary only: no I/O, no goroutines, and no imports
// beyond the standard library.
//
// A Message is immutable once made: whoever holds one may keep it, share it
// between goroutines, and tell it apart from another by the identity of its
// Parts (see [Same]). To change a message, make a new one.
package chat

import (
	"encoding/json"
	"iter"
	"strings"
)

// Role says who speaks.
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

// Reasoning is the model's own thinking. Field and Details are opaque to us:
// Field is the name the provider used for the text, Details what it sent
// beside it (signatures, encrypted blocks); both go back to it unchanged.
type Reasoning struct {
	Text    string
	Field   string
	Details json.RawMessage
}

// Image is picture data shown to the model, or a [PDF].
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
	// Broken is what the model wrote where it was not a JSON object. Args is
	// then {}, and the call must not run.
	Broken string
	// Extra is what the provider attached to the call and wants back.
	Extra json.RawMessage
}

// ToolResult answers exactly one ToolCall.
type ToolResult struct {
	CallID string
	Name   string
	Text   string
	Failed bool
}

// Complaint is the sentence in a failed result, or all of it if there is none.
func (r ToolResult) Complaint() string {
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

// Say returns a message made of plain text.
func Say(r Role, text string) Message {
	return Message{Role: r, Parts: []Part{Text(text)}}
}

// Answer returns the tool message that carries r.
func Answer(r ToolResult) Message {
	return Message{Role: Tool, Parts: []Part{r}}
}

// Text joins the prose in m and leaves everything else out.
func (m Message) Text() string {
	if len(m.Parts) == 1 {
		if t, ok := m.Parts[0].(Text); ok {
			return string(t)
		}
	}
	var b strings.Builder
	for t := range Select[Text](m) {
		b.WriteString(string(t))
	}
	return b.String()
}

// Reasoning joins the thinking in m.
func (m Message) Reasoning() string {
	var b strings.Builder
	for r := range Select[Reasoning](m) {
		b.WriteString(r.Text)
	}
	return b.String()
}

// Calls lists the tool calls in m, in the model's order.
func (m Message) Calls() []ToolCall {
	var calls []ToolCall
	for c := range Select[ToolCall](m) {
		calls = append(calls, c)
	}
	return calls
}

// Select yields the parts of m that have type P, in order.
func Select[P Part](m Message) iter.Seq[P] {
	return func(yield func(P) bool) {
		for _, p := range m.Parts {
			if p, ok := p.(P); ok && !yield(p) {
				return
			}
		}
	}
}

// Same reports whether a and b are one and the same message, not merely
// equal ones. It costs the same however long the messages are.
func Same(a, b Message) bool {
	if a.Role != b.Role || len(a.Parts) != len(b.Parts) {
		return false
	}
	return len(a.Parts) == 0 || &a.Parts[0] == &b.Parts[0]
}

// Usage counts what one reply cost. Cost is in US dollars where the provider
// says so, else zero.
type Usage struct {
	In        int     `json:"in"`
	Out       int     `json:"out"`
	Cached    int     `json:"cached,omitzero"`
	Reasoning int     `json:"reasoning,omitzero"`
	Cost      float64 `json:"cost,omitzero"`
	// Written is how many of In were put into the provider's cache.
	Written int `json:"written,omitzero"`
	// Unpriced says that Cost leaves out something whose price is not known.
	Unpriced bool `json:"unpriced,omitzero"`
	// Estimated says that some of it is our own guess, since nobody told.
	Estimated bool `json:"-"`
}

// Add returns the sum of u and v.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		u.In + v.In, u.Out + v.Out, u.Cached + v.Cached, u.Reasoning + v.Reasoning, u.Cost + v.Cost, u.Written + v.Written, u.Unpriced || v.Unpriced, u.Estimated || v.Estimated,
	}
}

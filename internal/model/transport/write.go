package transport

import (
	"cmp"
	"errors"
	"slices"

	"coder/internal/core/chat"
	"coder/internal/model/jsonscan"
	"coder/internal/model/provider"

	"github.com/go-json-experiment/json/jsontext"
)

// Quote appends s as a JSON string; invalid UTF-8 becomes U+FFFD.
func Quote[T ~string](b []byte, s T) []byte {
	b, _ = jsontext.AppendQuote(b, s) // the error only reports the replacement
	return b
}

// Comma appends a comma if a list or an object needs one.
func Comma(b []byte) []byte {
	if n := len(b); n > 0 && b[n-1] != '[' && b[n-1] != '{' {
		return append(b, ',')
	}
	return b
}

// AppendTool appends the members that describe a tool; schema is the key before its parameters.
func AppendTool(b []byte, t provider.ToolSpec, schema string) []byte {
	b = Quote(append(b, `"name":`...), t.Name)
	b = Quote(append(b, `,"description":`...), t.Doc)
	b = append(b, schema...)
	if jsonscan.IsObject(t.Schema) {
		return append(b, t.Schema...)
	}
	return append(b, `{"type":"object","properties":{}}`...)
}

// Args returns the arguments of a call: always an object, whatever the model wrote.
func Args(c chat.ToolCall) []byte {
	if c.Broken == "" && jsonscan.IsObject(c.Args) {
		return c.Args
	}
	return []byte("{}")
}

// Pending are the calls of a conversation without a result. Methods never change an existing list.
type Pending []chat.ToolCall

// With returns p with one more call.
func (p Pending) With(c chat.ToolCall) Pending { return append(p[:len(p):len(p)], c) }

// Without returns p without the call with that id, and the call, if there is one.
func (p Pending) Without(id string) (Pending, chat.ToolCall, bool) {
	i := slices.IndexFunc(p, func(c chat.ToolCall) bool { return c.ID == id })
	if i < 0 {
		return p, chat.ToolCall{}, false
	}
	return slices.Delete(slices.Clone(p), i, i+1), p[i], true
}

// NoResult is the result of an unanswered call, for wires that require a result for each.
const NoResult = "There is no result of this call."

// OrphanResult returns the text for a result whose call is missing.
func OrphanResult(r chat.ToolResult) string {
	return "A result of " + cmp.Or(r.Name, "a tool") + ":\n" + r.Text
}

// Finish ends a reply with Done, or with an error if it is empty
// without a reason. Calls run whatever the stop is called.
func Finish(put func(provider.Delta), said bool, calls int, stop provider.Stop, usage *chat.Usage) error {
	if stop != provider.StopLength && stop != provider.StopFilter {
		switch stop = provider.StopEnd; {
		case calls > 0:
			stop = provider.StopTools
		case !said:
			return &provider.Error{Retryable: true, Err: errors.New("the reply was empty: neither text nor a tool call")}
		}
	}
	put(provider.Done{Stop: stop, Usage: usage})
	return nil
}

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

// Quote appends s as a JSON string; what is not UTF-8 becomes U+FFFD.
func Quote[T ~string](b []byte, s T) []byte {
	b, _ = jsontext.AppendQuote(b, s) // the error only reports the replacement
	return b
}

// Comma puts a comma where one is due in a list or an object.
func Comma(b []byte) []byte {
	if n := len(b); n > 0 && b[n-1] != '[' && b[n-1] != '{' {
		return append(b, ',')
	}
	return b
}

// AppendTool appends the members that tell of a tool; schema is what leads to its
// parameters.
func AppendTool(b []byte, t provider.ToolSpec, schema string) []byte {
	b = Quote(append(b, `"name":`...), t.Name)
	b = Quote(append(b, `,"description":`...), t.Doc)
	b = append(b, schema...)
	if jsonscan.IsObject(t.Schema) {
		return append(b, t.Schema...)
	}
	return append(b, `{"type":"object","properties":{}}`...)
}

// Args are the arguments of a call: always an object, whatever the model wrote.
func Args(c chat.ToolCall) []byte {
	if c.Broken == "" && jsonscan.IsObject(c.Args) {
		return c.Args
	}
	return []byte("{}")
}

// Pending are the calls of a conversation that have no result yet. A list that
// was handed out stays as it is.
type Pending []chat.ToolCall

// With is p and one more call.
func (p Pending) With(c chat.ToolCall) Pending { return append(p[:len(p):len(p)], c) }

// Without is p without the call of that id, and the call, if there is one.
func (p Pending) Without(id string) (Pending, chat.ToolCall, bool) {
	i := slices.IndexFunc(p, func(c chat.ToolCall) bool { return c.ID == id })
	if i < 0 {
		return p, chat.ToolCall{}, false
	}
	return slices.Delete(slices.Clone(p), i, i+1), p[i], true
}

// NoResult is said of a call that nobody answered, where a wire wants a result of
// each.
const NoResult = "There is no result of this call."

// Unasked is how a result is told whose call is not there.
func Unasked(r chat.ToolResult) string {
	return "A result of " + cmp.Or(r.Name, "a tool") + ":\n" + r.Text
}

// Finish ends a reply: with Done, unless it said nothing and made no calls though
// nothing kept it from that. Calls are to be run whatever the stop is called.
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

package provider

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/model/jsonscan"
)

// Reply is a complete answer, folded from deltas.
type Reply struct {
	Message chat.Message
	Stop    Stop
	Usage   *chat.Usage
	Model   string // the model that replied, if not the requested one
	Sent    *chat.SentRequest
}

// Collect folds a stream into a Reply and passes each delta to watch.
// The provider's choice of fragments does not affect the Reply.
//
// If the stream fails, the Reply holds the text and reasoning so far,
// and no tool call: a call in an incomplete message never runs.
func Collect(deltas iter.Seq2[Delta, error], watch func(Delta) error) (Reply, error) {
	var f replyBuilder
	for d, err := range deltas {
		if err != nil {
			return f.partial(), err
		}
		if err := watch(d); err != nil {
			return f.partial(), err
		}
		f.add(d)
	}
	if !f.done {
		return f.partial(), &Error{Kind: ErrCutOff, Retryable: true, Err: errors.New("the stream ended early")}
	}
	return f.complete(), nil
}

// replyBuilder builds a reply. Builders gather the pieces of a field, so
// that many small deltas cost no more than their bytes.
type replyBuilder struct {
	text, thought strings.Builder
	field         string
	details       json.RawMessage
	calls         []*call
	end           Done
	done          bool
}

type call struct {
	id, name string
	args     bytes.Buffer
	extra    json.RawMessage
}

func (f *replyBuilder) add(d Delta) {
	switch d := d.(type) {
	case TextDelta:
		f.text.WriteString(string(d))
	case ReasoningDelta:
		f.thought.WriteString(d.Text)
		if d.Field != "" {
			f.field = d.Field
		}
		if d.Details != nil {
			f.details = d.Details
		}
	case CallDelta:
		for len(f.calls) <= d.Index {
			f.calls = append(f.calls, new(call))
		}
		c := f.calls[d.Index]
		c.id += d.ID
		c.name += d.Name
		c.args.WriteString(d.Args)
		if d.Extra != nil {
			c.extra = d.Extra
		}
	case Restart:
		*f = replyBuilder{}
	case Done:
		f.end, f.done = d, true
	}
}

// partial returns the received part of an incomplete reply.
func (f *replyBuilder) partial() Reply {
	m := chat.Message{Role: chat.Assistant}
	if f.thought.Len() > 0 || f.details != nil {
		m.Parts = append(m.Parts, chat.Reasoning{Text: f.thought.String(), Field: f.field, Details: f.details})
	}
	if f.text.Len() > 0 {
		m.Parts = append(m.Parts, chat.Text(f.text.String()))
	}
	return Reply{Message: m}
}

func (f *replyBuilder) complete() Reply {
	r := f.partial()
	r.Stop, r.Usage, r.Model, r.Sent = f.end.Stop, f.end.Usage, f.end.Model, f.end.Sent
	if r.Stop == StopFilter {
		return r
	}
	taken := make(map[string]bool, len(f.calls))
	for i, c := range f.calls {
		id := c.id
		for n := i; id == "" || taken[id]; n++ { // an id that no other call of the reply has
			id = fmt.Sprintf("%s_%d", cmp.Or(c.id, "call"), n)
		}
		taken[id] = true
		tc := chat.ToolCall{ID: id, Name: c.name, Extra: c.extra}
		tc.Args, tc.Broken = parseArguments(c.args.Bytes())
		if r.Stop.IsTruncated() && i == len(f.calls)-1 {
			// It may be cut off even if it looks complete: some servers close what the model left open.
			tc.Args, tc.Broken = json.RawMessage("{}"), cmp.Or(string(bytes.TrimSpace(c.args.Bytes())), "{")
		}
		r.Message.Parts = append(r.Message.Parts, tc)
	}
	return r
}

// parseArguments interprets the arguments of a model's call: empty and null mean none,
// an object is used as is, a string holding an object is that object. Some servers
// begin every call with an empty object and send the real one then.
func parseArguments(raw []byte) (args json.RawMessage, broken string) {
	raw = bytes.TrimSpace(raw)
	if rest, ok := bytes.CutPrefix(raw, []byte(`{}`)); ok && bytes.HasPrefix(bytes.TrimSpace(rest), []byte(`{"`)) &&
		json.Valid(rest) {
		return parseArguments(rest)
	}
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) || bytes.Equal(raw, []byte(`""`)) {
		return json.RawMessage("{}"), ""
	}
	if raw[0] == '"' {
		var s string
		if json.Unmarshal(raw, &s) == nil {
			return parseArguments([]byte(s))
		}
	}
	if raw[0] != '{' || jsonscan.IsTooDeep(raw) || !json.Valid(raw) {
		return json.RawMessage("{}"), string(raw)
	}
	return json.RawMessage(raw), ""
}

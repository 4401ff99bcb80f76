package openai

import (
	"cmp"
	"errors"
	"strings"
	"time"

	"coder/internal/core/chat"
	"coder/internal/model/jsonscan"
	"coder/internal/model/provider"
	"coder/internal/model/transport"
)

// reply turns the chunks of one reply into deltas.
type reply struct {
	put func(provider.Delta)

	runes, thoughtRunes jsonscan.Joiner
	opening             opening
	details             details
	calls               calls
	field               string // the field of the thinking
	hasText             bool   // the text is more than white space
	started             bool   // a choice had content
	text, callsFrom     origin // the choices that supply text and calls
	usage               *chat.Usage
	stop                provider.Stop // empty until the server said why it stopped
	failure             error         // a stop that is a failure
}

func newReply(put func(provider.Delta)) transport.Decoder { return &reply{put: put} }

// Finished reports whether the server said why it stopped.
func (r *reply) Finished() bool { return r.stop != "" || r.failure != nil }

// Decode reads one chunk, or a whole reply that did not come as a
// stream. Its error is the failure that the server reports.
func (r *reply) Decode(raw []byte) error {
	var choices, bad, object, message, code []byte
	for m := jsonscan.Members(raw); m.Next(); {
		switch string(m.Key) {
		case "choices":
			choices = m.Val
		case "usage":
			r.count(m.Val)
		case "x_groq":
			r.count(jsonscan.Get(m.Val, "usage"))
		case "prompt_progress":
			figure := func(name string) int { return int(jsonscan.Figure(jsonscan.Get(m.Val, name))) }
			if of := figure("total"); of > 0 && !r.started {
				r.put(provider.Waiting{Read: min(figure("processed"), of), Of: of, Waited: time.Duration(figure("time_ms")) * time.Millisecond})
			}
		case "error":
			bad = m.Val
		case "object":
			object = m.Val
		case "message":
			message = m.Val
		case "code":
			code = m.Val
		}
	}
	bare := choices == nil && jsonscan.IsString(message) && (!noError(code) || string(object) == `"error"`)
	if !noError(bad) || bare {
		return transport.InBand(raw)
	}
	several := 0
	for c := jsonscan.Elements(choices); c.Next(); {
		several++
	}
	for c := jsonscan.Elements(choices); c.Next(); {
		if err := r.choice(c.Val, several > 1); err != nil {
			return err
		}
	}
	return nil
}

// noError reports whether the value of an error member means no error.
func noError(raw []byte) bool {
	switch string(raw) {
	case "", "null", "false", "{}", `""`, "[]", "0":
		return true
	}
	return false
}

// origin is the choice that supplies a kind of content, counted from 1; 0 if there is none yet.
type origin int

// is reports whether choice n supplies this kind of content. coder requests one answer, but some
// servers number its parts like several answers. If there are several, the first counts.
func (s *origin) is(n int) bool {
	if *s == 0 {
		*s = origin(n + 1)
	}
	return *s == origin(n+1)
}

// choice reads one choice; if several come together, only the first.
func (r *reply) choice(raw []byte, several bool) error {
	var delta, message, finish, bad []byte
	index := 0
	for m := jsonscan.Members(raw); m.Next(); {
		switch string(m.Key) {
		case "index":
			if n, ok := jsonscan.Int(m.Val); ok && n > 0 {
				index = n
			}
		case "delta":
			delta = m.Val
		case "message":
			message = m.Val
		case "finish_reason":
			finish = m.Val
		case "usage":
			r.count(m.Val)
		case "error":
			bad = m.Val
		}
	}
	switch {
	case several && index != 0:
		return nil
	case !noError(bad):
		return transport.InBand(raw)
	}
	switch {
	case delta != nil:
		r.delta(delta, index, false)
	case message != nil && !r.started:
		r.delta(message, index, true)
	}
	if jsonscan.IsString(finish) {
		r.finish(jsonscan.String(finish))
	}
	return nil
}

// delta reads a choice's content. In a whole message every call is complete in itself.
func (r *reply) delta(raw []byte, index int, whole bool) {
	var content, refusal, calls, function []byte
	var t thinking
	for m := jsonscan.Members(raw); m.Next(); {
		switch string(m.Key) {
		case "content":
			content = m.Val
		case "refusal":
			refusal = m.Val
		case "reasoning_content", "reasoning", "reasoning_text", "thinking":
			// Of two names for the same text, the name used before takes precedence.
			if jsonscan.IsString(m.Val) && len(m.Val) > 2 && (t.text == nil || string(m.Key) == r.field) {
				t.field, t.text = string(m.Key), m.Val
			}
		case "reasoning_details":
			t.details = m.Val
		case "tool_calls":
			calls = m.Val
		case "function_call":
			function = m.Val
		}
	}
	// The text of details counts only if no other field has it.
	texts, grown := r.details.add(t.details)
	if grown > 0 {
		r.put(provider.ReasoningDelta{Field: cmp.Or(r.field, detailsField), Held: grown})
	}
	switch {
	case t.text != nil:
		r.field = t.field
		r.emitThought(r.thoughtRunes.AddString(t.text), t.field)
	case r.field == "":
		for _, text := range texts {
			r.emitThought(r.thoughtRunes.AddString(text), detailsField)
		}
	}
	if some(content) && r.text.is(index) {
		r.content(content)
	}
	if some(refusal) && r.text.is(index) {
		r.addText(refusal)
	}
	if (len(calls) > len("[]") || function != nil) && !r.callsFrom.is(index) {
		return
	}
	n := 0
	for c := jsonscan.Elements(calls); c.Next(); n++ {
		p := readPiece(c.Val)
		if whole {
			p.index, p.indexed = n, true
		}
		r.call(p, n)
	}
	if function != nil {
		p := piece{index: legacyIndex, indexed: true}
		p.readFunction(function)
		r.call(p, 0)
	}
}

// some reports whether a value is non-empty.
func some(raw []byte) bool {
	switch string(raw) {
	case "", "null", `""`, "[]":
		return false
	}
	return true
}

// legacyIndex separates a call in the old function_call form from the other calls.
const legacyIndex = -1

// content reads text, which may be a string or a list of parts.
func (r *reply) content(raw []byte) {
	if jsonscan.IsString(raw) {
		r.addText(raw)
		return
	}
	for e := jsonscan.Elements(raw); e.Next(); {
		if jsonscan.IsString(e.Val) {
			r.addText(e.Val)
			continue
		}
		for m := jsonscan.Members(e.Val); m.Next(); {
			switch string(m.Key) {
			case "text", "refusal":
				r.addText(m.Val)
			case "thinking": // a text, or a list of texts
				r.emitThought(r.thoughtRunes.AddString(m.Val), "")
				for e := jsonscan.Elements(m.Val); e.Next(); {
					r.emitThought(r.thoughtRunes.AddString(jsonscan.Get(e.Val, "text")), "")
				}
			}
		}
	}
}

// addText passes on text of the answer.
func (r *reply) addText(raw []byte) {
	if !jsonscan.IsString(raw) || len(raw) == 2 {
		return
	}
	thought, text := r.opening.split(r.runes.AddString(raw))
	r.emitThought(thought, "")
	r.emitText(text)
}

func (r *reply) emitText(text string) {
	if text == "" {
		return
	}
	r.started = true
	r.hasText = r.hasText || strings.Trim(text, white) != ""
	r.put(provider.TextDelta(text))
}

// thinking is the thinking in one delta. Some servers send the same text under two names; only one counts.
type thinking struct {
	field   string
	text    []byte
	details []byte
}

// detailsField marks thinking that came only in reasoning_details.
const detailsField = "reasoning_details"

func (r *reply) emitThought(text, field string) {
	if text == "" {
		return
	}
	r.started = true
	if r.opening.state == atStart {
		r.opening.state = inAnswer // the server separates thinking from text itself
		_, held := r.opening.flush()
		r.emitText(held)
	}
	r.put(provider.ReasoningDelta{Text: text, Field: field})
}

// call passes on the n'th piece of a tool call in a delta, after any text held back.
func (r *reply) call(p piece, n int) {
	d, ok := r.calls.add(p, n)
	r.started = r.started || len(r.calls.list) > 0
	if ok {
		r.flush()
		r.put(d)
	}
}

// flush emits the text held back.
func (r *reply) flush() {
	thought, text := r.opening.flush()
	r.emitThought(thought, "")
	r.emitText(text)
}

// finish records why the model stopped. Some servers report it twice; a sign of a cut-off takes precedence.
func (r *reply) finish(reason string) {
	switch strings.ToLower(reason) {
	case "":
		return
	case "length", "max_tokens", "model_length", "max_output_tokens":
		r.stop = provider.StopLength
	case "content_filter", "content-filter", "safety", "recitation", "blocklist", "prohibited_content", "sensitive", "refusal":
		r.stop = provider.StopFilter
	case "error", "network_error", "insufficient_system_resource", "abort", "malformed_function_call":
		r.failure = &provider.Error{Kind: provider.ErrCutOff, Retryable: true,
			Err: errors.New("the provider stopped with " + transport.CleanLine(reason))}
	case "tool_calls", "function_call", "tool_use":
		r.stop = cmp.Or(r.stop, provider.StopTools)
	default:
		r.stop = cmp.Or(r.stop, provider.StopEnd)
	}
}

// count records usage; the last non-empty report counts.
func (r *reply) count(raw []byte) {
	var u chat.Usage
	for m := jsonscan.Members(raw); m.Next(); {
		switch string(m.Key) {
		case "prompt_tokens", "input_tokens":
			u.In = int(jsonscan.Figure(m.Val))
		case "completion_tokens", "output_tokens":
			u.Out = int(jsonscan.Figure(m.Val))
		case "prompt_cache_hit_tokens", "cached_tokens":
			u.Cached = max(u.Cached, int(jsonscan.Figure(m.Val)))
		case "prompt_tokens_details", "input_tokens_details":
			u.Cached = max(u.Cached, int(jsonscan.Figure(jsonscan.Get(m.Val, "cached_tokens"))))
			u.Written = max(u.Written, int(jsonscan.Figure(jsonscan.Get(m.Val, "cache_write_tokens"))))
		case "completion_tokens_details", "output_tokens_details":
			u.Reasoning = int(jsonscan.Figure(jsonscan.Get(m.Val, "reasoning_tokens")))
		case "cost":
			u.Cost = jsonscan.Figure(m.Val)
		}
	}
	if u.In != 0 || u.Out != 0 {
		r.usage = &u
	}
}

// End finishes a complete reply. It returns an error if the reply is empty.
func (r *reply) End() error {
	if r.failure != nil {
		return r.failure
	}
	r.emitThought(r.thoughtRunes.Flush(), r.field)
	thought, text := r.opening.split(r.runes.Flush())
	r.emitThought(thought, "")
	r.emitText(text)
	r.flush()
	for i, k := range r.calls.list {
		d := provider.CallDelta{Index: i, Args: k.runes.Flush()}
		if !k.told {
			k.told, d.ID, d.Name = true, k.id, k.name
		}
		if d.ID != "" || d.Name != "" || d.Args != "" {
			r.put(d)
		}
	}
	if d := r.details.json(); d != nil {
		r.put(provider.ReasoningDelta{Field: cmp.Or(r.field, detailsField), Details: d})
	}
	return transport.Finish(r.put, r.hasText, len(r.calls.list), r.stop, r.usage)
}

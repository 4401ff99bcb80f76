package openai

import (
	"cmp"
	"errors"
	"strings"

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
	field               string // under which the thinking came
	spoke               bool   // there is text that is not just white space
	heard               bool   // there was something in a choice
	text, acts          origin // the choices that text and calls come from
	usage               *chat.Usage
	stop                provider.Stop // empty until the server said why it stopped
	trouble             error         // a stop that is a failure
}

func newReply(put func(provider.Delta)) transport.Decoder { return &reply{put: put} }

// Finished reports whether the server said why it stopped.
func (r *reply) Finished() bool { return r.stop != "" || r.trouble != nil }

// Decode reads one chunk, or one whole reply that came without a stream. Its
// error is what the server says went wrong.
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
	bare := choices == nil && jsonscan.IsString(message) && (!blameless(code) || string(object) == `"error"`)
	if !blameless(bad) || bare {
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

// blameless reports whether the value of an error member says that there is none.
func blameless(raw []byte) bool {
	switch string(raw) {
	case "", "null", "false", "{}", `""`, "[]", "0":
		return true
	}
	return false
}

// origin is the choice that a kind of content comes from, counted from 1; 0 as
// long as there is none.
type origin int

// is reports whether content of that kind is taken from choice n. We ask for
// one answer, but some servers number its parts as if they were several; of
// several answers the first is taken.
func (s *origin) is(n int) bool {
	if *s == 0 {
		*s = origin(n + 1)
	}
	return *s == origin(n+1)
}

// choice reads one choice; of several that come together, only the first.
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
	case !blameless(bad):
		return transport.InBand(raw)
	}
	switch {
	case delta != nil:
		r.delta(delta, index, false)
	case message != nil && !r.heard:
		r.delta(message, index, true)
	}
	if jsonscan.IsString(finish) {
		r.finish(jsonscan.String(finish))
	}
	return nil
}

// delta reads what the model said in a choice. In a whole message every call
// stands for itself.
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
			t.offer(string(m.Key), m.Val, r.field)
		case "reasoning_details":
			t.details = m.Val
		case "tool_calls":
			calls = m.Val
		case "function_call":
			function = m.Val
		}
	}
	r.think(t)
	if some(content) && r.text.is(index) {
		r.content(content)
	}
	if some(refusal) && r.text.is(index) {
		r.say(refusal)
	}
	if (len(calls) > len("[]") || function != nil) && !r.acts.is(index) {
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

// some reports whether a value holds anything.
func some(raw []byte) bool {
	switch string(raw) {
	case "", "null", `""`, "[]":
		return false
	}
	return true
}

// legacyIndex keeps a call in the old function_call form apart from the others.
const legacyIndex = -1

// content reads text, whether it comes as a string or as a list of parts.
func (r *reply) content(raw []byte) {
	if jsonscan.IsString(raw) {
		r.say(raw)
		return
	}
	for e := jsonscan.Elements(raw); e.Next(); {
		if jsonscan.IsString(e.Val) {
			r.say(e.Val)
			continue
		}
		for m := jsonscan.Members(e.Val); m.Next(); {
			switch string(m.Key) {
			case "text", "refusal":
				r.say(m.Val)
			case "thinking":
				r.thinkParts(m.Val)
			}
		}
	}
}

// thinkParts reads thinking that came as a part of the content.
func (r *reply) thinkParts(raw []byte) {
	if jsonscan.IsString(raw) {
		r.ponder(r.thoughtRunes.Add(jsonscan.Unquote(nil, raw)), "")
		return
	}
	for e := jsonscan.Elements(raw); e.Next(); {
		for m := jsonscan.Members(e.Val); m.Next(); {
			if string(m.Key) == "text" && jsonscan.IsString(m.Val) {
				r.ponder(r.thoughtRunes.Add(jsonscan.Unquote(nil, m.Val)), "")
			}
		}
	}
}

// say passes on text of the answer.
func (r *reply) say(raw []byte) {
	if !jsonscan.IsString(raw) || len(raw) == 2 {
		return
	}
	thought, text := r.opening.split(r.runes.Add(jsonscan.Unquote(nil, raw)))
	r.ponder(thought, "")
	r.tell(text)
}

func (r *reply) tell(text string) {
	if text == "" {
		return
	}
	r.heard = true
	r.spoke = r.spoke || strings.Trim(text, white) != ""
	r.put(provider.TextDelta(text))
}

// thinking is what one delta holds of thoughts. Some servers send the same
// text under two names; only one is taken.
type thinking struct {
	field   string
	text    []byte
	details []byte
}

// offer proposes a field; the one the reply used before is preferred.
func (t *thinking) offer(field string, val []byte, used string) {
	if jsonscan.IsString(val) && len(val) > 2 && (t.text == nil || field == used) {
		t.field, t.text = field, val
	}
}

// think passes on thoughts. The text of details counts only where no other
// field has it.
func (r *reply) think(t thinking) {
	text := r.details.add(t.details)
	switch {
	case t.text != nil:
		r.field = t.field
		r.ponder(r.thoughtRunes.Add(jsonscan.Unquote(nil, t.text)), t.field)
	case r.field == "":
		r.ponder(r.thoughtRunes.Add(text), detailsField)
	}
}

// detailsField names thinking that came in reasoning_details alone.
const detailsField = "reasoning_details"

func (r *reply) ponder(text, field string) {
	if text == "" {
		return
	}
	r.heard = true
	if r.opening.state == atStart {
		r.opening.state = inAnswer // the server parts thoughts from text itself
		_, held := r.opening.flush()
		r.tell(held)
	}
	r.put(provider.ReasoningDelta{Text: text, Field: field})
}

// call passes on a piece of a tool call, the n'th in its delta.
func (r *reply) call(p piece, n int) {
	d, ok := r.calls.add(p, n)
	r.heard = r.heard || len(r.calls.list) > 0
	if !ok {
		return
	}
	r.release()
	r.put(d)
}

// release gives out the text that was held back.
func (r *reply) release() {
	thought, text := r.opening.flush()
	r.ponder(thought, "")
	r.tell(text)
}

// finish notes why the model stopped. Some servers say so twice; that something
// is missing outweighs that all is well.
func (r *reply) finish(reason string) {
	switch strings.ToLower(reason) {
	case "":
		return
	case "length", "max_tokens", "model_length", "max_output_tokens":
		r.stop = provider.StopLength
	case "content_filter", "content-filter", "safety", "recitation", "blocklist", "prohibited_content", "sensitive", "refusal":
		r.stop = provider.StopFilter
	case "error", "network_error", "insufficient_system_resource", "abort", "malformed_function_call":
		r.trouble = &provider.Error{Kind: provider.ErrCutOff, Retryable: true,
			Err: errors.New("the provider stopped with " + transport.CleanLine(reason))}
	case "tool_calls", "function_call", "tool_use":
		if r.stop == "" {
			r.stop = provider.StopTools
		}
	default:
		if r.stop == "" {
			r.stop = provider.StopEnd
		}
	}
}

// count notes usage; what is said last counts, unless it says nothing.
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

// End closes a reply that arrived whole. Its error is that of a reply which
// says nothing.
func (r *reply) End() error {
	if r.trouble != nil {
		return r.trouble
	}
	r.ponder(r.thoughtRunes.Flush(), r.field)
	thought, text := r.opening.split(r.runes.Flush())
	r.ponder(thought, "")
	r.tell(text)
	r.release()
	for _, d := range r.calls.rest() {
		r.put(d)
	}
	if d := r.details.json(); d != nil {
		r.put(provider.ReasoningDelta{Field: cmp.Or(r.field, detailsField), Details: d})
	}
	if !r.spoke && len(r.calls.list) == 0 && r.stop != provider.StopLength && r.stop != provider.StopFilter {
		return &provider.Error{Retryable: true, Err: errors.New("the reply was empty: neither text nor a tool call")}
	}
	r.put(provider.Done{Stop: r.why(), Usage: r.usage})
	return nil
}

// why is what the stop means for us: calls are to be run whatever it is called.
func (r *reply) why() provider.Stop {
	switch {
	case r.stop == provider.StopLength || r.stop == provider.StopFilter:
		return r.stop
	case len(r.calls.list) > 0:
		return provider.StopTools
	}
	return provider.StopEnd
}

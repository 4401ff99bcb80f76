package openai

import (
	"bytes"
	"cmp"
	"errors"
	"strconv"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/model/provider"
)

// reply turns the chunks of one reply into deltas.
type reply struct {
	emit func(provider.Delta) bool
	left bool // the consumer wants no more
	done bool // the consumer has all of it

	runes, thoughtRunes joiner
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

func (r *reply) put(d provider.Delta) {
	if r.left {
		return
	}
	r.left = !r.emit(d)
	_, r.done = d.(provider.Done)
}

// take reads one chunk, or one whole reply that came without a stream. Its
// error is what the server says went wrong.
func (r *reply) take(raw []byte) error {
	var choices, bad, object, message, code []byte
	for m := members(raw); m.next(); {
		switch string(m.key) {
		case "choices":
			choices = m.val
		case "usage":
			r.count(m.val)
		case "x_groq":
			r.count(pick(m.val, "usage"))
		case "error":
			bad = m.val
		case "object":
			object = m.val
		case "message":
			message = m.val
		case "code":
			code = m.val
		}
	}
	bare := choices == nil && isString(message) && (!blameless(code) || string(object) == `"error"`)
	if !blameless(bad) || bare {
		return inBand(raw)
	}
	several := 0
	for c := elements(choices); c.next(); {
		several++
	}
	for c := elements(choices); c.next(); {
		if err := r.choice(c.val, several > 1); err != nil {
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
	for m := members(raw); m.next(); {
		switch string(m.key) {
		case "index":
			if n, ok := integer(m.val); ok && n > 0 {
				index = n
			}
		case "delta":
			delta = m.val
		case "message":
			message = m.val
		case "finish_reason":
			finish = m.val
		case "usage":
			r.count(m.val)
		case "error":
			bad = m.val
		}
	}
	switch {
	case several && index != 0:
		return nil
	case !blameless(bad):
		return inBand(raw)
	}
	switch {
	case delta != nil:
		r.delta(delta, index, false)
	case message != nil && !r.heard:
		r.delta(message, index, true)
	}
	if isString(finish) {
		r.finish(str(finish))
	}
	return nil
}

// delta reads what the model said in a choice. In a whole message every call
// stands for itself.
func (r *reply) delta(raw []byte, index int, whole bool) {
	var content, refusal, calls, function []byte
	var t thinking
	for m := members(raw); m.next(); {
		switch string(m.key) {
		case "content":
			content = m.val
		case "refusal":
			refusal = m.val
		case "reasoning_content", "reasoning", "reasoning_text", "thinking":
			t.offer(string(m.key), m.val, r.field)
		case "reasoning_details":
			t.details = m.val
		case "tool_calls":
			calls = m.val
		case "function_call":
			function = m.val
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
	for c := elements(calls); c.next(); n++ {
		p := readPiece(c.val)
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
	if isString(raw) {
		r.say(raw)
		return
	}
	for e := elements(raw); e.next(); {
		if isString(e.val) {
			r.say(e.val)
			continue
		}
		for m := members(e.val); m.next(); {
			switch string(m.key) {
			case "text", "refusal":
				r.say(m.val)
			case "thinking":
				r.thinkParts(m.val)
			}
		}
	}
}

// thinkParts reads thinking that came as a part of the content.
func (r *reply) thinkParts(raw []byte) {
	if isString(raw) {
		r.ponder(r.thoughtRunes.add(unquote(nil, raw)), "")
		return
	}
	for e := elements(raw); e.next(); {
		for m := members(e.val); m.next(); {
			if string(m.key) == "text" && isString(m.val) {
				r.ponder(r.thoughtRunes.add(unquote(nil, m.val)), "")
			}
		}
	}
}

// say passes on text of the answer.
func (r *reply) say(raw []byte) {
	if !isString(raw) || len(raw) == 2 {
		return
	}
	thought, text := r.opening.split(r.runes.add(unquote(nil, raw)))
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
	if isString(val) && len(val) > 2 && (t.text == nil || field == used) {
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
		r.ponder(r.thoughtRunes.add(unquote(nil, t.text)), t.field)
	case r.field == "":
		r.ponder(r.thoughtRunes.add(text), detailsField)
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
			Err: errors.New("the provider stopped with " + cleanLine(reason))}
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
	for m := members(raw); m.next(); {
		switch string(m.key) {
		case "prompt_tokens", "input_tokens":
			u.In = int(figure(m.val))
		case "completion_tokens", "output_tokens":
			u.Out = int(figure(m.val))
		case "prompt_cache_hit_tokens", "cached_tokens":
			u.Cached = max(u.Cached, int(figure(m.val)))
		case "prompt_tokens_details", "input_tokens_details":
			u.Cached = max(u.Cached, int(figure(pick(m.val, "cached_tokens"))))
		case "completion_tokens_details", "output_tokens_details":
			u.Reasoning = int(figure(pick(m.val, "reasoning_tokens")))
		case "cost":
			u.Cost = figure(m.val)
		}
	}
	if u.In != 0 || u.Out != 0 {
		r.usage = &u
	}
}

// pick returns the member key of the object raw, or nil.
func pick(raw []byte, key string) []byte {
	for m := members(raw); m.next(); {
		if string(m.key) == key {
			return m.val
		}
	}
	return nil
}

// figure reads a number that is neither negative nor absurd, also in quotes.
func figure(raw []byte) float64 {
	f, err := strconv.ParseFloat(string(bytes.Trim(raw, `"`)), 64)
	if err != nil || !(f >= 0 && f < 1e15) {
		return 0
	}
	return f
}

// end closes a reply that arrived whole. Its error is that of a reply which
// says nothing.
func (r *reply) end() error {
	if r.trouble != nil {
		return r.trouble
	}
	r.ponder(r.thoughtRunes.flush(), r.field)
	thought, text := r.opening.split(r.runes.flush())
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

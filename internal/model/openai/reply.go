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

// replyDecoder turns the chunks of one reply into deltas.
type replyDecoder struct {
	emit func(provider.Delta)

	textJoiner, thoughtJoiner jsonscan.Joiner
	splitter                  thinkSplitter
	details                   reasoningDetails
	calls                     callCollector
	thoughtField              string // the field of the thinking
	hasText                   bool   // the text is more than white space
	started                   bool   // a choice had content
	textFrom, callsFrom       origin // the choices that supply text and calls
	usage                     *chat.Usage
	stop                      provider.Stop // empty until the server said why it stopped
	failure                   error         // a stop that is a failure
}

func newReplyDecoder(put func(provider.Delta)) transport.Decoder { return &replyDecoder{emit: put} }

// IsFinished reports whether the server said why it stopped.
func (r *replyDecoder) IsFinished() bool { return r.stop != "" || r.failure != nil }

// Decode reads one chunk, or a whole reply that did not come as a
// stream. Its error is the failure that the server reports.
func (r *replyDecoder) Decode(raw []byte) error {
	var choices, bad, object, message, code []byte
	for m := jsonscan.Members(raw); m.Next(); {
		switch string(m.Key) {
		case "choices":
			choices = m.Val
		case "usage":
			r.recordUsage(m.Val)
		case "x_groq":
			r.recordUsage(jsonscan.Get(m.Val, "usage"))
		case "prompt_progress":
			figure := func(name string) int { return int(jsonscan.Float(jsonscan.Get(m.Val, name))) }
			if of := figure("total"); of > 0 && !r.started {
				r.emit(provider.Waiting{ReadTokens: min(figure("processed"), of), TotalTokens: of,
					Elapsed: time.Duration(figure("time_ms")) * time.Millisecond})
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
	bare := choices == nil && jsonscan.IsString(message) && (!isNoError(code) || string(object) == `"error"`)
	if !isNoError(bad) || bare {
		return transport.InBandError(raw)
	}
	several := 0
	for c := jsonscan.Elements(choices); c.Next(); {
		several++
	}
	for c := jsonscan.Elements(choices); c.Next(); {
		if err := r.readChoice(c.Val, several > 1); err != nil {
			return err
		}
	}
	return nil
}

// isNoError reports whether the value of an error member means no error.
func isNoError(raw []byte) bool {
	switch string(raw) {
	case "", "null", "false", "{}", `""`, "[]", "0":
		return true
	}
	return false
}

// origin is the choice that supplies a kind of content, counted from 1; 0 if there is none yet.
type origin int

// isChoice reports whether choice n supplies this kind of content. coder requests one answer, but some
// servers number its parts like several answers. If there are several, the first counts.
func (s *origin) isChoice(n int) bool {
	if *s == 0 {
		*s = origin(n + 1)
	}
	return *s == origin(n+1)
}

// readChoice reads one choice; if several come together, only the first.
func (r *replyDecoder) readChoice(raw []byte, several bool) error {
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
			r.recordUsage(m.Val)
		case "error":
			bad = m.Val
		}
	}
	switch {
	case several && index != 0:
		return nil
	case !isNoError(bad):
		return transport.InBandError(raw)
	}
	switch {
	case delta != nil:
		r.readDelta(delta, index, false)
	case message != nil && !r.started:
		r.readDelta(message, index, true)
	}
	if jsonscan.IsString(finish) {
		r.recordStop(jsonscan.String(finish))
	}
	return nil
}

// readDelta reads a choice's content. In a whole message every call is complete in itself.
func (r *replyDecoder) readDelta(raw []byte, index int, whole bool) {
	var content, refusal, calls, function []byte
	var t thinkingDelta
	for m := jsonscan.Members(raw); m.Next(); {
		switch string(m.Key) {
		case "content":
			content = m.Val
		case "refusal":
			refusal = m.Val
		case "reasoning_content", "reasoning", "reasoning_text", "thinking":
			// Of two names for the same text, the name used before takes precedence.
			if jsonscan.IsString(m.Val) && len(m.Val) > 2 && (t.text == nil || string(m.Key) == r.thoughtField) {
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
		r.emit(provider.ReasoningDelta{Field: cmp.Or(r.thoughtField, detailsField), Held: grown})
	}
	switch {
	case t.text != nil:
		r.thoughtField = t.field
		r.emitThought(r.thoughtJoiner.AddString(t.text), t.field)
	case r.thoughtField == "":
		for _, text := range texts {
			r.emitThought(r.thoughtJoiner.AddString(text), detailsField)
		}
	}
	if isNonEmpty(content) && r.textFrom.isChoice(index) {
		r.readContent(content)
	}
	if isNonEmpty(refusal) && r.textFrom.isChoice(index) {
		r.addText(refusal)
	}
	if (len(calls) > len("[]") || function != nil) && !r.callsFrom.isChoice(index) {
		return
	}
	n := 0
	for c := jsonscan.Elements(calls); c.Next(); n++ {
		p := readPiece(c.Val)
		if whole {
			p.index, p.hasIndex = n, true
		}
		r.emitCall(p, n)
	}
	if function != nil {
		p := callPiece{index: legacyIndex, hasIndex: true}
		p.readFunction(function)
		r.emitCall(p, 0)
	}
}

// isNonEmpty reports whether a value is non-empty.
func isNonEmpty(raw []byte) bool {
	switch string(raw) {
	case "", "null", `""`, "[]":
		return false
	}
	return true
}

// legacyIndex separates a call in the old function_call form from the other calls.
const legacyIndex = -1

// readContent reads text, which may be a string or a list of parts.
func (r *replyDecoder) readContent(raw []byte) {
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
				r.emitThought(r.thoughtJoiner.AddString(m.Val), "")
				for e := jsonscan.Elements(m.Val); e.Next(); {
					r.emitThought(r.thoughtJoiner.AddString(jsonscan.Get(e.Val, "text")), "")
				}
			}
		}
	}
}

// addText passes on text of the answer.
func (r *replyDecoder) addText(raw []byte) {
	if !jsonscan.IsString(raw) || len(raw) == 2 {
		return
	}
	thought, text := r.splitter.split(r.textJoiner.AddString(raw))
	r.emitThought(thought, "")
	r.emitText(text)
}

func (r *replyDecoder) emitText(text string) {
	if text == "" {
		return
	}
	r.started = true
	r.hasText = r.hasText || strings.Trim(text, whiteSpace) != ""
	r.emit(provider.TextDelta(text))
}

// thinkingDelta is the thinking in one delta. Some servers send the same text under two names; only one counts.
type thinkingDelta struct {
	field   string
	text    []byte
	details []byte
}

// detailsField marks thinking that came only in reasoning_details.
const detailsField = "reasoning_details"

func (r *replyDecoder) emitThought(text, field string) {
	if text == "" {
		return
	}
	r.started = true
	if r.splitter.state == atStart {
		r.splitter.state = inAnswer // the server separates thinking from text itself
		_, held := r.splitter.flush()
		r.emitText(held)
	}
	r.emit(provider.ReasoningDelta{Text: text, Field: field})
}

// emitCall passes on the n'th piece of a tool call in a delta, after any text held back.
func (r *replyDecoder) emitCall(p callPiece, n int) {
	d, ok := r.calls.add(p, n)
	r.started = r.started || len(r.calls.list) > 0
	if ok {
		r.flush()
		r.emit(d)
	}
}

// flush emits the text held back.
func (r *replyDecoder) flush() {
	thought, text := r.splitter.flush()
	r.emitThought(thought, "")
	r.emitText(text)
}

// recordStop records why the model stopped. Some servers report it twice; a sign of a cut-off takes precedence.
func (r *replyDecoder) recordStop(reason string) {
	switch strings.ToLower(reason) {
	case "":
		return
	case "length", "max_tokens", "model_length", "max_output_tokens":
		r.stop = provider.StopLength
	case "content_filter", "content-filter", "safety", "recitation", "blocklist", "prohibited_content", "sensitive",
		"refusal":
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

// recordUsage records usage; the last non-empty report counts.
func (r *replyDecoder) recordUsage(raw []byte) {
	var u chat.Usage
	for m := jsonscan.Members(raw); m.Next(); {
		switch string(m.Key) {
		case "prompt_tokens", "input_tokens":
			u.In = int(jsonscan.Float(m.Val))
		case "completion_tokens", "output_tokens":
			u.Out = int(jsonscan.Float(m.Val))
		case "prompt_cache_hit_tokens", "cached_tokens":
			u.Cached = max(u.Cached, int(jsonscan.Float(m.Val)))
		case "prompt_tokens_details", "input_tokens_details":
			u.Cached = max(u.Cached, int(jsonscan.Float(jsonscan.Get(m.Val, "cached_tokens"))))
			u.CacheWritten = max(u.CacheWritten, int(jsonscan.Float(jsonscan.Get(m.Val, "cache_write_tokens"))))
		case "completion_tokens_details", "output_tokens_details":
			u.Reasoning = int(jsonscan.Float(jsonscan.Get(m.Val, "reasoning_tokens")))
		case "cost":
			u.Cost = jsonscan.Float(m.Val)
		}
	}
	if u.In != 0 || u.Out != 0 {
		r.usage = &u
	}
}

// End finishes a complete reply. It returns an error if the reply is empty.
func (r *replyDecoder) End() error {
	if r.failure != nil {
		return r.failure
	}
	r.emitThought(r.thoughtJoiner.Flush(), r.thoughtField)
	thought, text := r.splitter.split(r.textJoiner.Flush())
	r.emitThought(thought, "")
	r.emitText(text)
	r.flush()
	for i, k := range r.calls.list {
		d := provider.CallDelta{Index: i, Args: k.joiner.Flush()}
		if !k.announced {
			k.announced, d.ID, d.Name = true, k.id, k.name
		}
		if d.ID != "" || d.Name != "" || d.Args != "" {
			r.emit(d)
		}
	}
	if d := r.details.json(); d != nil {
		r.emit(provider.ReasoningDelta{Field: cmp.Or(r.thoughtField, detailsField), Details: d})
	}
	return transport.Finish(r.emit, r.hasText, len(r.calls.list), r.stop, r.usage)
}

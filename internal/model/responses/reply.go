package responses

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"

	"coder/internal/core/chat"
	"coder/internal/model/jsonscan"
	"coder/internal/model/provider"
	"coder/internal/model/transport"
)

// replyDecoder turns the events of one reply into deltas.
type replyDecoder struct {
	emit func(provider.Delta)

	items        map[int]*item // by the server's index
	thoughts     []thought
	hasReasoning bool // reasoning has come
	text         int  // bytes of text so far
	calls        int
	usage        *chat.Usage
	stop         provider.Stop // empty until the server said why it stopped
}

// item is an output item that is still arriving.
type item struct {
	kind    string
	joiner  jsonscan.Joiner
	emitted int // bytes of its text or arguments already emitted
	call    int // its number among the calls
	thought thought
}

func newReplyDecoder(put func(provider.Delta)) transport.Decoder {
	return &replyDecoder{emit: put, items: make(map[int]*item)}
}

// IsFinished reports whether the server said why it stopped.
func (r *replyDecoder) IsFinished() bool { return r.stop != "" }

// Decode reads one event, or a whole reply that did not come as a stream.
func (r *replyDecoder) Decode(raw []byte) error {
	kind := jsonscan.String(jsonscan.Get(raw, "type"))
	index, _ := jsonscan.Int(jsonscan.Get(raw, "output_index"))
	it := r.items[index]
	delta := func() string {
		if it == nil {
			return ""
		}
		return it.joiner.AddString(jsonscan.Get(raw, "delta"))
	}
	switch kind {
	case "response.output_item.added":
		r.startItem(index, jsonscan.Get(raw, "item"))
	case "response.output_text.delta", "response.refusal.delta":
		r.emitText(it, delta())
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		r.emitThought(it, delta())
	case "response.reasoning_summary_part.added":
		if r.hasReasoning {
			r.emit(provider.ReasoningDelta{Text: "\n\n", Field: reasoningField})
		}
	case "response.function_call_arguments.delta":
		r.emitArgs(it, delta())
	case "response.output_item.done":
		r.closeItem(index, jsonscan.Get(raw, "item"))
	case "response.completed", "response.incomplete", "response.failed":
		if err := r.recordEnd(jsonscan.Get(raw, "response")); err != nil {
			return err
		}
		return io.EOF
	case "error":
		return transport.InBandError(raw)
	case "":
		if !jsonscan.IsNull(jsonscan.Get(raw, "error")) {
			return transport.InBandError(raw)
		}
		if jsonscan.IsNull(jsonscan.Get(raw, "output")) {
			return nil
		}
		n := 0
		for e := jsonscan.Elements(jsonscan.Get(raw, "output")); e.Next(); n++ {
			r.startItem(n, e.Val)
			r.closeItem(n, e.Val)
		}
		return r.recordEnd(raw)
	}
	return nil
}

func (r *replyDecoder) startItem(index int, raw []byte) {
	it := &item{kind: jsonscan.String(jsonscan.Get(raw, "type")), thought: thought{Text: r.text, Calls: r.calls}}
	r.items[index] = it
	if it.kind == "function_call" {
		it.call = r.calls
		r.calls++
		id := cmp.Or(jsonscan.String(jsonscan.Get(raw, "call_id")), jsonscan.String(jsonscan.Get(raw, "id")))
		r.emit(provider.CallDelta{Index: it.call, ID: id, Name: jsonscan.String(jsonscan.Get(raw, "name"))})
	}
}

// closeItem finishes an item with its full content; the server may have sent none of it before.
func (r *replyDecoder) closeItem(index int, raw []byte) {
	it := r.items[index]
	if it == nil {
		r.startItem(index, raw)
		it = r.items[index]
	}
	delete(r.items, index)
	switch it.kind {
	case "message":
		r.emitText(it, it.joiner.Flush())
		var runes jsonscan.Joiner
		all := ""
		for e := jsonscan.Elements(jsonscan.Get(raw, "content")); e.Next(); {
			for _, key := range []string{"text", "refusal"} {
				all += runes.AddString(jsonscan.Get(e.Val, key))
			}
		}
		if it.emitted == 0 {
			r.emitText(it, all+runes.Flush())
		}
	case "function_call":
		r.emitArgs(it, it.joiner.Flush())
		if it.emitted == 0 {
			r.emitArgs(it, jsonscan.String(jsonscan.Get(raw, "arguments")))
		}
	case "reasoning":
		r.emitThought(it, it.joiner.Flush())
		if it.emitted == 0 {
			for _, list := range []string{"summary", "content"} {
				for e := jsonscan.Elements(jsonscan.Get(raw, list)); e.Next(); {
					if words := jsonscan.String(jsonscan.Get(e.Val, "text")); words != "" {
						if r.hasReasoning {
							words = "\n\n" + words
						}
						r.emitThought(it, words)
					}
				}
			}
		}
		b := []byte{'{'} // the item in the form that the server accepts
		for m := jsonscan.Members(raw); m.Next(); {
			if string(m.Key) == "status" {
				continue
			}
			b = append(append(append(transport.Comma(b), '"'), m.Key...), `":`...)
			b = append(b, m.Val...)
		}
		it.thought.Item = bytes.ToValidUTF8(append(b, '}'), []byte("\uFFFD"))
		r.thoughts = append(r.thoughts, it.thought)
		r.emit(provider.ReasoningDelta{Field: reasoningField, Held: len(it.thought.Item)})
	}
}

func (r *replyDecoder) emitText(it *item, text string) {
	if text != "" {
		it.emitted += len(text)
		r.text += len(text)
		r.emit(provider.TextDelta(text))
	}
}

func (r *replyDecoder) emitThought(it *item, text string) {
	if text != "" {
		it.emitted += len(text)
		r.hasReasoning = true
		r.emit(provider.ReasoningDelta{Text: text, Field: reasoningField})
	}
}

func (r *replyDecoder) emitArgs(it *item, args string) {
	if args != "" && it.kind == "function_call" {
		it.emitted += len(args)
		r.emit(provider.CallDelta{Index: it.call, Args: args})
	}
}

// recordEnd records how the response ended, and its usage.
func (r *replyDecoder) recordEnd(raw []byte) error {
	if u := jsonscan.Get(raw, "usage"); !jsonscan.IsNull(u) {
		r.usage = &chat.Usage{
			In:        int(jsonscan.Float(jsonscan.Get(u, "input_tokens"))),
			Out:       int(jsonscan.Float(jsonscan.Get(u, "output_tokens"))),
			Cached:    int(jsonscan.Float(jsonscan.Get(jsonscan.Get(u, "input_tokens_details"), "cached_tokens"))),
			Reasoning: int(jsonscan.Float(jsonscan.Get(jsonscan.Get(u, "output_tokens_details"), "reasoning_tokens"))),
		}
	}
	switch status := jsonscan.String(jsonscan.Get(raw, "status")); status {
	case "failed", "cancelled":
		if bad := jsonscan.Get(raw, "error"); !jsonscan.IsNull(bad) {
			return transport.InBandError(bad)
		}
		return &provider.Error{Kind: provider.ErrCutOff, Retryable: true,
			Err: errors.New("the provider stopped with " + status)}
	case "incomplete":
		r.stop = provider.StopLength
		if jsonscan.String(jsonscan.Get(jsonscan.Get(raw, "incomplete_details"), "reason")) == "content_filter" {
			r.stop = provider.StopFilter
		}
	default:
		r.stop = provider.StopEnd
	}
	return nil
}

// End finishes a complete reply.
func (r *replyDecoder) End() error {
	if len(r.thoughts) > 0 {
		details, err := json.Marshal(r.thoughts)
		if err != nil {
			return err
		}
		r.emit(provider.ReasoningDelta{Field: reasoningField, Details: details})
	}
	return transport.Finish(r.emit, r.text > 0, r.calls, r.stop, r.usage)
}

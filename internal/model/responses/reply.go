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

// reply turns the events of one reply into deltas.
type reply struct {
	put func(provider.Delta)

	items    map[int]*item // by the server's index
	thoughts []thought
	pondered bool // reasoning has come
	text     int  // bytes of text so far
	calls    int
	usage    *chat.Usage
	stop     provider.Stop // empty until the server said why it stopped
}

// item is an output item that is still arriving.
type item struct {
	kind  string
	runes jsonscan.Joiner
	said  int // bytes of its text or arguments already emitted
	call  int // its number among the calls
	at    thought
}

func newReply(put func(provider.Delta)) transport.Decoder {
	return &reply{put: put, items: make(map[int]*item)}
}

// Finished reports whether the server said why it stopped.
func (r *reply) Finished() bool { return r.stop != "" }

// Decode reads one event, or a whole reply that did not come as a stream.
func (r *reply) Decode(raw []byte) error {
	kind := jsonscan.String(jsonscan.Get(raw, "type"))
	index, _ := jsonscan.Int(jsonscan.Get(raw, "output_index"))
	it := r.items[index]
	delta := func() string {
		if it == nil {
			return ""
		}
		return it.runes.AddString(jsonscan.Get(raw, "delta"))
	}
	switch kind {
	case "response.output_item.added":
		r.start(index, jsonscan.Get(raw, "item"))
	case "response.output_text.delta", "response.refusal.delta":
		r.tell(it, delta())
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		r.ponder(it, delta())
	case "response.reasoning_summary_part.added":
		if r.pondered {
			r.put(provider.ReasoningDelta{Text: "\n\n", Field: reasoningField})
		}
	case "response.function_call_arguments.delta":
		r.argue(it, delta())
	case "response.output_item.done":
		r.close(index, jsonscan.Get(raw, "item"))
	case "response.completed", "response.incomplete", "response.failed":
		if err := r.finish(jsonscan.Get(raw, "response")); err != nil {
			return err
		}
		return io.EOF
	case "error":
		return transport.InBand(raw)
	case "":
		if !jsonscan.IsNull(jsonscan.Get(raw, "error")) {
			return transport.InBand(raw)
		}
		if jsonscan.IsNull(jsonscan.Get(raw, "output")) {
			return nil
		}
		n := 0
		for e := jsonscan.Elements(jsonscan.Get(raw, "output")); e.Next(); n++ {
			r.start(n, e.Val)
			r.close(n, e.Val)
		}
		return r.finish(raw)
	}
	return nil
}

func (r *reply) start(index int, raw []byte) {
	it := &item{kind: jsonscan.String(jsonscan.Get(raw, "type")), at: thought{Text: r.text, Calls: r.calls}}
	r.items[index] = it
	if it.kind == "function_call" {
		it.call = r.calls
		r.calls++
		id := cmp.Or(jsonscan.String(jsonscan.Get(raw, "call_id")), jsonscan.String(jsonscan.Get(raw, "id")))
		r.put(provider.CallDelta{Index: it.call, ID: id, Name: jsonscan.String(jsonscan.Get(raw, "name"))})
	}
}

// close finishes an item with its full content; the server may have sent none of it before.
func (r *reply) close(index int, raw []byte) {
	it := r.items[index]
	if it == nil {
		r.start(index, raw)
		it = r.items[index]
	}
	delete(r.items, index)
	switch it.kind {
	case "message":
		r.tell(it, it.runes.Flush())
		var runes jsonscan.Joiner
		all := ""
		for e := jsonscan.Elements(jsonscan.Get(raw, "content")); e.Next(); {
			for _, key := range []string{"text", "refusal"} {
				all += runes.AddString(jsonscan.Get(e.Val, key))
			}
		}
		if it.said == 0 {
			r.tell(it, all+runes.Flush())
		}
	case "function_call":
		r.argue(it, it.runes.Flush())
		if it.said == 0 {
			r.argue(it, jsonscan.String(jsonscan.Get(raw, "arguments")))
		}
	case "reasoning":
		r.ponder(it, it.runes.Flush())
		if it.said == 0 {
			for _, list := range []string{"summary", "content"} {
				for e := jsonscan.Elements(jsonscan.Get(raw, list)); e.Next(); {
					if words := jsonscan.String(jsonscan.Get(e.Val, "text")); words != "" {
						if r.pondered {
							words = "\n\n" + words
						}
						r.ponder(it, words)
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
		it.at.Item = bytes.ToValidUTF8(append(b, '}'), []byte("\uFFFD"))
		r.thoughts = append(r.thoughts, it.at)
		r.put(provider.ReasoningDelta{Field: reasoningField, Held: len(it.at.Item)})
	}
}

func (r *reply) tell(it *item, text string) {
	if text != "" {
		it.said += len(text)
		r.text += len(text)
		r.put(provider.TextDelta(text))
	}
}

func (r *reply) ponder(it *item, text string) {
	if text != "" {
		it.said += len(text)
		r.pondered = true
		r.put(provider.ReasoningDelta{Text: text, Field: reasoningField})
	}
}

func (r *reply) argue(it *item, args string) {
	if args != "" && it.kind == "function_call" {
		it.said += len(args)
		r.put(provider.CallDelta{Index: it.call, Args: args})
	}
}

// finish records how the response ended, and its usage.
func (r *reply) finish(raw []byte) error {
	if u := jsonscan.Get(raw, "usage"); !jsonscan.IsNull(u) {
		r.usage = &chat.Usage{
			In:        int(jsonscan.Figure(jsonscan.Get(u, "input_tokens"))),
			Out:       int(jsonscan.Figure(jsonscan.Get(u, "output_tokens"))),
			Cached:    int(jsonscan.Figure(jsonscan.Get(jsonscan.Get(u, "input_tokens_details"), "cached_tokens"))),
			Reasoning: int(jsonscan.Figure(jsonscan.Get(jsonscan.Get(u, "output_tokens_details"), "reasoning_tokens"))),
		}
	}
	switch status := jsonscan.String(jsonscan.Get(raw, "status")); status {
	case "failed", "cancelled":
		if bad := jsonscan.Get(raw, "error"); !jsonscan.IsNull(bad) {
			return transport.InBand(bad)
		}
		return &provider.Error{Kind: provider.ErrCutOff, Retryable: true, Err: errors.New("the provider stopped with " + status)}
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
func (r *reply) End() error {
	if len(r.thoughts) > 0 {
		details, err := json.Marshal(r.thoughts)
		if err != nil {
			return err
		}
		r.put(provider.ReasoningDelta{Field: reasoningField, Details: details})
	}
	return transport.Finish(r.put, r.text > 0, r.calls, r.stop, r.usage)
}

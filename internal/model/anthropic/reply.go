package anthropic

import (
	"encoding/json"
	"io"

	"coder/internal/core/chat"
	"coder/internal/model/jsonscan"
	"coder/internal/model/provider"
	"coder/internal/model/transport"
)

// reply turns the events of one reply into deltas.
type reply struct {
	put func(provider.Delta)

	blocks map[int]*block // by the server's index
	order  []*block       // of thinking, in order
	text   int            // bytes of text so far
	calls  int
	usage  chat.Usage
	stop   provider.Stop // empty until the server said why it stopped
}

// block is a content block that is still arriving.
type block struct {
	kind    string
	runes   jsonscan.Joiner
	thought thought
	call    int // its number among the calls

	signature []byte // of the thought
}

func newReply(put func(provider.Delta)) transport.Decoder {
	return &reply{put: put, blocks: make(map[int]*block)}
}

// Finished reports whether the server said why it stopped.
func (r *reply) Finished() bool { return r.stop != "" }

// Decode reads one event, or a whole reply that did not come as a stream.
func (r *reply) Decode(raw []byte) error {
	kind := jsonscan.String(jsonscan.Get(raw, "type"))
	index, _ := jsonscan.Int(jsonscan.Get(raw, "index"))
	switch kind {
	case "message_start":
		r.count(jsonscan.Get(jsonscan.Get(raw, "message"), "usage"))
	case "content_block_start":
		r.start(index, jsonscan.Get(raw, "content_block"))
	case "content_block_delta":
		r.grow(index, jsonscan.Get(raw, "delta"))
	case "content_block_stop":
		r.close(index)
	case "message_delta":
		r.count(jsonscan.Get(raw, "usage"))
		r.finish(jsonscan.String(jsonscan.Get(jsonscan.Get(raw, "delta"), "stop_reason")))
	case "message_stop":
		if r.stop != "" {
			return io.EOF
		}
	case "message":
		r.count(jsonscan.Get(raw, "usage"))
		n := 0
		for e := jsonscan.Elements(jsonscan.Get(raw, "content")); e.Next(); n++ {
			r.start(n, e.Val)
			r.close(n)
		}
		r.finish(jsonscan.String(jsonscan.Get(raw, "stop_reason")))
	case "error":
		return transport.InBand(raw)
	default:
		if !jsonscan.IsNull(jsonscan.Get(raw, "error")) {
			return transport.InBand(raw)
		}
	}
	return nil
}

// start begins a block with its initial content. It skips blocks of server-side tools: coder requests none.
func (r *reply) start(index int, raw []byte) {
	b := &block{kind: jsonscan.String(jsonscan.Get(raw, "type"))}
	r.blocks[index] = b
	switch b.kind {
	case "text":
		r.tell(b.runes.AddString(jsonscan.Get(raw, "text")))
	case "thinking", redacted:
		b.thought = thought{Type: b.kind, Text: r.text, Calls: r.calls, Data: jsonscan.String(jsonscan.Get(raw, "data"))}
		if n := len(b.thought.Data); n > 0 {
			r.put(provider.ReasoningDelta{Field: thinkingField, Held: n})
		}
		r.order = append(r.order, b)
		r.ponder(b, b.runes.AddString(jsonscan.Get(raw, "thinking")))
		r.hold(b, jsonscan.String(jsonscan.Get(raw, "signature")))
	case "tool_use":
		b.call = r.calls
		r.calls++
		r.put(provider.CallDelta{Index: b.call, ID: jsonscan.String(jsonscan.Get(raw, "id")), Name: jsonscan.String(jsonscan.Get(raw, "name"))})
		if input := jsonscan.Get(raw, "input"); len(input) > len("{}") {
			r.argue(b, string(input))
		}
	}
}

func (r *reply) grow(index int, raw []byte) {
	b := r.blocks[index]
	if b == nil {
		return
	}
	switch jsonscan.String(jsonscan.Get(raw, "type")) {
	case "text_delta":
		r.tell(b.runes.AddString(jsonscan.Get(raw, "text")))
	case "thinking_delta":
		r.ponder(b, b.runes.AddString(jsonscan.Get(raw, "thinking")))
	case "signature_delta":
		r.hold(b, jsonscan.String(jsonscan.Get(raw, "signature")))
	case "input_json_delta":
		if b.kind == "tool_use" {
			r.argue(b, b.runes.AddString(jsonscan.Get(raw, "partial_json")))
		}
	}
}

// close emits what a block held back: half a rune.
func (r *reply) close(index int) {
	b := r.blocks[index]
	if b == nil {
		return
	}
	delete(r.blocks, index)
	switch rest := b.runes.Flush(); b.kind {
	case "text":
		r.tell(rest)
	case "thinking":
		r.ponder(b, rest)
	case "tool_use":
		r.argue(b, rest)
	}
}

func (r *reply) tell(text string) {
	if text != "" {
		r.text += len(text)
		r.put(provider.TextDelta(text))
	}
}

func (r *reply) ponder(b *block, text string) {
	if text != "" {
		b.thought.Length += len(text)
		r.put(provider.ReasoningDelta{Text: text, Field: thinkingField})
	}
}

func (r *reply) argue(b *block, args string) {
	if args != "" {
		r.put(provider.CallDelta{Index: b.call, Args: args})
	}
}

// hold saves a piece of b's signature for the end.
func (r *reply) hold(b *block, signature string) {
	if signature != "" {
		b.signature = append(b.signature, signature...)
		r.put(provider.ReasoningDelta{Field: thinkingField, Held: len(signature)})
	}
}

// count records usage. The server's input count excludes cached tokens.
func (r *reply) count(raw []byte) {
	var in int
	for m := jsonscan.Members(raw); m.Next(); {
		n := int(jsonscan.Figure(m.Val))
		switch string(m.Key) {
		case "input_tokens":
			in += n
		case "cache_creation_input_tokens":
			in += n
			r.usage.Written = max(r.usage.Written, n)
		case "cache_read_input_tokens":
			in += n
			r.usage.Cached = max(r.usage.Cached, n)
		case "output_tokens":
			r.usage.Out = max(r.usage.Out, n)
		}
	}
	r.usage.In = max(r.usage.In, in)
}

// finish records why the model stopped.
func (r *reply) finish(reason string) {
	switch reason {
	case "":
	case "tool_use":
		r.stop = provider.StopTools
	case "max_tokens", "model_context_window_exceeded":
		r.stop = provider.StopLength
	case "refusal":
		r.stop = provider.StopFilter
	default:
		r.stop = provider.StopEnd
	}
}

// End finishes a complete reply.
func (r *reply) End() error {
	for i := range r.blocks {
		r.close(i)
	}
	if len(r.order) > 0 {
		ts := make([]thought, len(r.order))
		for i, b := range r.order {
			ts[i] = b.thought
			ts[i].Signature = string(b.signature)
		}
		details, err := json.Marshal(ts)
		if err != nil {
			return err
		}
		r.put(provider.ReasoningDelta{Field: thinkingField, Details: details})
	}
	var usage *chat.Usage
	if r.usage != (chat.Usage{}) {
		usage = &r.usage
	}
	return transport.Finish(r.put, r.text > 0, r.calls, r.stop, usage)
}

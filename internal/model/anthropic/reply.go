package anthropic

import (
	"encoding/json"
	"io"

	"coder/internal/core/chat"
	"coder/internal/model/jsonscan"
	"coder/internal/model/provider"
	"coder/internal/model/transport"
)

// replyDecoder turns the events of one reply into deltas.
type replyDecoder struct {
	emit func(provider.Delta)

	blocks        map[int]*block // by the server's index
	thoughtBlocks []*block       // of thinking, in order
	text          int            // bytes of text so far
	calls         int
	usage         chat.Usage
	stop          provider.Stop // empty until the server said why it stopped
}

// block is a content block that is still arriving.
type block struct {
	kind    string
	joiner  jsonscan.Joiner
	thought thought
	call    int // its number among the calls

	signature []byte // of the thought
}

func newReplyDecoder(put func(provider.Delta)) transport.Decoder {
	return &replyDecoder{emit: put, blocks: make(map[int]*block)}
}

// IsFinished reports whether the server said why it stopped.
func (r *replyDecoder) IsFinished() bool { return r.stop != "" }

// Decode reads one event, or a whole reply that did not come as a stream.
func (r *replyDecoder) Decode(raw []byte) error {
	kind := jsonscan.String(jsonscan.Get(raw, "type"))
	index, _ := jsonscan.Int(jsonscan.Get(raw, "index"))
	switch kind {
	case "message_start":
		r.recordUsage(jsonscan.Get(jsonscan.Get(raw, "message"), "usage"))
	case "content_block_start":
		r.startBlock(index, jsonscan.Get(raw, "content_block"))
	case "content_block_delta":
		r.appendDelta(index, jsonscan.Get(raw, "delta"))
	case "content_block_stop":
		r.closeBlock(index)
	case "message_delta":
		r.recordUsage(jsonscan.Get(raw, "usage"))
		r.recordStop(jsonscan.String(jsonscan.Get(jsonscan.Get(raw, "delta"), "stop_reason")))
	case "message_stop":
		if r.stop != "" {
			return io.EOF
		}
	case "message":
		r.recordUsage(jsonscan.Get(raw, "usage"))
		n := 0
		for e := jsonscan.Elements(jsonscan.Get(raw, "content")); e.Next(); n++ {
			r.startBlock(n, e.Val)
			r.closeBlock(n)
		}
		r.recordStop(jsonscan.String(jsonscan.Get(raw, "stop_reason")))
	case "error":
		return transport.InBandError(raw)
	default:
		if !jsonscan.IsNull(jsonscan.Get(raw, "error")) {
			return transport.InBandError(raw)
		}
	}
	return nil
}

// startBlock begins a block with its initial content. It skips blocks of server-side tools: coder requests none.
func (r *replyDecoder) startBlock(index int, raw []byte) {
	b := &block{kind: jsonscan.String(jsonscan.Get(raw, "type"))}
	r.blocks[index] = b
	switch b.kind {
	case "text":
		r.emitText(b.joiner.AddString(jsonscan.Get(raw, "text")))
	case "thinking", redactedType:
		b.thought = thought{Type: b.kind, Text: r.text, Calls: r.calls, Data: jsonscan.String(jsonscan.Get(raw, "data"))}
		if n := len(b.thought.Data); n > 0 {
			r.emit(provider.ReasoningDelta{Field: thinkingField, Held: n})
		}
		r.thoughtBlocks = append(r.thoughtBlocks, b)
		r.emitThought(b, b.joiner.AddString(jsonscan.Get(raw, "thinking")))
		r.saveSignature(b, jsonscan.String(jsonscan.Get(raw, "signature")))
	case "tool_use":
		b.call = r.calls
		r.calls++
		r.emit(provider.CallDelta{Index: b.call, ID: jsonscan.String(jsonscan.Get(raw, "id")),
			Name: jsonscan.String(jsonscan.Get(raw, "name"))})
		if input := jsonscan.Get(raw, "input"); len(input) > len("{}") {
			r.emitArgs(b, string(input))
		}
	}
}

func (r *replyDecoder) appendDelta(index int, raw []byte) {
	b := r.blocks[index]
	if b == nil {
		return
	}
	switch jsonscan.String(jsonscan.Get(raw, "type")) {
	case "text_delta":
		r.emitText(b.joiner.AddString(jsonscan.Get(raw, "text")))
	case "thinking_delta":
		r.emitThought(b, b.joiner.AddString(jsonscan.Get(raw, "thinking")))
	case "signature_delta":
		r.saveSignature(b, jsonscan.String(jsonscan.Get(raw, "signature")))
	case "input_json_delta":
		if b.kind == "tool_use" {
			r.emitArgs(b, b.joiner.AddString(jsonscan.Get(raw, "partial_json")))
		}
	}
}

// closeBlock emits what a block held back: half a rune.
func (r *replyDecoder) closeBlock(index int) {
	b := r.blocks[index]
	if b == nil {
		return
	}
	delete(r.blocks, index)
	switch rest := b.joiner.Flush(); b.kind {
	case "text":
		r.emitText(rest)
	case "thinking":
		r.emitThought(b, rest)
	case "tool_use":
		r.emitArgs(b, rest)
	}
}

func (r *replyDecoder) emitText(text string) {
	if text != "" {
		r.text += len(text)
		r.emit(provider.TextDelta(text))
	}
}

func (r *replyDecoder) emitThought(b *block, text string) {
	if text != "" {
		b.thought.Length += len(text)
		r.emit(provider.ReasoningDelta{Text: text, Field: thinkingField})
	}
}

func (r *replyDecoder) emitArgs(b *block, args string) {
	if args != "" {
		r.emit(provider.CallDelta{Index: b.call, Args: args})
	}
}

// saveSignature saves a piece of b's signature for the end.
func (r *replyDecoder) saveSignature(b *block, signature string) {
	if signature != "" {
		b.signature = append(b.signature, signature...)
		r.emit(provider.ReasoningDelta{Field: thinkingField, Held: len(signature)})
	}
}

// recordUsage records usage. The server's input count excludes cached tokens.
func (r *replyDecoder) recordUsage(raw []byte) {
	var in int
	for m := jsonscan.Members(raw); m.Next(); {
		n := int(jsonscan.Float(m.Val))
		switch string(m.Key) {
		case "input_tokens":
			in += n
		case "cache_creation_input_tokens":
			in += n
			r.usage.CacheWritten = max(r.usage.CacheWritten, n)
		case "cache_read_input_tokens":
			in += n
			r.usage.Cached = max(r.usage.Cached, n)
		case "output_tokens":
			r.usage.Out = max(r.usage.Out, n)
		}
	}
	r.usage.In = max(r.usage.In, in)
}

// recordStop records why the model stopped.
func (r *replyDecoder) recordStop(reason string) {
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
func (r *replyDecoder) End() error {
	for i := range r.blocks {
		r.closeBlock(i)
	}
	if len(r.thoughtBlocks) > 0 {
		ts := make([]thought, len(r.thoughtBlocks))
		for i, b := range r.thoughtBlocks {
			ts[i] = b.thought
			ts[i].Signature = string(b.signature)
		}
		details, err := json.Marshal(ts)
		if err != nil {
			return err
		}
		r.emit(provider.ReasoningDelta{Field: thinkingField, Details: details})
	}
	var usage *chat.Usage
	if r.usage != (chat.Usage{}) {
		usage = &r.usage
	}
	return transport.Finish(r.emit, r.text > 0, r.calls, r.stop, usage)
}

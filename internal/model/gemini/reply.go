package gemini

import (
	"bytes"
	"encoding/json"
	"errors"

	"coder/internal/core/chat"
	"coder/internal/model/jsonscan"
	"coder/internal/model/provider"
	"coder/internal/model/transport"
)

// thoughtField marks thinking that came over this wire.
const thoughtField = "gemini"

// replyDecoder turns the chunks of one reply into deltas.
type replyDecoder struct {
	emit func(provider.Delta)

	textJoiner, thoughtJoiner jsonscan.Joiner
	signature                 string // of text
	hasText                   bool
	calls                     int
	usage                     *chat.Usage
	stop                      provider.Stop // empty until the server said why it stopped
	failure                   error         // a stop that is a failure
}

func newReplyDecoder(put func(provider.Delta)) transport.Decoder { return &replyDecoder{emit: put} }

// IsFinished reports whether the server said why it stopped.
func (r *replyDecoder) IsFinished() bool { return r.stop != "" || r.failure != nil }

// Decode reads one chunk, or a whole reply that did not come as a stream.
func (r *replyDecoder) Decode(raw []byte) error {
	if !jsonscan.IsNull(jsonscan.Get(raw, "error")) {
		return transport.InBandError(raw)
	}
	if u := jsonscan.Get(raw, "usageMetadata"); !jsonscan.IsNull(u) {
		thoughts := int(jsonscan.Float(jsonscan.Get(u, "thoughtsTokenCount")))
		r.usage = &chat.Usage{
			In:        int(jsonscan.Float(jsonscan.Get(u, "promptTokenCount"))),
			Out:       int(jsonscan.Float(jsonscan.Get(u, "candidatesTokenCount"))) + thoughts,
			Cached:    int(jsonscan.Float(jsonscan.Get(u, "cachedContentTokenCount"))),
			Reasoning: thoughts,
		}
	}
	if jsonscan.String(jsonscan.Get(jsonscan.Get(raw, "promptFeedback"), "blockReason")) != "" {
		r.stop = provider.StopFilter
	}
	if c := jsonscan.Elements(jsonscan.Get(raw, "candidates")); c.Next() { // only the first candidate counts
		for p := jsonscan.Elements(jsonscan.Get(jsonscan.Get(c.Val, "content"), "parts")); p.Next(); {
			r.readPart(p.Val)
		}
		switch reason := jsonscan.String(jsonscan.Get(c.Val, "finishReason")); reason {
		case "", "FINISH_REASON_UNSPECIFIED":
		case "MAX_TOKENS":
			r.stop = provider.StopLength
		case "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY":
			r.stop = provider.StopFilter
		case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE":
			r.failure = &provider.Error{Kind: provider.ErrCutOff, Retryable: true,
				Err: errors.New("the provider stopped with " + reason)}
		default:
			r.stop = provider.StopEnd
		}
	}
	return nil
}

func (r *replyDecoder) readPart(raw []byte) {
	sign := jsonscan.String(jsonscan.Get(raw, "thoughtSignature"))
	if call := jsonscan.Get(raw, "functionCall"); !jsonscan.IsNull(call) {
		d := provider.CallDelta{Index: r.calls, ID: jsonscan.String(jsonscan.Get(call, "id")),
			Name: jsonscan.String(jsonscan.Get(call, "name"))}
		if args := jsonscan.Get(call, "args"); !jsonscan.IsNull(args) {
			d.Args = string(bytes.ToValidUTF8(args, []byte("\uFFFD")))
		}
		if sign != "" {
			// This is the form that the vendor uses on the chat completions
			// wire, so that a call can go back over either wire.
			d.Extra, _ = json.Marshal(map[string]any{"google": map[string]string{"thought_signature": sign}})
		}
		r.calls++
		r.emit(d)
		return
	}
	if sign != "" {
		r.signature = sign
	}
	text := jsonscan.Get(raw, "text")
	if string(jsonscan.Get(raw, "thought")) == "true" {
		r.emitThought(r.thoughtJoiner.AddString(text))
		return
	}
	r.emitText(r.textJoiner.AddString(text))
}

func (r *replyDecoder) emitText(text string) {
	if text != "" {
		r.hasText = true
		r.emit(provider.TextDelta(text))
	}
}

func (r *replyDecoder) emitThought(text string) {
	if text != "" {
		r.emit(provider.ReasoningDelta{Text: text, Field: thoughtField})
	}
}

// End finishes a complete reply.
func (r *replyDecoder) End() error {
	if r.failure != nil {
		return r.failure
	}
	r.emitThought(r.thoughtJoiner.Flush())
	r.emitText(r.textJoiner.Flush())
	if r.signature != "" {
		details, err := json.Marshal(map[string]string{"signature": r.signature})
		if err != nil {
			return err
		}
		r.emit(provider.ReasoningDelta{Field: thoughtField, Details: details})
	}
	return transport.Finish(r.emit, r.hasText, r.calls, r.stop, r.usage)
}

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

// reply turns the chunks of one reply into deltas.
type reply struct {
	put func(provider.Delta)

	runes, thoughtRunes jsonscan.Joiner
	signature           string // of text
	said                bool
	calls               int
	usage               *chat.Usage
	stop                provider.Stop // empty until the server said why it stopped
	trouble             error         // a stop that is a failure
}

func newReply(put func(provider.Delta)) transport.Decoder { return &reply{put: put} }

// Finished reports whether the server said why it stopped.
func (r *reply) Finished() bool { return r.stop != "" || r.trouble != nil }

// Decode reads one chunk, or a whole reply that did not come as a stream.
func (r *reply) Decode(raw []byte) error {
	if !jsonscan.IsNull(jsonscan.Get(raw, "error")) {
		return transport.InBand(raw)
	}
	if u := jsonscan.Get(raw, "usageMetadata"); !jsonscan.IsNull(u) {
		thoughts := int(jsonscan.Figure(jsonscan.Get(u, "thoughtsTokenCount")))
		r.usage = &chat.Usage{
			In:        int(jsonscan.Figure(jsonscan.Get(u, "promptTokenCount"))),
			Out:       int(jsonscan.Figure(jsonscan.Get(u, "candidatesTokenCount"))) + thoughts,
			Cached:    int(jsonscan.Figure(jsonscan.Get(u, "cachedContentTokenCount"))),
			Reasoning: thoughts,
		}
	}
	if jsonscan.String(jsonscan.Get(jsonscan.Get(raw, "promptFeedback"), "blockReason")) != "" {
		r.stop = provider.StopFilter
	}
	if c := jsonscan.Elements(jsonscan.Get(raw, "candidates")); c.Next() { // only the first candidate counts
		for p := jsonscan.Elements(jsonscan.Get(jsonscan.Get(c.Val, "content"), "parts")); p.Next(); {
			r.part(p.Val)
		}
		switch reason := jsonscan.String(jsonscan.Get(c.Val, "finishReason")); reason {
		case "", "FINISH_REASON_UNSPECIFIED":
		case "MAX_TOKENS":
			r.stop = provider.StopLength
		case "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY":
			r.stop = provider.StopFilter
		case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE":
			r.trouble = &provider.Error{Kind: provider.ErrCutOff, Retryable: true, Err: errors.New("the provider stopped with " + reason)}
		default:
			r.stop = provider.StopEnd
		}
	}
	return nil
}

func (r *reply) part(raw []byte) {
	sign := jsonscan.String(jsonscan.Get(raw, "thoughtSignature"))
	if call := jsonscan.Get(raw, "functionCall"); !jsonscan.IsNull(call) {
		d := provider.CallDelta{Index: r.calls, ID: jsonscan.String(jsonscan.Get(call, "id")), Name: jsonscan.String(jsonscan.Get(call, "name"))}
		if args := jsonscan.Get(call, "args"); !jsonscan.IsNull(args) {
			d.Args = string(bytes.ToValidUTF8(args, []byte("\uFFFD")))
		}
		if sign != "" {
			// This is the form that the vendor uses on the chat completions
			// wire, so that a call can go back over either wire.
			d.Extra, _ = json.Marshal(map[string]any{"google": map[string]string{"thought_signature": sign}})
		}
		r.calls++
		r.put(d)
		return
	}
	if sign != "" {
		r.signature = sign
	}
	text := jsonscan.Get(raw, "text")
	if string(jsonscan.Get(raw, "thought")) == "true" {
		r.ponder(r.thoughtRunes.AddString(text))
		return
	}
	r.tell(r.runes.AddString(text))
}

func (r *reply) tell(text string) {
	if text != "" {
		r.said = true
		r.put(provider.TextDelta(text))
	}
}

func (r *reply) ponder(text string) {
	if text != "" {
		r.put(provider.ReasoningDelta{Text: text, Field: thoughtField})
	}
}

// End finishes a complete reply.
func (r *reply) End() error {
	if r.trouble != nil {
		return r.trouble
	}
	r.ponder(r.thoughtRunes.Flush())
	r.tell(r.runes.Flush())
	if r.signature != "" {
		details, err := json.Marshal(map[string]string{"signature": r.signature})
		if err != nil {
			return err
		}
		r.put(provider.ReasoningDelta{Field: thoughtField, Details: details})
	}
	return transport.Finish(r.put, r.said, r.calls, r.stop, r.usage)
}

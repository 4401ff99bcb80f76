package faultserver

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"strings"

	"coder/internal/model/provider"
)

// Reply is one answer of a script.
type Reply struct {
	Status int         // 200 if zero
	Header http.Header // Content-Type is text/event-stream if it is not set
	Body   string
	Cut    bool // the connection breaks after the body
	Hang   bool // the connection stays open after the body, until the client leaves
}

// Raw is a reply whose stream is given as text.
func Raw(sse string) Reply { return Reply{Body: sse} }

// Status is a refusal.
func Status(code int, body string) Reply {
	return Reply{Status: code, Body: body, Header: http.Header{"Content-Type": {"application/json"}}}
}

// Event is one chunk of a reply.
type Event struct {
	delta  map[string]any
	call   bool
	finish string
	usage  string
}

// Text is a piece of the answer.
func Text(s string) Event { return Event{delta: map[string]any{"content": s}} }

// Think is a piece of thinking, under a field such as "reasoning_content".
func Think(field, s string) Event { return Event{delta: map[string]any{field: s}} }

// Call is a whole tool call; args is its JSON.
func Call(id, name, args string) Event {
	return Event{call: true, delta: map[string]any{"id": id, "type": "function",
		"function": map[string]any{"name": name, "arguments": args}}}
}

// Finish is the reason to stop, where it is not the usual one.
func Finish(reason string) Event { return Event{finish: reason} }

// Usage is the chunk that counts tokens.
func Usage(in, out int) Event {
	return Event{usage: fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}`, in, out, in+out)}
}

// Stream is a whole reply made of events, in order. The reason to stop and the
// end mark are added.
func Stream(events ...Event) Reply {
	var b, usage strings.Builder
	calls, finish := 0, ""
	b.WriteString(data(chunk(`{"role":"assistant","content":""}`, "")))
	for _, e := range events {
		switch {
		case e.call:
			e.delta["index"] = calls
			calls++
			b.WriteString(data(chunk(encode(map[string]any{"tool_calls": []any{e.delta}}), "")))
		case e.delta != nil:
			b.WriteString(data(chunk(encode(e.delta), "")))
		case e.finish != "":
			finish = e.finish
		case e.usage != "":
			usage.WriteString(data(usageChunk(e.usage)))
		}
	}
	if finish == "" {
		finish = "stop"
		if calls > 0 {
			finish = "tool_calls"
		}
	}
	b.WriteString(data(chunk(`{}`, finish)))
	return Raw(b.String() + usage.String() + end)
}

// Deltas is a reply that a client should read as ds. One that does not end in
// Done breaks off.
func Deltas(ds []provider.Delta) Reply {
	var b strings.Builder
	whole := false
	for _, d := range ds {
		switch d := d.(type) {
		case provider.TextDelta:
			b.WriteString(content(string(d)))
		case provider.ReasoningDelta:
			b.WriteString(data(chunk(encode(map[string]any{d.Field: d.Text}), "")))
		case provider.CallDelta:
			f := map[string]any{"arguments": d.Args}
			c := map[string]any{"index": d.Index, "function": f}
			if d.ID != "" {
				c["id"] = d.ID
			}
			if d.Name != "" {
				f["name"] = d.Name
			}
			b.WriteString(data(chunk(encode(map[string]any{"tool_calls": []any{c}}), "")))
		case provider.Done:
			whole = true
			b.WriteString(data(chunk(`{}`, cmp.Or(finishReasons[d.Stop], "stop"))))
			if u := d.Usage; u != nil {
				b.WriteString(data(usageChunk(fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d}}`, u.In, u.Out, u.Cached))))
			}
			b.WriteString(end)
		}
	}
	return Reply{Body: b.String(), Cut: !whole}
}

var finishReasons = map[provider.Stop]string{
	provider.StopTools: "tool_calls", provider.StopLength: "length", provider.StopFilter: "content_filter",
}

func (r Reply) serve(t *turn) {
	for k, v := range r.Header {
		t.w.Header()[k] = v
	}
	if t.w.Header().Get("Content-Type") == "" {
		t.w.Header().Set("Content-Type", "text/event-stream")
	}
	if r.Status != 0 {
		t.w.WriteHeader(r.Status)
	}
	io.WriteString(t.w, r.Body)
	http.NewResponseController(t.w).Flush()
	if r.Hang {
		t.wait(t.s.opt.Stall)
	}
	if r.Cut {
		panic(http.ErrAbortHandler)
	}
}

// end is the mark at the end of a stream.
const end = "data: [DONE]\n\n"

// data wraps a chunk as an event.
func data(chunk string) string { return "data: " + chunk + "\n\n" }

// chunk is one chunk with one choice. An empty finish means none yet.
func chunk(delta, finish string) string {
	reason := "null"
	if finish != "" {
		reason = encode(finish)
	}
	return `{"id":"chatcmpl-loopback","object":"chat.completion.chunk","created":1700000000,"model":"loopback",` +
		`"choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + reason + `}]}`
}

// content is an event with a piece of the answer.
func content(s string) string { return data(chunk(encode(map[string]any{"content": s}), "")) }

// stopped is the reason to stop and the end mark.
func stopped(reason string) string { return data(chunk(`{}`, reason)) + end }

func usageChunk(usage string) string {
	return `{"id":"chatcmpl-loopback","object":"chat.completion.chunk","created":1700000000,"model":"loopback","choices":[],"usage":` + usage + `}`
}

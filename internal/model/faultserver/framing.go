package faultserver

import (
	"compress/gzip"
	"io"
	"maps"
	"net/http"
	"strings"
)

// What the good replies say.
const (
	Answer  = "It is 42 — naïve, 世界 👋."
	Thought = "The user wants a number. 数"
	Many    = 20_000   // deltas of sse-many-deltas
	Giant   = 10 << 20 // bytes of giant-line
	word    = "word "  // what each of the many deltas says
	letter  = "x"      // what the giant line is made of
)

// ManyText and GiantText are the answers of sse-many-deltas and giant-line.
func ManyText() string  { return strings.Repeat(word, Many) }
func GiantText() string { return strings.Repeat(letter, Giant) }

type behaviour func(*turn)

var behaviours = collect(framing, endings, broken, toolCalls, statuses)

func collect(groups ...map[string]behaviour) map[string]behaviour {
	all := map[string]behaviour{}
	for _, g := range groups {
		maps.Copy(all, g)
	}
	return all
}

// ok answers well.
func (t *turn) ok() { t.send(good()...) }

// recover answers well from the second request on; it reports whether it did.
func (t *turn) recover() bool {
	if t.n > 1 {
		t.ok()
		return true
	}
	return false
}

// good is a well-formed reply, event by event.
func good() []string {
	var events []string
	for _, piece := range pieces(Answer) {
		events = append(events, data(chunk(encode(map[string]any{"content": piece}), "")))
	}
	return append(events, data(chunk(`{}`, "stop")), end)
}

// pieces cuts s into a few pieces between runes.
func pieces(s string) []string {
	var out []string
	for i, r := range s {
		if i%5 == 0 || len(out) == 0 {
			out = append(out, "")
		}
		out[len(out)-1] += string(r)
	}
	return out
}

func stream() string { return strings.Join(good(), "") }

// framing are streams that must simply work.
var framing = map[string]behaviour{
	"ok":             (*turn).ok,
	"sse-crlf":       func(t *turn) { t.send(strings.ReplaceAll(stream(), "\n", "\r\n")) },
	"sse-no-space":   func(t *turn) { t.send(strings.ReplaceAll(stream(), "data: ", "data:")) },
	"sse-bom":        func(t *turn) { t.send("\ufeff" + stream()) },
	"sse-one-write":  func(t *turn) { t.send(stream()) },
	"sse-no-blank":   func(t *turn) { t.send(strings.ReplaceAll(stream(), "\n\n", "\n")) },
	"sse-no-newline": func(t *turn) { t.send(strings.TrimRight(stream(), "\n")) },
	"sse-comments": func(t *turn) {
		for i, e := range good() {
			t.send(": still here\n\n", "event: message\nid: "+encode(i)+"\nretry: 1000\n"+e)
		}
	},
	"sse-multiline-data": func(t *turn) {
		for _, e := range good() {
			t.send(strings.Replace(e, `,"choices"`, ",\ndata: \"choices\"", 1))
		}
	},
	"sse-byte-by-byte": func(t *turn) {
		for _, b := range []byte(stream()) {
			t.send(string([]byte{b}))
		}
	},
	"sse-many-deltas": func(t *turn) {
		one := data(chunk(encode(map[string]any{"content": word}), ""))
		for range Many {
			t.send(one)
		}
		t.send(data(chunk(`{}`, "stop")), end)
	},
	"giant-line": func(t *turn) {
		t.send(data(chunk(encode(map[string]any{"content": GiantText()}), "")), data(chunk(`{}`, "stop")), end)
	},
	"empty-choices": func(t *turn) {
		empty := data(`{"id":"c","object":"chat.completion.chunk","choices":[],"prompt_filter_results":[]}`)
		t.send(empty)
		for _, e := range good() {
			t.send(e, empty)
		}
	},
	"usage-only-final": func(t *turn) {
		events := good()
		t.send(events[:len(events)-1]...)
		t.send(data(usageChunk(`{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,`+
			`"prompt_tokens_details":{"cached_tokens":64},"completion_tokens_details":{"reasoning_tokens":7},"cost":0.5}`)), end)
	},
	"null-fields": func(t *turn) {
		nulls := `"role":null,"refusal":null,"tool_calls":null,"function_call":null,"reasoning":null,"reasoning_content":null,"reasoning_details":null`
		t.send(data(chunk(`{"content":null,`+nulls+`}`, "")))
		t.send(data(chunk(`{"content":`+encode(Answer)+`,`+nulls+`}`, "")))
		t.send(data(`{"choices":null,"usage":null,"error":null,"x_groq":null}`))
		t.send(data(`{"choices":[{"index":null,"delta":null,"finish_reason":null,"logprobs":null}],"usage":null}`))
		t.send(data(chunk(`{`+nulls+`}`, "stop")), end)
	},
	"content-parts": func(t *turn) {
		for i, p := range pieces(Answer) {
			part := any(p) // a bare string now and then
			if i%3 > 0 {
				part = map[string]any{"type": "text", "text": p}
			}
			t.send(data(chunk(encode(map[string]any{"content": []any{part}}), "")))
		}
		t.send(data(chunk(`{}`, "stop")), end)
	},
	"lone-surrogate": func(t *turn) {
		t.send(data(chunk(`{"content":"wave \ud83d"}`, "")), data(chunk(`{"content":"\udc4b and half \ud83d"}`, "")), data(chunk(`{"content":" end"}`, "")))
		t.send(data(chunk(`{}`, "stop")), end)
	},
	"reasoning": func(t *turn) {
		for _, p := range pieces(Thought) {
			t.send(data(chunk(encode(map[string]any{"content": nil, "reasoning_content": p}), "")))
		}
		t.ok()
	},
	"think-tags": func(t *turn) {
		for _, p := range pieces("<think>\n" + Thought + "</think>\n\n" + Answer) {
			t.send(data(chunk(encode(map[string]any{"content": p}), "")))
		}
		t.send(data(chunk(`{}`, "stop")), end)
	},
	"refusal": func(t *turn) {
		for _, p := range pieces(Answer) {
			t.send(data(chunk(encode(map[string]any{"content": nil, "refusal": p}), "")))
		}
		t.send(data(chunk(`{}`, "stop")), end)
	},
	"gzip": func(t *turn) {
		t.w.Header().Set("Content-Encoding", "gzip")
		t.w.Header().Set("Content-Type", "text/event-stream")
		z := gzip.NewWriter(t.w)
		for _, e := range good() {
			io.WriteString(z, e)
			z.Flush()
			http.NewResponseController(t.w).Flush()
		}
		z.Close()
	},
	"json-not-sse": func(t *turn) {
		t.json(http.StatusOK, encode(map[string]any{
			"id": "c", "object": "chat.completion",
			"choices": []any{map[string]any{"index": 0, "finish_reason": "stop", "message": map[string]any{"role": "assistant", "content": Answer}}},
			"usage":   map[string]any{"prompt_tokens": 100, "completion_tokens": 20},
		}))
	},
}

// endings are streams that end in other ways than they should.
var endings = map[string]behaviour{
	"no-done": func(t *turn) { t.send(strings.TrimSuffix(stream(), end)) },
	"no-done-open": func(t *turn) {
		t.send(strings.TrimSuffix(stream(), end))
		t.wait(t.s.opt.Stall)
	},
	"no-finish-reason": func(t *turn) { t.send(strings.Replace(stream(), `"finish_reason":"stop"`, `"finish_reason":null`, 1)) },
	"done-open": func(t *turn) {
		t.ok()
		t.wait(t.s.opt.Stall)
	},
	"data-after-done": func(t *turn) {
		t.ok()
		t.send(data(chunk(`{"content":"too late"}`, "")), end)
	},
	"eof-early": func(t *turn) {
		if !t.recover() {
			t.send(good()[:2]...)
		}
	},
	"finish-length": func(t *turn) { t.send(strings.Replace(stream(), `"stop"`, `"length"`, 1)) },
	"finish-filter": func(t *turn) { t.send(strings.Replace(stream(), `"stop"`, `"content_filter"`, 1)) },
	"empty-message": func(t *turn) {
		if !t.recover() {
			t.send(data(chunk(`{"role":"assistant","content":""}`, "")), data(chunk(`{}`, "stop")), end)
		}
	},
	"reasoning-only": func(t *turn) {
		if !t.recover() {
			t.send(data(chunk(encode(map[string]any{"reasoning": Thought}), "")), data(chunk(`{}`, "stop")), end)
		}
	},
	"done-only": func(t *turn) {
		if !t.recover() {
			t.send(end)
		}
	},
	"empty-200": func(t *turn) {
		if !t.recover() {
			t.send("")
		}
	},
}

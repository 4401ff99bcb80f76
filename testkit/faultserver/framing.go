package faultserver

import (
	"compress/gzip"
	"fmt"
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

var behaviours = func() map[string]behaviour {
	all := map[string]behaviour{}
	for _, group := range []map[string]behaviour{framing, endings, broken, toolCalls, statuses} {
		maps.Copy(all, group)
	}
	return all
}()

// ok answers well.
func (t *turn) ok() { t.send(good()...) }

// good is a well-formed reply, event by event.
func good() []string {
	var events []string
	for _, piece := range pieces(Answer) {
		events = append(events, content(piece))
	}
	return append(events, stopped("stop"))
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
		one := content(word)
		for range Many {
			t.send(one)
		}
		t.send(stopped("stop"))
	},
	"giant-line": func(t *turn) {
		t.send(content(GiantText()), stopped("stop"))
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
		t.send(stopped("stop"))
	},
	"lone-surrogate": func(t *turn) {
		t.send(data(chunk(`{"content":"wave \ud83d"}`, "")), data(chunk(`{"content":"\udc4b and half \ud83d"}`, "")),
			data(chunk(`{"content":" end"}`, "")))
		t.send(stopped("stop"))
	},
	"reasoning": func(t *turn) {
		for _, p := range pieces(Thought) {
			t.send(data(chunk(encode(map[string]any{"content": nil, "reasoning_content": p}), "")))
		}
		t.ok()
	},
	"think-tags": func(t *turn) {
		for _, p := range pieces("<think>\n" + Thought + "</think>\n\n" + Answer) {
			t.send(content(p))
		}
		t.send(stopped("stop"))
	},
	"refusal": func(t *turn) {
		for _, p := range pieces(Answer) {
			t.send(data(chunk(encode(map[string]any{"content": nil, "refusal": p}), "")))
		}
		t.send(stopped("stop"))
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
			"choices": []any{map[string]any{"index": 0, "finish_reason": "stop",
				"message": map[string]any{"role": "assistant", "content": Answer}}},
			"usage": map[string]any{"prompt_tokens": 100, "completion_tokens": 20},
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
	"no-finish-reason": func(t *turn) {
		t.send(strings.Replace(stream(), `"finish_reason":"stop"`,
			`"finish_reason":null`, 1))
	},
	"done-open": func(t *turn) {
		t.ok()
		t.wait(t.s.opt.Stall)
	},
	"data-after-done": func(t *turn) {
		t.ok()
		t.send(data(chunk(`{"content":"too late"}`, "")), end)
	},
	"eof-early":     once(func(t *turn) { t.send(good()[:2]...) }),
	"finish-length": func(t *turn) { t.send(strings.Replace(stream(), `"stop"`, `"length"`, 1)) },
	"finish-filter": func(t *turn) { t.send(strings.Replace(stream(), `"stop"`, `"content_filter"`, 1)) },
	"empty-message": once(func(t *turn) {
		t.send(data(chunk(`{"role":"assistant","content":""}`, "")),
			stopped("stop"))
	}),
	"reasoning-only": once(func(t *turn) {
		t.send(data(chunk(encode(map[string]any{"reasoning": Thought}), "")),
			stopped("stop"))
	}),
	"done-only": once(func(t *turn) { t.send(end) }),
	"empty-200": once(func(t *turn) { t.send("") }),
}

const (
	plainHead   = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
	chunkedHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)

// broken are streams and connections that fail on the way.
var broken = map[string]behaviour{
	"cut-mid-chunk": once(func(t *turn) {
		t.send(good()[0])
		whole := good()[1]
		t.send(whole[:len(whole)/2])
		panic(http.ErrAbortHandler)
	}),
	"cut-reset": once(func(t *turn) {
		part := good()[0] + good()[1][:30]
		t.raw(true, chunkedHead, fmt.Sprintf("%x\r\n", len(part)), part)
	}),
	"cut-mid-rune": once(func(t *turn) {
		e := data(chunk(`{"content":"世"}`, ""))
		t.raw(false, plainHead, good()[0], e[:strings.Index(e, "世")+1])
	}),
	"cut-no-response":   once(func(t *turn) { t.raw(false) }),
	"cut-after-headers": once(func(t *turn) { t.raw(false, chunkedHead) }),
	"short-length": once(func(t *turn) {
		t.raw(false, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 100000\r\n\r\n", good()[0])
	}),
	"bad-json-line": once(func(t *turn) {
		t.send(good()[0], "data: {\"choices\":[{\"delta\":{\"content\":\n\n")
		t.send(good()[1:]...)
	}),
	"error-in-stream": once(func(t *turn) {
		t.send(good()[0], data(errorObject("The server had an error while processing your request", "server_error", "")))
	}),
	"error-event": once(func(t *turn) {
		t.send(good()[0], "event: error\n"+data(`{"message":"overloaded, come back later","type":"overloaded_error"}`))
	}),
	"error-choice": once(func(t *turn) {
		t.send(good()[0], data(`{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error","error":{"code":502,"message":"upstream broke"}}]}`))
	}),
	"error-in-stream-fatal": func(t *turn) {
		t.send(good()[0], data(errorObject("Your prompt is not acceptable", "invalid_request_error", "")), end)
	},
	"error-json-200": func(t *turn) {
		t.json(http.StatusOK, errorObject("Your prompt is not acceptable", "invalid_request_error", ""))
	},
	"html-200": func(t *turn) {
		t.w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(t.w, "<!DOCTYPE html><html><head><title>Sign in</title><style>body{color:red}</style>"+
			"<script>var secret = '<b>';</script></head><body><h1>Please sign in</h1><p>to the guest network &amp; enjoy.</p></body></html>")
	},
	"stall-mid-stream": once(func(t *turn) {
		t.send(good()[0])
		t.wait(t.s.opt.Stall)
	}),
	"stall-headers": once(func(t *turn) { t.wait(t.s.opt.Stall) }),
	"keepalive-only": once(func(t *turn) {
		for passed := t.s.opt.Tick; passed < t.s.opt.Stall && t.wait(t.s.opt.Tick); passed += t.s.opt.Tick {
			t.send(": keep-alive\n\n")
		}
	}),
	"slow-stream": func(t *turn) {
		for _, e := range good() {
			if !t.wait(t.s.opt.Tick) {
				return
			}
			t.send(e)
		}
	},
	"not-http": func(t *turn) { t.raw(false, "SSH-2.0-OpenSSH_9.9\r\nhello\r\n\r\n") },
	"redirect-307": func(t *turn) {
		if t.n == 1 {
			http.Redirect(t.w, t.r, t.r.URL.Path, http.StatusTemporaryRedirect)
			return
		}
		t.ok()
	},
	"redirect-302": func(t *turn) { http.Redirect(t.w, t.r, "/elsewhere", http.StatusFound) },
	"redirect-other-host": func(t *turn) {
		http.Redirect(t.w, t.r, t.s.origin(1)+t.r.URL.Path+"?token=abc", http.StatusTemporaryRedirect)
	},
	"h2-reset": once(func(t *turn) {
		t.send(good()[0])
		panic(http.ErrAbortHandler) // over HTTP/2 this is RST_STREAM
	}),
	"h2-goaway": func(t *turn) {
		t.w.Header().Set("Connection", "close") // over HTTP/2 this is GOAWAY
		t.ok()
	},
}

// once misbehaves at the first request and answers the others well.
func once(bad behaviour) behaviour {
	return func(t *turn) {
		if t.n > 1 {
			t.ok()
			return
		}
		bad(t)
	}
}

package faultserver

import (
	"fmt"
	"net/http"
	"strings"
)

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
		if !t.recover() {
			bad(t)
		}
	}
}

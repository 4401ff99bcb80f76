package openai

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"coder/internal/core/chat"
	"coder/internal/model/provider"
	"coder/internal/model/transport"
	"coder/testkit/providertest"
)

const idle = 2 * time.Minute

func TestPatience(t *testing.T) {
	word := `data: {"choices":[{"index":0,"delta":{"content":"word "}}]}` + "\n\n"
	last := `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	// Each step waits and then writes; a server that has no more to say stays silent.
	type step struct {
		wait time.Duration
		text string
	}
	repeat := func(n int, s step) []step {
		var all []step
		for range n {
			all = append(all, s)
		}
		return all
	}
	for _, tc := range []struct {
		name  string
		steps []step
		total time.Duration
		no    bool          // idle timeout
		quiet time.Duration // longest wait for progress, 5m0s if zero
		took  time.Duration
		text  string
		says  string
	}{
		{name: "silence before headers", took: idle, says: "sent nothing for 2m0s"},
		{name: "silence in mid-stream", steps: []step{{0, word}, {time.Minute, word}}, took: time.Minute + idle, text: "word word ", says: "sent nothing for 2m0s"},
		{name: "nothing but comments", steps: append([]step{{0, word}}, repeat(100, step{time.Minute, ": keep-alive\n\n"})...), took: 5 * time.Minute, text: "word ", says: "only keep-alives for 5m0s"},
		{name: "silence, and the limit of progress is the shorter", quiet: time.Minute, steps: []step{{0, word}}, took: time.Minute, text: "word ", says: "sent nothing for 1m0s"},
		{name: "silence before headers, and that limit", quiet: time.Minute, took: time.Minute, says: "sent nothing for 1m0s"},
		{name: "comments, and that limit", quiet: time.Minute, steps: append([]step{{0, word}}, repeat(100, step{time.Second, ": keep-alive\n\n"})...), took: time.Minute, text: "word ", says: "only keep-alives for 1m0s"},
		{name: "nothing but events that say nothing", steps: append([]step{{0, word}}, repeat(100, step{time.Minute, `data: {"choices":[]}` + "\n\n"})...), took: 5 * time.Minute, text: "word ", says: "only keep-alives for 5m0s"},
		{name: "comments, then data", steps: append(repeat(4, step{time.Minute, ": keep-alive\n\n"}), step{time.Minute - 1, word + last + "data: [DONE]\n\n"}), took: 5*time.Minute - 1 + 50*time.Millisecond, text: "word "},
		{name: "comments before every event", steps: append(repeat(20, step{time.Minute, ": keep-alive\n\n" + word}), step{0, "data: [DONE]\n\n"}), took: 20*time.Minute + 50*time.Millisecond, text: strings.Repeat("word ", 20)},
		{name: "slow for a day", steps: append(repeat(24*60, step{time.Minute, word}), step{0, last + "data: [DONE]\n\n"}), took: 24*time.Hour + 50*time.Millisecond, text: strings.Repeat("word ", 24*60)},
		{name: "one line, slowly", steps: append(append([]step{{0, `data: {"choices":[{"delta":{"content":"`}}, repeat(100, step{time.Minute, "a"})...), step{0, `"}}]}` + "\n\ndata: [DONE]\n\n"}), took: 100*time.Minute + 50*time.Millisecond, text: strings.Repeat("a", 100)},
		{name: "whole request takes too long", total: 90 * time.Second, steps: repeat(100, step{time.Minute, word}), took: 90 * time.Second, text: "word ", says: "took longer than 1m30s"},
		{name: "left open after the stop", steps: []step{{0, word + last}}, took: 2 * time.Second, text: "word "},
		{name: "left open after the stop, with comments", steps: append([]step{{0, word + last}}, repeat(60, step{time.Second, ": still here\n\n"})...), took: 2 * time.Second, text: "word "},
		{name: "usage a moment after the stop", steps: []step{{0, word + last}, {time.Second, `data: {"choices":[],"usage":{"prompt_tokens":1}}` + "\n\n"}}, took: 2 * time.Second, text: "word "},
		{name: "left open after the end mark", steps: []step{{0, word + last + "data: [DONE]\n\n"}}, took: 50 * time.Millisecond, text: "word "},
		{name: "no idle timeout", no: true, steps: []step{{0, word}, {48 * time.Hour, last + "data: [DONE]\n\n"}}, took: 48*time.Hour + 50*time.Millisecond, text: "word "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := providertest.NewPipes()
				srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					io.Copy(io.Discard, r.Body)
					for _, s := range tc.steps {
						select {
						case <-time.After(s.wait):
						case <-r.Context().Done():
							return
						}
						io.WriteString(w, s.text)
						http.NewResponseController(w).Flush()
					}
					<-r.Context().Done()
				})}
				go srv.Serve(net)
				defer srv.Close()
				o := transport.Options{BaseURL: "http://loopback/v1", IdleTimeout: idle, ProgressTimeout: cmp.Or(tc.quiet, 5*time.Minute), Timeout: tc.total, RoundTripper: &http.Transport{DialContext: net.Dial}}
				if tc.no {
					o.IdleTimeout, o.ProgressTimeout = 0, 0
				}
				c := New(o)
				defer c.CloseIdle()
				start := time.Now()
				r, err := collect(t.Context(), c)
				if took := time.Since(start); took != tc.took {
					t.Errorf("took %v, want %v", took, tc.took)
				}
				if r.Message.Text() != tc.text {
					t.Errorf("text is %.100q, want %.100q", r.Message.Text(), tc.text)
				}
				if (err != nil) != (tc.says != "") {
					t.Fatalf("error is %v", err)
				}
				var e *provider.Error
				if err != nil && (!errors.Is(err, provider.ErrCutOff) || !errors.As(err, &e) || !e.Retryable || !strings.Contains(err.Error(), tc.says)) {
					t.Errorf("error is %v, want a retryable one that says %q", err, tc.says)
				}
			})
		})
	}
}

// A server that refuses has refused, whichever of our limits ends its explanation: that is
// no silence, and no reason to ask again.
func TestARefusalWhoseExplanationDoesNotEnd(t *testing.T) {
	for name, o := range map[string]transport.Options{
		"silence":  {IdleTimeout: idle},
		"progress": {ProgressTimeout: idle},
		"all":      {Timeout: idle},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := providertest.NewPipes()
				srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.WriteHeader(http.StatusUnauthorized)
					io.WriteString(w, "this key is not")
					http.NewResponseController(w).Flush()
					<-r.Context().Done()
				})}
				go srv.Serve(net)
				defer srv.Close()
				o.BaseURL, o.RoundTripper = "http://loopback/v1", &http.Transport{DialContext: net.Dial}
				c := New(o)
				defer c.CloseIdle()
				_, err := collect(t.Context(), c)
				var e *provider.Error
				if !errors.As(err, &e) || e.Status != http.StatusUnauthorized || e.Retryable || !strings.Contains(err.Error(), "this key is not") {
					t.Errorf("error is %v", err)
				}
			})
		})
	}
}

// A server that reads slowly and says how far it is may take as long as it needs,
// and so may one whose request is long. A word after that is waited for as ever.
func TestALongPrefill(t *testing.T) {
	progress := func(n int) string {
		return fmt.Sprintf(`data: {"choices":[{"index":0,"delta":{"role":"assistant","content":null}}],"prompt_progress":{"total":7000,"cache":100,"processed":%d,"time_ms":%d}}`+"\n\n", n, n*50)
	}
	whole := `data: {"choices":[{"index":0,"delta":{"content":"word"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
	for _, tc := range []struct {
		name   string
		server string
		length int // of the conversation
		wait   time.Duration
		frames int
		says   string
		asked  bool // to tell its progress
	}{
		{"progress is told", "llama.cpp", 30000, 3 * time.Minute, 3, "", true},
		{"a silent server with a long request", "", 30000, 5 * time.Minute, 0, "", false},
		{"a silent server with a short request", "", 10, 5 * time.Minute, 0, "sent nothing for 2m0s", false},
		{"a silent server and no end", "", 30000, time.Hour, 0, "sent nothing for ", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := providertest.NewPipes()
				var asked atomic.Bool
				srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if tc.server != "" {
						w.Header().Set("Server", tc.server)
					}
					if r.Method == http.MethodGet {
						return
					}
					body, _ := io.ReadAll(r.Body)
					asked.Store(strings.Contains(string(body), `"return_progress":true`))
					for i := range tc.frames {
						time.Sleep(tc.wait)
						io.WriteString(w, progress(2000*(i+1)))
						http.NewResponseController(w).Flush()
					}
					select {
					case <-time.After(tc.wait):
					case <-r.Context().Done():
					}
					io.WriteString(w, whole)
				})}
				go srv.Serve(net)
				defer srv.Close()
				c := New(transport.Options{BaseURL: "http://bigbox/v1", IdleTimeout: idle, RoundTripper: &http.Transport{DialContext: net.Dial}})
				defer c.CloseIdle()
				req := provider.Request{Model: "m", Messages: []chat.Message{chat.TextMessage(chat.User, strings.Repeat("long ", tc.length/5))}, Estimate: tc.length}
				var read []int
				if tc.server != "" { // it has said what it is
					if _, err := c.Client.Get(t.Context(), &url.URL{Scheme: "http", Host: "bigbox"}, nil); err != nil {
						t.Error(err)
					}
				}
				r, err := provider.Collect(c.Stream(t.Context(), req), func(d provider.Delta) error {
					if w, ok := d.(provider.Waiting); ok && w.TotalTokens == 7000 && (len(read) == 0 || read[len(read)-1] != w.ReadTokens) {
						read = append(read, w.ReadTokens)
					}
					return nil
				})
				if tc.says == "" && (err != nil || r.Message.Text() != "word") || tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)) {
					t.Errorf("%q, %v", r.Message.Text(), err)
				}
				if len(read) != tc.frames || asked.Load() != tc.asked {
					t.Errorf("told %v, asked %v", read, asked.Load())
				}
			})
		})
	}
}

package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"
)

// reply writes the body of one streamed reply.
type reply func(w io.Writer)

func event(w io.Writer, json string) { fmt.Fprintf(w, "data: %s\n\n", json) }

func end(w io.Writer, reason string) {
	event(w, fmt.Sprintf(`{"choices":[{"index":0,"delta":{},"finish_reason":%q}]}`, reason))
	event(w, `{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":10,"total_tokens":110}}`)
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// text is a reply of one piece.
func text(s string) reply {
	return func(w io.Writer) {
		event(w, fmt.Sprintf(`{"choices":[{"index":0,"delta":{"role":"assistant","content":%q}}]}`, s))
		end(w, "stop")
	}
}

// many is a reply of n pieces.
func many(n int) reply {
	return func(w io.Writer) {
		for i := range n { // no two alike: what repeats itself without end is stopped
			event(w, fmt.Sprintf(`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"content":" word%d"},"finish_reason":null}]}`, i*7919%100_003))
		}
		end(w, "stop")
	}
}

// read is a reply that asks to read a file. The number makes replies differ: coder stops a call that repeats.
func read(i int) reply { return calls(i, 1, "read", `{"path":"a.txt","limit":%d}`) }

// calls is a reply of n calls of a tool. Each has its own number in its arguments, counted from first.
func calls(first, n int, tool, args string) reply {
	return func(w io.Writer) {
		for i := range n {
			event(w, fmt.Sprintf(`{"choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":%d,`+
				`"id":"call_%d","type":"function","function":{"name":%q,"arguments":""}}]}}]}`, i, first+i, tool))
			event(w, fmt.Sprintf(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"function":{"arguments":%q}}]}}]}`,
				i, fmt.Sprintf(args, 40+first+i)))
		}
		end(w, "tool_calls")
	}
}

// server plays replies and notes when requests begin and replies end.
type server struct {
	http    *httptest.Server
	started time.Time

	mu      sync.Mutex // guards the fields below
	replies []reply
	begun   []time.Time // first byte of each request
	ended   []time.Time // last byte of each reply
	bytes   int         // of the first request's body
	others  int         // requests that are not for the model: what the server is and has
}

func newServer() *server {
	s := &server{}
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	return s
}

func (s *server) url() string { return s.http.URL }
func (s *server) close()      { s.http.Close() }

func (s *server) play(rs ...reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replies, s.begun, s.ended, s.bytes, s.others = rs, nil, nil, 0, 0
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		s.mu.Lock()
		s.others++
		s.mu.Unlock()
		http.NotFound(w, r)
		return
	}
	began := time.Now()
	sent, _ := io.Copy(io.Discard, r.Body)
	s.mu.Lock()
	if len(s.begun) == 0 {
		s.bytes = int(sent)
	}
	s.begun = append(s.begun, began)
	next := s.replies[0]
	s.replies = s.replies[1:]
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	out := &pieces{bufio.NewWriter(w), w.(http.Flusher)}
	next(out)
	_ = out.Flush()
	s.mu.Lock()
	s.ended = append(s.ended, time.Now())
	s.mu.Unlock()
	w.(http.Flusher).Flush()
}

// pieces is where a reply is written that may be sent piece by piece.
type pieces struct {
	*bufio.Writer
	to http.Flusher
}

func (p *pieces) push() {
	_ = p.Flush() // who reads may be gone
	p.to.Flush()
}

// gaps are the times between the end of each reply and the next request.
func (s *server) gaps() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ds []time.Duration
	for i := range len(s.begun) - 1 {
		ds = append(ds, s.begun[i+1].Sub(s.ended[i]))
	}
	return ds
}

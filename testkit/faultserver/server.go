// Package faultserver is a model server on loopback for tests: it speaks the
// chat completions wire, says what it is told to say, and misbehaves by name
// the way real servers and networks do. Where a client should try again, the
// next request is answered well.
//
// It logs every request, listens on 127.0.0.1 only, and closes at once.
package faultserver

import (
	"cmp"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	"coder/internal/core/jsonx"
)

// Options say how a server behaves. The zero Options are fine.
type Options struct {
	Addr  string        // where to listen; by default a free port of 127.0.0.1
	Name  string        // the behaviour under /v1; by default the script
	Key   string        // the key that counts as authorised; by default any
	Stall time.Duration // how long silence lasts; by default an hour
	Tick  time.Duration // between the pieces of a slow reply; by default 50 ms
	Tool  string        // the tool that is called; by default "read"
	Args  string        // its arguments; by default {"path":"a.txt"}
	TLS   bool          // serve HTTPS, with HTTP/2

	// Window, if set, is how many tokens a request may have, by the server's own
	// count: [Request.Tokens]. What is longer is refused. PerToken is how many
	// bytes a token has; by default 3.3.
	Window   int
	PerToken float64
	// Answer, if set, gives the replies to requests without a name in place of
	// the script.
	Answer func(Request) Reply
}

const (
	defaultStall = time.Hour
	defaultTick  = 50 * time.Millisecond
	largestBody  = 256 << 20
)

// Server is a running server.
type Server struct {
	opt   Options
	other *http.Server // another origin, for redirects
	addr  [2]string
	ca    []byte
	done  chan struct{}

	mu     sync.Mutex // guards the fields below
	main   *http.Server
	log    []Request
	count  map[string]int // requests by behaviour
	first  map[string]int // size of the first body, likewise
	script []Reply
	shut   bool
}

// Request is one request as the server saw it.
type Request struct {
	Name       string // the behaviour asked for; "" is the script
	Other      bool   // it came to the other origin
	Method     string
	Path       string
	Proto      string
	Header     http.Header
	Body       []byte
	Authorised bool   // it carried the key
	Remote     string // where from; tells connections apart
	Tokens     int    // by the server's own count
	Refused    bool   // it was longer than the window
}

// Messages decodes the conversation in r.
func (r Request) Messages() []Message {
	var b struct{ Messages []Message }
	_ = json.Unmarshal(r.Body, &b) // no messages is what a bad body has
	return b.Messages
}

// Message is a message as it was sent, as far as tests look at it.
type Message struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// New starts a server.
func New(o Options) (*Server, error) {
	o.Addr = cmp.Or(o.Addr, "127.0.0.1:0")
	o.Stall, o.Tick = cmp.Or(o.Stall, defaultStall), cmp.Or(o.Tick, defaultTick)
	o.Tool, o.Args = cmp.Or(o.Tool, "read"), cmp.Or(o.Args, `{"path":"a.txt"}`)
	o.PerToken = cmp.Or(o.PerToken, 3.3)
	s := &Server{opt: o, done: make(chan struct{}), count: map[string]int{}, first: map[string]int{}}
	var err error
	if s.main, err = s.listen(0, o.Addr, false); err != nil {
		return nil, err
	}
	if s.other, err = s.listen(1, "127.0.0.1:0", true); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// TB is the part of testing.TB that Start needs.
type TB interface {
	Helper()
	Fatal(args ...any)
	Cleanup(func())
}

// Start starts a server that closes when the test ends.
func Start(t TB, o Options) *Server {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func (s *Server) listen(n int, addr string, other bool) (*http.Server, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on loopback: %w", err)
	}
	s.addr[n] = l.Addr().String()
	srv := &http.Server{
		Handler:  http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, other) }),
		ErrorLog: log.New(io.Discard, "", 0), // clients misbehave on purpose
	}
	if !s.opt.TLS {
		go srv.Serve(l)
		return srv, nil
	}
	known := httptest.NewTLSServer(nil) // for its certificate, which is that of 127.0.0.1
	known.Close()
	s.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: known.Certificate().Raw})
	srv.TLSConfig = &tls.Config{Certificates: known.TLS.Certificates}
	go srv.ServeTLS(l, "", "")
	return srv, nil
}

// URL is the server's origin.
func (s *Server) URL() string { return s.origin(0) }

func (s *Server) origin(n int) string {
	if s.opt.TLS {
		return "https://" + s.addr[n]
	}
	return "http://" + s.addr[n]
}

// Base is the base URL under which a behaviour is found. The empty name is the
// script, or the behaviour named in the options.
func (s *Server) Base(name string) string {
	if name == "" {
		return s.URL() + "/v1"
	}
	return s.URL() + "/fault/" + name + "/v1"
}

// CA is the certificate of a TLS server, in PEM form.
func (s *Server) CA() []byte { return s.ca }

// Script adds replies to those given in turn to requests without a name.
func (s *Server) Script(replies ...Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = append(s.script, replies...)
}

// Requests returns the requests so far, in the order they came.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

// Count is how many requests a behaviour has had, of both origins.
func (s *Server) Count(name string) int {
	n := 0
	for _, r := range s.Requests() {
		if r.Name == name {
			n++
		}
	}
	return n
}

// Restart closes the server with all its connections and opens it again at the
// same address. It is not for TLS.
func (s *Server) Restart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.main.Close()
	srv, err := s.listen(0, s.addr[0], false)
	if err != nil {
		return err
	}
	s.main = srv
	return nil
}

// Close stops the server and ends whatever it is doing.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.shut {
		s.shut = true
		close(s.done)
	}
	for _, srv := range []*http.Server{s.main, s.other} {
		if srv != nil {
			srv.Close()
		}
	}
}

// serve logs a request and answers it.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, other bool) {
	body, err := io.ReadAll(io.LimitReader(r.Body, largestBody))
	if err != nil {
		return
	}
	// whoever asks beside a request is told nothing
	if r.Method != http.MethodPost || strings.HasSuffix(r.URL.Path, "/api/show") {
		http.NotFound(w, r)
		return
	}
	name := s.opt.Name
	if rest, ok := strings.CutPrefix(r.URL.Path, "/fault/"); ok {
		name, _, _ = strings.Cut(rest, "/")
	}
	key, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	req := Request{
		Name: name, Other: other, Method: r.Method, Path: r.URL.Path, Proto: r.Proto, Header: r.Header.Clone(), Body: body,
		Authorised: bearer && key != "" && (s.opt.Key == "" || key == s.opt.Key), Remote: r.RemoteAddr,
	}
	// Every byte of the messages and tools counts, and a little each message.
	var said struct{ Messages, Tools []json.RawMessage }
	if json.Unmarshal(body, &said) == nil {
		size := 0
		for _, raw := range slices.Concat(said.Messages, said.Tools) {
			size += len(raw)
		}
		req.Tokens = int(float64(size)/s.opt.PerToken) + 4*len(said.Messages)
	}
	req.Refused = s.opt.Window > 0 && req.Tokens > s.opt.Window

	t := &turn{s: s, w: w, r: r, body: body}
	next := Status(http.StatusBadRequest, errorObject("the script has no reply left", "script", ""))
	s.mu.Lock()
	s.log = append(s.log, req)
	s.count[name]++
	if s.count[name] == 1 {
		s.first[name] = len(body)
	}
	t.n, t.first = s.count[name], s.first[name]
	act, known := behaviours[name]
	scripted := name == "" && !other && !req.Refused
	if scripted && s.opt.Answer == nil && len(s.script) > 0 {
		next, s.script = s.script[0], s.script[1:]
	}
	s.mu.Unlock()

	switch {
	case req.Refused:
		t.fail(http.StatusBadRequest,
			fmt.Sprintf("This model's maximum context length is %d tokens. However, your messages resulted in %d tokens. Please reduce the length of the messages.",
				s.opt.Window, req.Tokens), "invalid_request_error", "context_length_exceeded")
	case other:
		t.ok()
	case scripted && s.opt.Answer != nil:
		s.opt.Answer(req).serve(t)
	case scripted:
		next.serve(t)
	case known:
		act(t)
	default:
		http.Error(w, "no behaviour called "+name, http.StatusNotFound)
	}
}

// Names lists the behaviours.
func Names() []string { return slices.Sorted(maps.Keys(behaviours)) }

// turn is one request on its way to an answer.
type turn struct {
	s     *Server
	w     http.ResponseWriter
	r     *http.Request
	body  []byte
	n     int // the how manieth for its behaviour, from 1
	first int // how large the first was
}

// afterResults reports whether the conversation ends with a tool result.
func (t *turn) afterResults() bool {
	ms := Request{Body: t.body}.Messages()
	return len(ms) > 0 && ms[len(ms)-1].Role == "tool"
}

// wait lets d pass; it reports false if the client left or the server closes.
func (t *turn) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-t.r.Context().Done():
	case <-t.s.done:
	}
	return false
}

// send writes part of a stream and flushes it.
func (t *turn) send(parts ...string) {
	h := t.w.Header()
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "text/event-stream")
	}
	for _, p := range parts {
		io.WriteString(t.w, p)
		http.NewResponseController(t.w).Flush()
	}
}

// raw takes the connection over and writes bytes to it. With reset it is then
// torn down, else closed.
func (t *turn) raw(reset bool, parts ...string) {
	conn, _, err := http.NewResponseController(t.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // HTTP/2: the nearest thing is to end the stream
	}
	defer conn.Close()
	io.WriteString(conn, strings.Join(parts, ""))
	if tcp, ok := conn.(*net.TCPConn); ok && reset {
		tcp.SetLinger(0)
	}
}

// fail answers with an error object.
func (t *turn) fail(status int, message, kind, code string) {
	t.json(status, errorObject(message, kind, code))
}

func (t *turn) json(status int, body string) {
	t.w.Header().Set("Content-Type", "application/json")
	t.w.WriteHeader(status)
	io.WriteString(t.w, body)
}

func errorObject(message, kind, code string) string {
	e := map[string]any{"message": message, "type": kind}
	if code != "" {
		e["code"] = code
	}
	return encode(map[string]any{"error": e})
}

// encode writes v as people write JSON.
func encode(v any) string { return string(jsonx.MustMarshal(v)) }

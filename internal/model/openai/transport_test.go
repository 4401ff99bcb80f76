package openai

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"coder/internal/core/chat"
	"coder/internal/model/provider"
	"coder/internal/model/transport"
	"coder/testkit/faultserver"
)

const secret = "sk-secret-0123456789"

func hello() provider.Request {
	return provider.Request{Model: "m", Messages: []chat.Message{chat.TextMessage(chat.User, "hello")}}
}

// collect asks c once.
func collect(ctx context.Context, c *Client) (provider.Reply, error) {
	return provider.Collect(c.Stream(ctx, hello()), func(provider.Delta) error { return nil })
}

// client makes a client that is closed with the test.
func client(t testing.TB, o transport.Options) *Client {
	t.Helper()
	if o.APIKey == "" {
		o.APIKey = secret
	}
	c := New(o)
	t.Cleanup(c.CloseIdle)
	return c
}

// deadPort is an address on loopback where nobody listens.
func deadPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// answering is a listener that writes the same bytes to whoever connects.
func answering(t *testing.T, text string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if req, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				io.Copy(io.Discard, req.Body)
			}
			io.WriteString(conn, text)
			conn.Close()
		}
	}()
	return l.Addr().String()
}

func TestTransportErrors(t *testing.T) {
	plain := faultserver.Start(t, faultserver.Options{})
	secure := faultserver.Start(t, faultserver.Options{TLS: true})
	dead := deadPort(t)
	proxy := func(addr string) func(*http.Request) (*url.URL, error) {
		return func(*http.Request) (*url.URL, error) { return &url.URL{Scheme: "http", Host: addr}, nil }
	}
	wantsPassword := answering(t, "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	host := func(s *faultserver.Server) string { return s.URL()[strings.Index(s.URL(), "//")+2:] }

	for _, tc := range []struct {
		name      string
		o         transport.Options
		kind      error
		retryable bool
		says      []string
	}{
		{"connection refused", transport.Options{BaseURL: "http://" + dead + "/v1"},
			provider.ErrUnreachable, true, []string{"cannot reach " + dead + ": connection refused"}},
		{"no such host", transport.Options{BaseURL: "http://no-such-host.invalid/v1", RoundTripper: &http.Transport{DialContext: noSuchHost}},
			provider.ErrUnreachable, true, []string{"cannot reach no-such-host.invalid:80", "no such host"}},
		{"unknown certificate", transport.Options{BaseURL: secure.Base("ok")},
			provider.ErrUnreachable, false, []string{"cannot trust the certificate of " + host(secure)}},
		{"wrong host in certificate", transport.Options{BaseURL: strings.Replace(secure.Base("ok"), "127.0.0.1", "localhost", 1), CA: secure.CA()},
			provider.ErrUnreachable, false, []string{"cannot trust the certificate of localhost:"}},
		{"TLS to a plain port", transport.Options{BaseURL: strings.Replace(plain.Base("ok"), "http:", "https:", 1)},
			provider.ErrUnreachable, false, []string{host(plain) + " speaks plain HTTP", "http://"}},
		{"plain HTTP to a TLS port", transport.Options{BaseURL: strings.Replace(secure.Base("ok"), "https:", "http:", 1)},
			provider.ErrUnreachable, false, []string{host(secure) + " speaks TLS", "https://"}},
		{"plain HTTP answered by a TLS alert", transport.Options{BaseURL: "http://" + answering(t, "\x15\x03\x01\x00\x02\x02\x0a")},
			provider.ErrUnreachable, false, []string{"speaks TLS", "https://"}},
		{"not HTTP", transport.Options{BaseURL: "http://" + answering(t, "220 smtp.example ESMTP\r\n")},
			provider.ErrNotAnAPI, false, []string{"does not speak HTTP"}},
		{"dead proxy before HTTP", transport.Options{BaseURL: "http://api.example/v1", Proxy: proxy(dead)},
			provider.ErrUnreachable, true, []string{"cannot reach the proxy " + dead + ": connection refused"}},
		{"dead proxy before HTTPS", transport.Options{BaseURL: "https://api.example/v1", Proxy: proxy(dead)},
			provider.ErrUnreachable, true, []string{"cannot reach the proxy " + dead + ": connection refused"}},
		{"proxy wants a password", transport.Options{BaseURL: "https://api.example/v1", Proxy: proxy(wantsPassword)},
			provider.ErrAuth, false, []string{"the proxy " + wantsPassword + " requires a user name and password"}},
		{"no address", transport.Options{}, provider.ErrBadRequest, false, []string{"base URL"}},
		{"address without scheme", transport.Options{BaseURL: "api.example/v1"}, provider.ErrBadRequest, false, []string{"base URL"}},
		{"key in the address", transport.Options{BaseURL: "ftp://" + secret + "@x/v1"}, provider.ErrBadRequest, false, []string{"base URL"}},
		{"key that cannot be sent", transport.Options{BaseURL: plain.Base("ok"), APIKey: "line\nbreak"},
			provider.ErrBadRequest, false, []string{"cannot be sent"}},
		{"certificates that are none", transport.Options{BaseURL: secure.Base("ok"), CA: []byte("nonsense")},
			provider.ErrBadRequest, false, []string{"PEM"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := collect(t.Context(), client(t, tc.o))
			var e *provider.Error
			if !errors.As(err, &e) || !errors.Is(err, tc.kind) || e.Retryable != tc.retryable {
				t.Fatalf("got %#v (%v), want %v, retryable %v", err, err, tc.kind, tc.retryable)
			}
			for _, part := range tc.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
			if tc.kind == provider.ErrBadRequest && strings.Contains(err.Error(), "refused") {
				t.Errorf("%q: no server has seen the request", err)
			}
			if strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "\n") {
				t.Errorf("text is not clean: %q", err)
			}
		})
	}
}

func noSuchHost(context.Context, string, string) (net.Conn, error) {
	return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "no-such-host.invalid", IsNotFound: true}}
}

func TestLoopbackIsNotProxied(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://"+deadPort(t))
	s := faultserver.Start(t, faultserver.Options{})
	c := client(t, transport.Options{BaseURL: s.Base("ok"), Proxy: http.ProxyFromEnvironment})
	if r, err := collect(t.Context(), c); err != nil || r.Message.Text() != faultserver.Answer {
		t.Errorf("got %q, %v", r.Message.Text(), err)
	}
}

func TestBaseURL(t *testing.T) {
	for base, want := range map[string]string{
		"http://h/v1":                        "http://h/v1/chat/completions",
		"http://h/v1/":                       "http://h/v1/chat/completions",
		"http://h":                           "http://h/chat/completions",
		"http://h/v1/chat/completions":       "http://h/v1/chat/completions",
		"http://h/v1/chat/completions/":      "http://h/v1/chat/completions",
		" https://h/d/x?api-version=2024-06": "https://h/d/x/chat/completions?api-version=2024-06",
	} {
		if u, err := transport.Endpoint(base, completionsPath); err != nil || u.String() != want {
			t.Errorf("endpoint(%q) = %v, %v, want %s", base, u, err, want)
		}
	}
}

func TestRequestHeaders(t *testing.T) {
	s := faultserver.Start(t, faultserver.Options{Key: secret})
	c := client(t, transport.Options{BaseURL: s.Base("ok"), UserAgent: "coder/1", APIKey: " " + secret + "\n", Headers: map[string]string{"X-Title": "t"}})
	if _, err := collect(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	r := s.Requests()[0]
	if r.Method != "POST" || r.Path != "/fault/ok/v1/chat/completions" || !r.Authorised {
		t.Errorf("%s %s, authorised %v", r.Method, r.Path, r.Authorised)
	}
	for name, want := range map[string]string{
		"User-Agent": "coder/1", "X-Title": "t", "Content-Type": "application/json", "Accept": "text/event-stream",
		"Idempotency-Key": "", "Content-Length": fmt.Sprint(len(r.Body)),
	} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// A server that goes away between two turns leaves a dead connection behind.
func TestStaleConnection(t *testing.T) {
	s := faultserver.Start(t, faultserver.Options{})
	c := client(t, transport.Options{BaseURL: s.Base("ok")})
	for i := range 3 {
		if _, err := collect(t.Context(), c); err != nil {
			t.Fatalf("turn %d: %v", i, err)
		}
		if err := s.Restart(); err != nil {
			t.Fatal(err)
		}
	}
}

// The connection is used again after a complete reply, also when the consumer
// leaves at Done.
func TestConnectionIsReused(t *testing.T) {
	for _, name := range []string{"ok", "no-done", "json-not-sse", "http-400"} {
		s := faultserver.Start(t, faultserver.Options{})
		c := client(t, transport.Options{BaseURL: s.Base(name)})
		const requests = 8
		for range requests {
			for d := range c.Stream(t.Context(), hello()) {
				if _, ok := d.(provider.Done); ok {
					break
				}
			}
		}
		from := map[string]bool{}
		for _, r := range s.Requests() {
			from[r.Remote] = true
		}
		if len(from) == requests { // one would do, but a slow machine may close it first
			t.Errorf("%s: %d connections for %d requests", name, len(from), requests)
		}
	}
}

// Servers say that they are done a moment before they end the response.
func TestConnectionIsReusedWhenTheEndComesLate(t *testing.T) {
	var mu sync.Mutex // guards from
	from := map[string]bool{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		from[r.RemoteAddr] = true
		mu.Unlock()
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
		w.(http.Flusher).Flush()
		time.Sleep(2 * time.Millisecond)
	}))
	defer s.Close()
	c := client(t, transport.Options{BaseURL: s.URL})
	const requests = 8
	for range requests {
		for d := range c.Stream(t.Context(), hello()) {
			if _, ok := d.(provider.Done); ok {
				break
			}
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(from) == requests { // one would do, but a slow machine may close it first
		t.Errorf("%d connections for %d requests", len(from), requests)
	}
}

func TestCancelDropsTheConnection(t *testing.T) {
	for _, name := range []string{"stall-mid-stream", "stall-headers", "keepalive-only", "done-open"} {
		t.Run(name, func(t *testing.T) {
			s := faultserver.Start(t, faultserver.Options{})
			ctx, cancel := context.WithCancel(t.Context())
			asked := make(chan struct{})
			go func() {
				defer close(asked)
				for s.Count(name) == 0 && ctx.Err() == nil {
					time.Sleep(time.Millisecond)
				}
				cancel()
			}()
			_, err := collect(ctx, client(t, transport.Options{BaseURL: s.Base(name)}))
			<-asked
			if err != context.Canceled && !(name == "done-open" && err == nil) {
				t.Errorf("got %v, want context.Canceled itself", err)
			}
		})
	}
}

// What has been received but not yet passed on is dropped with the request.
func TestNothingComesAfterCancel(t *testing.T) {
	s := faultserver.Start(t, faultserver.Options{})
	c := client(t, transport.Options{BaseURL: s.Base("sse-one-write")})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	deltas := 0
	for d := range c.Stream(ctx, hello()) {
		cancel()
		if d != nil {
			deltas++
		}
	}
	if deltas != 1 {
		t.Errorf("%d deltas after cancelling at the first", deltas-1)
	}
}

func TestSecretsAreHidden(t *testing.T) {
	s := faultserver.Start(t, faultserver.Options{})
	for _, body := range []string{
		`{"error":{"message":"bad key ` + secret + `"}}`,
		`{"error":{"message":"` + strings.Repeat("x", 490) + " " + secret + `"}}`,
		`{"error":{"message":"header-secret-1 was sent"}}`,
		"<p>" + secret + "</p>",
		"plain " + secret,
	} {
		s.Script(faultserver.Status(http.StatusBadRequest, body))
		c := client(t, transport.Options{BaseURL: s.Base(""), Headers: map[string]string{"X-Api-Key": "header-secret-1"}})
		_, err := collect(t.Context(), c)
		if err == nil || strings.Contains(err.Error(), secret[:8]) || strings.Contains(err.Error(), "header-secret-1") {
			t.Errorf("%q tells the secret", err)
		}
	}
}

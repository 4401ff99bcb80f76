package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"coder/internal/core/hosts"
	"coder/internal/core/message"
)

// Limits of one gate.
const (
	maxHeaderBytes = 16 << 10 // bytes of a request's headers
	maxConns       = 128      // at a time; more must wait
	maxRefused     = 50       // refused hosts remembered
	headerTimeout  = 30 * time.Second
	connectTimeout = 30 * time.Second
	idleTimeout    = 10 * time.Minute // of a connection to a host
)

// Options configure a [Gate]. Admit is required.
type Options struct {
	// Admit returns an error if the command may not reach a host. It may block until ctx ends.
	Admit func(ctx context.Context, to hosts.Target) error
	// Dialer connects to admitted hosts.
	Dialer Dialer
	// Upstream, if not nil, chooses the user's proxy for a request, as in [http.Transport].
	Upstream func(*http.Request) (*url.URL, error)
}

// Gate is the proxy of one command.
type Gate struct {
	o      Options
	server http.Server
	cancel context.CancelFunc
	slots  chan struct{}

	mu       sync.Mutex // guards the fields below
	closed   bool
	refused  map[string]string // reasons by target
	requests sync.WaitGroup    // active requests
}

// Open serves the connections of a listener until Close.
func Open(ctx context.Context, l net.Listener, o Options) *Gate {
	ctx, end := context.WithCancel(ctx)
	g := &Gate{o: o, cancel: end, refused: make(map[string]string), slots: make(chan struct{}, maxConns)}
	g.server = http.Server{
		Handler: g, ReadHeaderTimeout: headerTimeout, IdleTimeout: headerTimeout, MaxHeaderBytes: maxHeaderBytes,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    discardLogger(), DisableGeneralOptionsHandler: true,
	}
	g.requests.Go(func() { _ = g.server.Serve(&limitedListener{l, g.slots, ctx.Done()}) })
	return g
}

// Close closes the gate and all its connections, and returns why hosts were refused.
func (g *Gate) Close() []string {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.cancel()
	_ = g.server.Close()
	g.requests.Wait()
	var list []string
	for _, host := range slices.Sorted(maps.Keys(g.refused)) {
		list = append(list, g.refused[host])
	}
	return list
}

// ServeHTTP forwards one request, or refuses it.
func (g *Gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return
	}
	g.requests.Add(1)
	g.mu.Unlock()
	defer g.requests.Done()

	to, err := requestTarget(r)
	if err != nil {
		writeError(w, r, http.StatusBadRequest, err)
		return
	}
	if err = g.admit(r.Context(), to); err != nil {
		g.refuse(w, r, to, err)
		return
	}
	if r.Method == http.MethodConnect {
		g.tunnel(w, r, to)
	} else {
		g.forward(w, r, to)
	}
}

// requestTarget returns the host that a request names. It rejects ambiguous requests.
func requestTarget(r *http.Request) (hosts.Target, error) {
	u, port := r.URL, "80"
	switch {
	case r.Method == http.MethodConnect:
		port = ""
		if u.Path != "" || u.RawQuery != "" {
			return hosts.Target{}, errors.New("CONNECT needs a host and a port")
		}
	case u.Scheme == "" || u.Host == "":
		return hosts.Target{}, errors.New("this is a proxy: a request needs an absolute address")
	case u.Scheme != "http":
		return hosts.Target{}, message.Errorf("use CONNECT for %s", strings.ToLower(u.Scheme))
	}
	to, err := hosts.NewTarget(u.Host, port)
	switch {
	case err != nil:
		return to, message.Errorf("%.100q: %w", u.Host, err)
	case u.User != nil:
		return to, errors.New("a proxy address cannot contain a user name")
	case to.Port == "":
		return to, errors.New("CONNECT needs a port")
	}
	return to, nil
}

// admit returns an error if a target may not be reached. It rejects non-public addresses without asking.
func (g *Gate) admit(ctx context.Context, to hosts.Target) error {
	if a, err := netip.ParseAddr(to.Host); err == nil && !g.o.Dialer.allows(to.Host, to.Port) {
		if err := CheckAddress(to.Host, a); err != nil {
			return message.Errorf("%w; name it in safety.network to allow it", err)
		}
	}
	return g.o.Admit(ctx, to)
}

// refuse reports a refusal to the command, and remembers it.
func (g *Gate) refuse(w http.ResponseWriter, r *http.Request, to hosts.Target, err error) {
	g.mu.Lock()
	if len(g.refused) < maxRefused {
		g.refused[to.String()] = err.Error()
	}
	g.mu.Unlock()
	writeError(w, r, http.StatusForbidden, err)
}

// replyUnreachable answers a request with an unreachable host.
func (g *Gate) replyUnreachable(w http.ResponseWriter, r *http.Request, to hosts.Target, err error) {
	if errors.Is(err, ErrAddress) {
		g.refuse(w, r, to, message.Errorf("%w; fetch.allow_hosts can allow a host at such an address", err))
		return
	}
	writeError(w, r, http.StatusBadGateway, err)
}

// writeError writes an error. For CONNECT, programs show only the status line, so the reason is also there.
func writeError(w http.ResponseWriter, r *http.Request, status int, err error) {
	body := "coder: " + err.Error() + "\n"
	if r.Method != http.MethodConnect {
		http.Error(w, strings.TrimSuffix(body, "\n"), status)
		return
	}
	conn, _, hijackErr := http.NewResponseController(w).Hijack()
	if hijackErr != nil {
		return
	}
	defer conn.Close()
	reason := strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return ' '
		}
		return c
	}, strings.TrimSpace(body))
	fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		status, reason, len(body), body)
}

// tunnel connects the command's connection to the host.
func (g *Gate) tunnel(w http.ResponseWriter, r *http.Request, to hosts.Target) {
	ctx := r.Context()
	far, err := g.connect(ctx, to)
	if err != nil {
		g.replyUnreachable(w, r, to, err)
		return
	}
	defer far.Close()
	near, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer near.Close()
	defer context.AfterFunc(ctx, func() { near.Close(); far.Close() })()
	if _, err := io.WriteString(near, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	var sent sync.WaitGroup
	sent.Go(func() { copyHalf(far, buffered, near) })
	copyHalf(near, far, far)
	sent.Wait()
}

// copyHalf copies until from ends, then closes only the sending side of to. On an error it closes both.
func copyHalf(to net.Conn, from io.Reader, source net.Conn) {
	if _, err := io.Copy(to, from); err != nil {
		to.Close()
		source.Close()
		return
	}
	_ = closeWrite(to)
}

// forward forwards one plain request.
func (g *Gate) forward(w http.ResponseWriter, r *http.Request, to hosts.Target) {
	t := &http.Transport{
		DisableCompression: true, DisableKeepAlives: true, MaxResponseHeaderBytes: 4 * maxHeaderBytes,
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) { return g.dial(ctx, address, false) },
	}
	proxy, err := g.upstream(r.Context(), to)
	if err == nil && proxy != nil {
		t.Proxy = http.ProxyURL(proxy)
		t.DialContext = func(ctx context.Context, _, address string) (net.Conn, error) { return g.dial(ctx, address, true) }
	}
	if err != nil {
		g.replyUnreachable(w, r, to, err)
		return
	}
	(&httputil.ReverseProxy{
		Rewrite:       func(p *httputil.ProxyRequest) { p.Out.Host = p.In.URL.Host },
		Transport:     t,
		FlushInterval: -1, ErrorLog: discardLogger(),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) { g.replyUnreachable(w, r, to, err) },
	}).ServeHTTP(w, r)
}

// upstream returns the user's proxy for a host, if any. It checks the host's address where it resolves
// here; some names only the proxy can resolve.
func (g *Gate) upstream(ctx context.Context, to hosts.Target) (*url.URL, error) {
	if g.o.Upstream == nil {
		return nil, nil
	}
	scheme := "https"
	if to.Port == "80" {
		scheme = "http"
	}
	asked := &http.Request{Method: http.MethodGet, URL: &url.URL{Scheme: scheme, Host: net.JoinHostPort(to.Host, to.Port)}}
	proxy, err := g.o.Upstream(asked)
	if err != nil || proxy == nil {
		return nil, err
	}
	if _, err := g.o.Dialer.Resolve(ctx, to.Host, to.Port); errors.Is(err, ErrAddress) {
		return nil, err
	}
	return proxy, nil
}

// connect connects to a host, through the user's proxy if there is one.
func (g *Gate) connect(ctx context.Context, to hosts.Target) (net.Conn, error) {
	address := net.JoinHostPort(to.Host, to.Port)
	proxy, err := g.upstream(ctx, to)
	if err != nil {
		return nil, err
	}
	if proxy == nil {
		return g.dial(ctx, address, false)
	}
	port := map[string]string{"http": "80", "https": "443"}[proxy.Scheme]
	if port == "" {
		return nil, message.Errorf("the user's proxy uses %s; commands need one that uses http or https", proxy.Scheme)
	}
	if proxy.Port() != "" {
		port = proxy.Port()
	}
	conn, err := g.dial(ctx, net.JoinHostPort(proxy.Hostname(), port), true)
	if err != nil {
		return nil, message.Errorf("reach the user's proxy: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if proxy.Scheme == "https" {
		conn = tls.Client(conn, &tls.Config{ServerName: proxy.Hostname()})
	}
	ask := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{}}
	if u := proxy.User; u != nil {
		password, _ := u.Password()
		ask.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password)))
	}
	if err = ask.Write(conn); err == nil {
		var said *http.Response
		in := bufio.NewReader(io.LimitReader(conn, maxHeaderBytes))
		if said, err = http.ReadResponse(in, ask); err == nil && said.StatusCode != http.StatusOK {
			err = message.Errorf("the user's proxy answered %s", said.Status)
		}
		if err == nil && in.Buffered() > 0 {
			err = errors.New("the user's proxy sent more than its answer")
		}
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// dial connects to a host, or to the user's proxy, which may have any address. It closes connections
// that are idle for long.
func (g *Gate) dial(ctx context.Context, address string, proxy bool) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	d := g.o.Dialer
	if proxy {
		d.Allow = func(string, string) bool { return true }
	}
	conn, err := d.Dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &idleConn{conn, time.AfterFunc(idleTimeout, func() { conn.Close() })}, nil
}

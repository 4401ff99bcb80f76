package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"coder/internal/core/message"
	"coder/internal/model/provider"
)

const (
	dialTimeout      = 15 * time.Second
	handshakeTimeout = 15 * time.Second
	keepAlive        = 15 * time.Second
	idleConnTimeout  = 90 * time.Second
	pingAfter        = 20 * time.Second // of silence on an HTTP/2 connection
	idleConns        = 8
	maxRedirects     = 5
	readBuffer       = 32 << 10
	writeBuffer      = 32 << 10
)

var dialer = net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}

// newHTTPClient sets no timeout for the whole reply: see [watchdog].
func newHTTPClient(o Options) (*http.Client, error) {
	if o.RoundTripper != nil {
		return &http.Client{CheckRedirect: checkRedirect, Transport: o.RoundTripper}, nil
	}
	var tlsConfig *tls.Config
	if len(o.CA) > 0 {
		pool, err := Authorities(o.CA)
		if err != nil {
			return nil, err
		}
		tlsConfig = &tls.Config{RootCAs: pool}
	}
	if len(o.Cert) > 0 {
		cert, err := tls.X509KeyPair(o.Cert, o.CertKey)
		if err != nil {
			return nil, message.Errorf("the client certificate cannot be used: %w", err)
		}
		if tlsConfig == nil {
			tlsConfig = new(tls.Config)
		}
		tlsConfig.Certificates = []tls.Certificate{cert}
	}
	return &http.Client{
		CheckRedirect: checkRedirect,
		Transport: &http.Transport{
			Proxy:               o.Proxy,
			DialContext:         dialer.DialContext,
			TLSClientConfig:     tlsConfig,
			TLSHandshakeTimeout: handshakeTimeout,
			ForceAttemptHTTP2:   true,
			HTTP2:               &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingAfter},
			MaxIdleConnsPerHost: idleConns,
			IdleConnTimeout:     idleConnTimeout,
			ReadBufferSize:      readBuffer,
			WriteBufferSize:     writeBuffer,
		},
	}, nil
}

// Authorities returns the system's certificate authorities and those in a PEM text.
func Authorities(text []byte) (*x509.CertPool, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, errors.New("the extra certificates are not in PEM format")
	}
	return pool, nil
}

// redirectError is a redirect that coder does not follow: the
// conversation and the key go only to the origin that the user named.
type redirectError struct{ to string }

func (e redirectError) Error() string {
	return fmt.Sprintf("the endpoint redirects to %s; neither the key nor the conversation was sent there", e.to)
}

func checkRedirect(req *http.Request, via []*http.Request) error {
	first := via[0]
	sameOrigin := req.URL.Scheme == first.URL.Scheme && req.URL.Host == first.URL.Host
	if !sameOrigin || req.Method != first.Method || len(via) > maxRedirects {
		return redirectError{to: (&url.URL{Scheme: req.URL.Scheme, Host: req.URL.Host, Path: req.URL.Path}).String()}
	}
	return nil
}

// address returns an endpoint's host and port.
func address(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	port := "80"
	if u.Scheme == "https" {
		port = "443"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// textError is an error with coder's own text and its cause.
type textError struct {
	text  string
	cause []error
}

func (e textError) Error() string   { return e.text }
func (e textError) Unwrap() []error { return e.cause }

// newError returns an error whose text replaces that of its kind.
func newError(kind error, retryable bool, cause error, format string, args ...any) *provider.Error {
	e := textError{text: CleanLine(fmt.Sprintf(format, args...)), cause: []error{kind}}
	if cause != nil {
		e.cause = append(e.cause, cause)
	}
	return &provider.Error{Kind: kind, Retryable: retryable, Err: e}
}

// route is where a request goes: the endpoint and the proxy before it, if any.
type route struct {
	host, proxy string
	secure      bool
}

// route determines where a request goes.
func (c *Client) route(req *http.Request) route {
	r := route{host: address(req.URL), secure: req.URL.Scheme == "https"}
	if c.opt.Proxy == nil {
		return r
	}
	if u, err := c.opt.Proxy(req); err == nil && u != nil {
		r.proxy = address(u)
	}
	return r
}

// Route returns the route to u as text for the user.
func (c *Client) Route(u *url.URL) string { return c.route(&http.Request{URL: u}).String() }

// String returns the address, with the proxy if there is one.
func (r route) String() string {
	if r.proxy != "" {
		return r.host + " through the proxy " + r.proxy
	}
	return r.host
}

// explainNoResponse explains why a request got no response. A server that expects TLS may hang up silently on
// plain HTTP, so unanswered tries a TLS handshake.
func (x *exchange) explainNoResponse(err error) error {
	e := x.route.explainNoResponse(err)
	if errors.Is(e, provider.ErrCutOff) && !x.route.secure && x.route.proxy == "" && speaksTLS(x.ctx, x.route.host) {
		return x.route.tlsExpectedError(err)
	}
	return e
}

const probeTimeout = 2 * time.Second

// speaksTLS reports whether a TLS handshake with addr succeeds. It sends no data over the connection.
func speaksTLS(ctx context.Context, addr string) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	defer conn.Close()
	return tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(ctx) == nil
}

// explainNoResponse explains err from its type and text.
func (r route) explainNoResponse(err error) error {
	var redirect redirectError
	var unknown x509.UnknownAuthorityError
	var verify *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	var dns *net.DNSError
	var op *net.OpError
	text := innermostText(err)
	switch {
	case errors.As(err, &redirect):
		return &provider.Error{Kind: provider.ErrNotAnAPI, Err: redirect}
	case errors.As(err, &verify), errors.As(err, &unknown):
		return newError(provider.ErrUnreachable, false, err, "cannot trust the certificate of %s: %s", r, text)
	case errors.As(err, &record), strings.Contains(text, "server gave HTTP response to HTTPS client"):
		return newError(provider.ErrUnreachable, false, err, "%s speaks plain HTTP: start the base URL with http://", r)
	case errors.As(err, &alert):
		return newError(provider.ErrUnreachable, false, err, "TLS handshake with %s failed: %s", r, text)
	case strings.Contains(text, "malformed HTTP"):
		if strings.Contains(text, `\x15\x03`) { // a TLS alert, the TLS answer to plain text
			return r.tlsExpectedError(err)
		}
		return newError(provider.ErrNotAnAPI, false, err, "%s does not speak HTTP", r)
	case strings.Contains(text, "net/http: invalid header"):
		return newError(provider.ErrBadRequest, false, err, "a header or the key cannot be sent: %s", text)
	case strings.Contains(text, "Proxy Authentication Required"):
		return newError(provider.ErrAuth, false, err, "the proxy %s requires a user name and password", r.proxy)
	case errors.As(err, &op) && op.Op == "proxyconnect", r.proxy != "" && errors.As(err, &op) && op.Op == "dial":
		return newError(provider.ErrUnreachable, true, err, "cannot reach the proxy %s: %s", r.proxy, text)
	case errors.As(err, &dns):
		return newError(provider.ErrUnreachable, true, err, "cannot reach %s: unknown host (%s)", r, text)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed), strings.Contains(text, "http2:"):
		return newError(provider.ErrCutOff, true, err, "%s closed the connection without answering: %s", r, text)
	}
	return newError(provider.ErrUnreachable, true, err, "cannot reach %s: %s", r, text)
}

func (r route) tlsExpectedError(err error) error {
	return newError(provider.ErrUnreachable, false, err, "%s speaks TLS: start the base URL with https://", r)
}

// innermostText returns the innermost text of err: no URL, no method, no local address.
func innermostText(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return dns.Err
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	var op *net.OpError
	for errors.As(err, &op) {
		err = op.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "took too long"
	}
	return err.Error()
}

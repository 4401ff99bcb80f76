// Package transport has the common parts of all wires: connections, proxies and certificates, timeouts
// for silent servers, the reading of replies in any form, and the classification of failures.
//
// A [Wire] says where and how to ask its servers, a [Form] writes
// requests, and a [Decoder] turns the received values into deltas.
//
// Whatever the network does, a reply either arrives complete and ends in Done, or ends in one error
// that says what went wrong and whether to retry. A line or rune cut in half is never decoded. Only the
// origin that the user named receives the conversation and the key, and no error text contains the key.
package transport

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"coder/internal/core/message"
	"coder/internal/model/provider"
)

// Options configures a connection to a model's server.
type Options struct {
	BaseURL   string            // as the user wrote it; see [Endpoint]
	APIKey    string            // sent by the wire; may be empty
	KeyHeader string            // the header for the key; empty means the wire's own
	Headers   map[string]string // additional headers, which override coder's own
	CA        []byte            // additional trusted certificates, in PEM form

	// FreshKey, if set, returns the API key instead: not the refused
	// one, unless there is no other. It is called for each request.
	FreshKey func(ctx context.Context, refused string) (string, error)

	Query         map[string]string // parameters of each address, besides coder's own
	Cert, CertKey []byte            // client certificate, in PEM form; none if empty

	Timeout         time.Duration // for the whole reply; zero means none
	IdleTimeout     time.Duration // of silence, headers included; zero means none
	ProgressTimeout time.Duration // without progress, even if the server shows signs of life; zero means none

	// Proxy chooses a proxy for a request, as [http.Transport] does; nil means none.
	Proxy func(*http.Request) (*url.URL, error)

	Server        string // what the server will call itself, if known
	SendReasoning bool   // send thinking back to the server it came from
	UserAgent     string

	// Now returns the current time, for servers that name a time to wait until
	// but not their own time; nil means that coder ignores such times.
	Now func() time.Time

	// RoundTripper replaces coder's own connections; nil means coder's own.
	RoundTripper http.RoundTripper
}

// Client sends the requests of a wire. It is safe for concurrent use.
type Client struct {
	opt         Options
	secrets     []string
	http        func() (*http.Client, error) // created on first use
	server      atomic.Pointer[string]       // what the server calls itself
	slowReplies atomic.Int32                 // how often it was silent for too long before a reply
	keyLog      usedKeys
}

// New returns a client. It does nothing until the first request, which reports errors in the options.
func New(o Options) *Client {
	c := &Client{opt: o, secrets: collectSecrets(o)}
	if o.Server != "" {
		c.server.Store(&o.Server)
	}
	c.http = sync.OnceValues(func() (*http.Client, error) { return newHTTPClient(o) })
	return c
}

// CloseIdle closes the connections kept for later requests.
func (c *Client) CloseIdle() {
	if h, err := c.http(); err == nil {
		h.CloseIdleConnections()
	}
}

// setKey puts the key into h: after prefix in the wire's header, or alone in the header that the user
// named. In Authorization the key is a bearer token, unless it names its own scheme.
func (o Options) setKey(h http.Header, name, prefix string) {
	switch {
	case o.FreshKey != nil:
		o.APIKey, o.FreshKey = keyPlaceholder, nil
		o.setKey(h, name, prefix)
	case o.APIKey == "":
	case strings.EqualFold(o.KeyHeader, "Authorization") && !strings.Contains(o.APIKey, " ") && o.APIKey != keyPlaceholder:
		h.Set(o.KeyHeader, "Bearer "+o.APIKey)
	case o.KeyHeader != "":
		h.Set(o.KeyHeader, o.APIKey)
	default:
		h.Set(name, prefix+o.APIKey)
	}
}

// ModelPlaceholder is the placeholder for the model's name in a base URL.
const ModelPlaceholder = "{model}"

// Request is a wire's HTTP request. It can be sent more than once.
type Request struct {
	Method string
	URL    *url.URL
	Header http.Header
	Body   func() (io.ReadCloser, error) // nil means none
	Length int64                         // of the body
}

// A Decoder produces the deltas of one reply.
type Decoder interface {
	// Decode reads one JSON value: the data of an event, or a reply that did not come as a stream. It
	// returns the failure that the server reports, or [io.EOF] if this was the last event.
	Decode(data []byte) error
	// IsFinished reports whether the model has said why it stopped or that it
	// failed: the reply is complete even if the stream ends here.
	IsFinished() bool
	// End emits what was held back, and Done. It returns an error if the reply is empty.
	End() error
}

// Endpoint returns the address of path under a base URL, which may already include path.
func Endpoint(base, path string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(base))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, badRequest(errors.New("the base URL is not an HTTP or HTTPS address"))
	}
	u.Path, u.RawPath = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), path)+path, ""
	return u, nil
}

// errConsumerGone means that the consumer wants no more.
var errConsumerGone = errors.New("left")

// maskError masks the key in a server's message.
func (c *Client) maskError(err error) error {
	if e, ok := errors.AsType[*provider.Error](err); ok && e.Err != nil {
		if text := maskSecrets(e.Err.Error(), append(c.keyLog.all(), c.secrets...)); text != e.Err.Error() {
			e.Err = errors.New(text)
		}
	}
	return err
}

// exchange sends one request and emits the reply as decoded by decoder.
func (c *Client) exchange(ctx context.Context, req Request, decoder func(put func(provider.Delta)) Decoder,
	emit func(provider.Delta) bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	x := &exchange{client: c, caller: ctx, ctx: inner, cancel: cancel, emit: emit}
	x.watchdog = newWatchdog(limits{c.opt.IdleTimeout, c.opt.ProgressTimeout, c.opt.Timeout}, c.prefill(req), cancel)
	x.decoder = decoder(x.emitDelta)
	x.ticker = time.NewTicker(reportInterval)
	defer x.ticker.Stop()
	defer x.watchdog.stop()

	resp, err := x.send(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return x.statusError(resp)
	}
	defer x.flush()
	return x.receive(resp.Body)
}

// maxBody limits how much of a non-streamed answer is read.
const maxBody = 16 << 20

// Get sends one request for something other than a reply.
func (c *Client) Get(ctx context.Context, u *url.URL, header http.Header) ([]byte, error) {
	var body []byte
	err := c.withKey(ctx, Request{Method: http.MethodGet, URL: u, Header: header}, func(r Request) (err error) {
		body, err = c.get(ctx, r)
		return err
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return body, c.maskError(err)
}

func (c *Client) get(ctx context.Context, r Request) ([]byte, error) {
	h, err := c.http()
	if err != nil {
		return nil, badRequest(err)
	}
	req, err := c.newRequest(ctx, r)
	if err != nil {
		return nil, badRequest(err)
	}
	resp, err := h.Do(req)
	if err != nil {
		return nil, c.route(req).explainNoResponse(err)
	}
	defer resp.Body.Close()
	c.recordServer(resp)
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return nil, &provider.Error{Kind: provider.ErrCutOff, Err: err}
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, classify(resp.StatusCode, readFault(body))
	}
	return body, nil
}

// badRequest returns an error for a request that was not sent.
func badRequest(err error) error { return newError(provider.ErrBadRequest, false, err, "%s", err) }

// newRequest builds the HTTP request. It may be resent on a fresh connection if a kept one turns out to be dead.
func (c *Client) newRequest(ctx context.Context, r Request) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, r.Method, c.withQuery(r.URL).String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header = r.Header.Clone()
	if r.Body != nil {
		req.GetBody, req.ContentLength = r.Body, r.Length
		if req.Body, err = r.Body(); err != nil {
			return nil, err
		}
		req.Header["Idempotency-Key"] = nil // sends no header, but lets net/http resend the request
	}
	if c.opt.UserAgent != "" {
		req.Header.Set("User-Agent", c.opt.UserAgent)
	}
	for name, v := range c.opt.Headers {
		req.Header.Set(name, v)
	}
	return req, nil
}

// exchange is one request and its response.
type exchange struct {
	client                  *Client
	caller                  context.Context // the consumer's
	ctx                     context.Context // a child context, which patience may cancel
	cancel                  context.CancelCauseFunc
	watchdog                *watchdog
	route                   route
	body                    io.Reader // of the response
	decoder                 Decoder
	emit                    func(provider.Delta) bool
	consumerGone, delivered bool // the consumer wants no more; the consumer has the whole reply
	started                 bool // part of the reply has come
	waiting                 provider.Waiting
	ticker                  *time.Ticker // when to report that the reply has not come
	progressed              bool         // progress since the last read
	text                    []byte       // received but not passed on yet
}

// recordProgress records that more of the reply has come.
func (x *exchange) recordProgress() {
	x.progressed = true
	x.watchdog.recordProgress()
}

// emitDelta passes on a delta. It merges text that came together: text that arrives faster than it can be
// shown then costs per read, not per piece.
func (x *exchange) emitDelta(d provider.Delta) {
	if x.consumerGone {
		return
	}
	if text, ok := d.(provider.TextDelta); ok && len(text) > 0 {
		x.markStarted()
		x.text = append(x.text, text...)
		return
	}
	if !x.flush() {
		return
	}
	switch d := d.(type) {
	case provider.Waiting:
		if d.ReadTokens > x.waiting.ReadTokens {
			x.recordProgress()
		}
		x.waiting = d
	case provider.Done:
		x.delivered = true
	default:
		x.markStarted()
	}
	x.consumerGone = !x.emit(d)
}

// markStarted records that the model has written more.
func (x *exchange) markStarted() {
	x.started, x.progressed = true, true
	x.watchdog.recordStart()
}

// flush passes on the received text and reports whether the consumer wants more.
func (x *exchange) flush() bool {
	if len(x.text) > 0 && !x.consumerGone {
		x.consumerGone = !x.emit(provider.TextDelta(x.text))
	}
	x.text = x.text[:0]
	return !x.consumerGone && x.caller.Err() == nil
}

// maxResends limits how often a request is resent because a kept connection was dead.
const maxResends = 2

// send sends r and waits for the headers. A kept connection may have died since: only its use shows
// that, and its death says nothing about the server.
func (x *exchange) send(r Request) (*http.Response, error) {
	h, err := x.client.http()
	if err != nil {
		return nil, badRequest(err)
	}
	for resent := 0; ; resent++ {
		kept := false
		ctx := httptrace.WithClientTrace(x.ctx, &httptrace.ClientTrace{
			GotConn: func(i httptrace.GotConnInfo) { kept = i.Reused },
		})
		req, err := x.client.newRequest(ctx, r)
		if err != nil {
			return nil, badRequest(err)
		}
		x.route = x.client.route(req)
		var resp *http.Response
		x.await(func() { resp, err = h.Do(req) })
		switch {
		case err == nil:
			x.client.recordServer(resp)
			x.watchdog.recordBytes()
			return resp, nil
		case !kept || resent == maxResends || !errors.Is(x.failureReason(err, x.route.explainNoResponse),
			provider.ErrCutOff) || x.ctx.Err() != nil:
			return nil, x.failureReason(err, x.explainNoResponse)
		}
		h.CloseIdleConnections() // the other connections are no younger
	}
}

// failureReason returns the reason of a failure: the caller's, coder's own, or the network's, as explained by network.
func (x *exchange) failureReason(err error, network func(error) error) error {
	switch cause := context.Cause(x.ctx); cause {
	case nil:
		return network(err)
	case errSilent, errNoProgress:
		waited := x.watchdog.limits.silence
		if cause == errNoProgress {
			waited = x.watchdog.limits.progress
		}
		if cause == errNoProgress && x.watchdog.hasSigns {
			return newError(provider.ErrCutOff, true, nil, "%s sent only keep-alives for %v", x.route, waited)
		}
		if !x.started {
			x.client.slowReplies.Add(1)
		}
		return newError(provider.ErrCutOff, true, nil, "%s sent nothing for %v", x.route, waited)
	case errTotalTimeout:
		return newError(provider.ErrCutOff, true, nil, "%s took longer than %v", x.route, x.client.opt.Timeout)
	default:
		return cause
	}
}

// maxErrorBody limits how much of an error body is read.
const maxErrorBody = 64 << 10

// statusError explains an unsuccessful status.
func (x *exchange) statusError(resp *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // half an explanation is better than none
	switch cause := context.Cause(x.ctx); cause {
	case nil, errSilent, errNoProgress, errTotalTimeout: // the explanation may be slow: the status is known
	default:
		return x.failureReason(cause, nil)
	}
	f := readFault(body)
	if wait := retryAfter(resp.Header, x.client.opt.Now); wait > 0 {
		f.wait = wait
	} else if f.wait == 0 && resp.StatusCode == http.StatusTooManyRequests {
		f.wait = limitReset(resp.Header, x.client.opt.Now)
	}
	e := classify(resp.StatusCode, f)
	switch e.Kind {
	case provider.ErrUnreachable:
		return x.route.tlsExpectedError(e)
	case provider.ErrNotAnAPI:
		e.Err = message.Errorf("%s answered %d: %w", x.route, resp.StatusCode, e.Err)
	}
	return e
}

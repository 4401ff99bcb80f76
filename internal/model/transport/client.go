// Package transport is what any wire to a model needs: connections, proxies and
// certificates, patience with silent servers, the reading of replies in
// whatever form they come, and the meaning of failures.
//
// A [Wire] adds where and how its servers are asked, a [Form] how a request is
// put, and a [Decoder] how the values that come back become deltas.
//
// Whatever the network does, a reply either arrives whole and ends in Done, or
// ends in one error that says what went wrong and whether to try again. A line
// or a rune cut in half is never decoded. Only the origin the user named is
// sent the conversation and the key, and no error text holds the key.
package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"coder/internal/model/provider"
)

// Options say where a model is and how to reach it.
type Options struct {
	BaseURL   string            // as the person wrote it; see [Endpoint]
	APIKey    string            // which the wire sends; may be empty
	KeyHeader string            // that carries the key; empty means the wire's own
	Headers   map[string]string // sent besides, and instead of our own
	CA        []byte            // certificates to trust besides the system's, in PEM form

	// FreshKey, if set, gives the key of the API instead: one that is not the
	// refused one, unless there is no other. It is asked for each request.
	FreshKey func(ctx context.Context, refused string) (string, error)

	Query         map[string]string // parameters of each address, besides our own
	Cert, CertKey []byte            // shown to the server, in PEM form; none if empty

	Timeout         time.Duration // for the whole of a reply; zero means none
	IdleTimeout     time.Duration // of silence, headers included; zero means none
	ProgressTimeout time.Duration // without progress, though there may be signs of life; zero means none

	// Proxy chooses a proxy for a request, as [http.Transport] does; nil means none.
	Proxy func(*http.Request) (*url.URL, error)

	Server        string // what the server will call itself, if that is known
	SendReasoning bool   // give thinking back to the server it came from
	UserAgent     string

	// Now tells the time, for servers that say until when to wait and do not
	// say what time it is; nil means that such a date is not understood.
	Now func() time.Time

	// RoundTripper is used instead of connections of our own; nil means those.
	RoundTripper http.RoundTripper
}

// Client sends the requests of a wire. It is safe for concurrent use.
type Client struct {
	opt     Options
	secrets []string
	http    func() (*http.Client, error) // made when first needed
	server  atomic.Pointer[string]       // what the server calls itself
	slow    atomic.Int32                 // how often it was silent for too long before a reply began
	keys    keys
}

// New returns a client. It does nothing until it is asked something; what is
// wrong with the options is told then.
func New(o Options) *Client {
	c := &Client{opt: o, secrets: secrets(o)}
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

// setKey puts the key into h: behind prefix in the header that the wire has for
// it, or alone in the one that the person named. In Authorization it is a bearer's,
// unless it says itself what it is.
func (o Options) setKey(h http.Header, name, prefix string) {
	switch {
	case o.FreshKey != nil:
		o.APIKey, o.FreshKey = keyPlace, nil
		o.setKey(h, name, prefix)
	case o.APIKey == "":
	case strings.EqualFold(o.KeyHeader, "Authorization") && !strings.Contains(o.APIKey, " ") && o.APIKey != keyPlace:
		h.Set(o.KeyHeader, "Bearer "+o.APIKey)
	case o.KeyHeader != "":
		h.Set(o.KeyHeader, o.APIKey)
	default:
		h.Set(name, prefix+o.APIKey)
	}
}

// ModelPlace stands in a base URL for the name of the model.
const ModelPlace = "{model}"

// Request is what a wire asks of a server. It can be sent more than once.
type Request struct {
	Method string
	URL    *url.URL
	Header http.Header
	Body   func() (io.ReadCloser, error) // nil means none
	Length int64                         // of the body
}

// A Decoder makes the deltas of one reply.
type Decoder interface {
	// Decode reads one JSON value: the data of an event, or a reply that came
	// without a stream. Its error is what the server says went wrong, or
	// [io.EOF] if that was the last event.
	Decode(data []byte) error
	// Finished reports whether the model has said why it stopped, or that it
	// failed: nothing is missing if the stream ends here.
	Finished() bool
	// End gives out what was held back, and Done. Its error is that of a reply
	// which says nothing.
	End() error
}

// Endpoint is the address of path under a base URL, which may include it.
func Endpoint(base, path string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(base))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, badRequest(errors.New("the base URL is not an HTTP or HTTPS address"))
	}
	u.Path, u.RawPath = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), path)+path, ""
	return u, nil
}

// errLeft says that the consumer wants no more.
var errLeft = errors.New("left")

// hide takes the key out of what a server said.
func (c *Client) hide(err error) error {
	if e, ok := errors.AsType[*provider.Error](err); ok && e.Err != nil {
		if text := hide(e.Err.Error(), append(c.keys.seen(), c.secrets...)); text != e.Err.Error() {
			e.Err = errors.New(text)
		}
	}
	return err
}

// exchange sends one request and emits the reply, as the decoder that is made
// for it has it.
func (c *Client) exchange(ctx context.Context, req Request, decoder func(put func(provider.Delta)) Decoder, emit func(provider.Delta) bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	x := &exchange{client: c, caller: ctx, ctx: inner, cancel: cancel, emit: emit}
	x.patience = newPatience(limits{c.opt.IdleTimeout, c.opt.ProgressTimeout, c.opt.Timeout}, c.prefill(req), cancel)
	x.decoder = decoder(x.put)
	x.tick = time.NewTicker(tellEvery)
	defer x.tick.Stop()
	defer x.patience.stop()

	resp, err := x.send(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return x.refused(resp)
	}
	defer x.flush()
	return x.receive(resp.Body)
}

// mostOfBody is how much of an answer that is no stream is read.
const mostOfBody = 16 << 20

// Get asks for something that is not a reply, once.
func (c *Client) Get(ctx context.Context, u *url.URL, header http.Header) ([]byte, error) {
	var body []byte
	err := c.withKey(ctx, Request{Method: http.MethodGet, URL: u, Header: header}, func(r Request) (err error) {
		body, err = c.get(ctx, r)
		return err
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return body, c.hide(err)
}

func (c *Client) get(ctx context.Context, r Request) ([]byte, error) {
	h, err := c.http()
	if err != nil {
		return nil, badRequest(err)
	}
	req, err := c.request(ctx, r)
	if err != nil {
		return nil, badRequest(err)
	}
	resp, err := h.Do(req)
	if err != nil {
		return nil, c.route(req).unanswered(err)
	}
	defer resp.Body.Close()
	c.heard(resp)
	body, err := io.ReadAll(io.LimitReader(resp.Body, mostOfBody))
	if err != nil {
		return nil, &provider.Error{Kind: provider.ErrCutOff, Err: err}
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, classify(resp.StatusCode, readFault(body))
	}
	return body, nil
}

// badRequest is the error of a request that no server has seen.
func badRequest(err error) error { return say(provider.ErrBadRequest, false, err, "%s", err) }

// request makes the HTTP request. It may be sent again on a fresh connection
// if one kept from before turns out to be dead.
func (c *Client) request(ctx context.Context, r Request) (*http.Request, error) {
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
		req.Header["Idempotency-Key"] = nil // not sent: tells net/http that it may send the request again
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
	client     *Client
	caller     context.Context // the consumer's
	ctx        context.Context // ours inside it, which patience may end
	cancel     context.CancelCauseFunc
	patience   *patience
	route      route
	body       io.Reader // of the response
	decoder    Decoder
	emit       func(provider.Delta) bool
	left, done bool // the consumer wants no more; it has all of the reply
	begun      bool // something of the reply is there
	waiting    provider.Waiting
	tick       *time.Ticker // when it is told that something is waited for
	moved      bool         // there was progress since the last read
	text       []byte       // came already and is not passed on yet
}

// progress notes that more of the reply is there.
func (x *exchange) progress() {
	x.moved = true
	x.patience.progress()
}

// put passes a delta on. Text waits for the text that came with it, so that what
// arrives faster than it can be shown costs by the read and not by the piece.
func (x *exchange) put(d provider.Delta) {
	if x.left {
		return
	}
	if text, ok := d.(provider.TextDelta); ok && len(text) > 0 {
		x.begin()
		x.text = append(x.text, text...)
		return
	}
	if !x.flush() {
		return
	}
	switch d := d.(type) {
	case provider.Waiting:
		if d.Read > x.waiting.Read {
			x.progress()
		}
		x.waiting = d
	case provider.Done:
		x.done = true
	default:
		x.begin()
	}
	x.left = !x.emit(d)
}

// begin notes that the model has said more.
func (x *exchange) begin() {
	x.begun, x.moved = true, true
	x.patience.begun()
}

// flush passes on the text that came and reports whether more is wanted.
func (x *exchange) flush() bool {
	if len(x.text) > 0 && !x.left {
		x.left = !x.emit(provider.TextDelta(x.text))
	}
	x.text = x.text[:0]
	return !x.left && x.caller.Err() == nil
}

// mostResent is how often a request is sent again because the connection kept
// for it was dead.
const mostResent = 2

// send sends r and waits for the headers. A connection kept from before may
// have died since: that is found out by using it, and says nothing about the
// server.
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
		req, err := x.client.request(ctx, r)
		if err != nil {
			return nil, badRequest(err)
		}
		x.route = x.client.route(req)
		var resp *http.Response
		x.await(func() { resp, err = h.Do(req) })
		switch {
		case err == nil:
			x.client.heard(resp)
			x.patience.alive()
			return resp, nil
		case !kept || resent == mostResent || !errors.Is(x.why(err, x.route.unanswered), provider.ErrCutOff) || x.ctx.Err() != nil:
			return nil, x.why(err, x.unanswered)
		}
		h.CloseIdleConnections() // the others are no younger
	}
}

// why finds the reason of a failure: the caller's, ours, or the network's, as
// explained by network.
func (x *exchange) why(err error, network func(error) error) error {
	switch cause := context.Cause(x.ctx); cause {
	case nil:
		return network(err)
	case errSilent, errQuiet:
		waited := x.patience.bear.silence
		if cause == errQuiet {
			waited = x.patience.bear.progress
		}
		if cause == errQuiet && x.patience.signs {
			return say(provider.ErrCutOff, true, nil, "%s sent only keep-alives for %v", x.route, waited)
		}
		if !x.begun {
			x.client.slow.Add(1)
		}
		return say(provider.ErrCutOff, true, nil, "%s sent nothing for %v", x.route, waited)
	case errSlow:
		return say(provider.ErrCutOff, true, nil, "%s took longer than %v", x.route, x.client.opt.Timeout)
	default:
		return cause
	}
}

// mostOfRefusal is how much of an error body is read.
const mostOfRefusal = 64 << 10

// refused explains a status that is not success.
func (x *exchange) refused(resp *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, mostOfRefusal)) // half an explanation is better than none
	switch cause := context.Cause(x.ctx); cause {
	case nil, errSilent, errQuiet, errSlow: // however long the explanation takes: the status is known
	default:
		return x.why(cause, nil)
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
		return x.route.tlsExpected(e)
	case provider.ErrNotAnAPI:
		e.Err = fmt.Errorf("%s answered %d: %w", x.route, resp.StatusCode, e.Err)
	}
	return e
}

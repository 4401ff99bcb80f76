// Package openai speaks to models over the chat completions wire of OpenAI, as
// it is really spoken by the many servers that call themselves compatible.
//
// Whatever the network does, a reply either arrives whole and ends in Done, or
// ends in one error that says what went wrong and whether to try again. A line
// or a rune cut in half is never decoded. Only the origin the user named is
// sent the conversation and the key, and no error text holds the key.
package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"time"

	"coder/internal/model/provider"
)

// Options say where a model is and how to speak to it.
type Options struct {
	BaseURL string            // up to, or including, /chat/completions
	APIKey  string            // sent as a bearer token; may be empty
	Headers map[string]string // sent besides, and instead of our own
	CA      []byte            // certificates to trust besides the system's, in PEM form

	Timeout     time.Duration // for the whole of a reply; zero means none
	IdleTimeout time.Duration // of silence, headers included; zero means none

	// Proxy chooses a proxy for a request, as [http.Transport] does; nil means none.
	Proxy func(*http.Request) (*url.URL, error)

	SendReasoning bool // give thinking back to the server it came from
	UserAgent     string

	// Now tells the time, for servers that say until when to wait and do not
	// say what time it is; nil means that such a date is not understood.
	Now func() time.Time

	dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Client is a [provider.Provider]. It is safe for concurrent use.
type Client struct {
	opt     Options
	secrets []string
	http    func() (*http.Client, error) // made when first needed
	memory  memory

	mu      sync.Mutex // guards the field below
	dialect dialect
}

// New returns a client. It does nothing until it is asked something; what is
// wrong with the options is told then.
func New(o Options) *Client {
	o.APIKey = strings.TrimSpace(o.APIKey)
	c := &Client{opt: o, secrets: secrets(o), dialect: dialect{noReasoning: !o.SendReasoning}}
	c.http = sync.OnceValues(func() (*http.Client, error) { return newHTTPClient(o) })
	return c
}

// shortestSecret is the length from which a secret can be told from a word. One
// shorter than plainSecret is only known where it stands by itself.
const (
	shortestSecret = 8
	plainSecret    = 16
)

// secrets are the values no error may show.
func secrets(o Options) []string {
	var s []string
	if len(o.APIKey) >= shortestSecret {
		s = append(s, o.APIKey)
	}
	for name, v := range o.Headers {
		name = strings.ToLower(name)
		_, bare, _ := strings.Cut(v, " ")
		for _, v := range []string{v, bare} {
			if len(v) >= shortestSecret && (strings.Contains(name, "auth") || strings.Contains(name, "key") || strings.Contains(name, "token")) {
				s = append(s, v)
			}
		}
	}
	return s
}

// CloseIdle closes the connections kept for later requests.
func (c *Client) CloseIdle() {
	if h, err := c.http(); err == nil {
		h.CloseIdleConnections()
	}
}

// Stream sends req and yields the reply as it arrives.
func (c *Client) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		err := c.ask(ctx, req, func(d provider.Delta) bool { return yield(d, nil) })
		switch {
		case err == nil || err == errLeft:
		case ctx.Err() != nil:
			yield(nil, ctx.Err())
		default:
			yield(nil, c.hide(err))
		}
	}
}

// errLeft says that the consumer wants no more.
var errLeft = errors.New("left")

// hide takes the key out of what a server said.
func (c *Client) hide(err error) error {
	var e *provider.Error
	if errors.As(err, &e) && e.Err != nil {
		if text := hide(e.Err.Error(), c.secrets); text != e.Err.Error() {
			e.Err = errors.New(text)
		}
	}
	return err
}

// ask sends req and passes the reply on. Where a server refuses a part of the
// request that we can do without, it is asked again without it.
func (c *Client) ask(ctx context.Context, req provider.Request, emit func(provider.Delta) bool) error {
	for {
		d := c.speaks()
		err := c.exchange(ctx, req, d, emit)
		if !c.learn(d, err) {
			return err
		}
	}
}

func (c *Client) speaks() dialect {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dialect
}

// learn changes the dialect if err is about a word of ours that the server
// does not know, and reports whether it did.
func (c *Client) learn(used dialect, err error) bool {
	var e *provider.Error
	if !errors.As(err, &e) || e.Status != http.StatusBadRequest && e.Status != http.StatusUnprocessableEntity {
		return false
	}
	complaint := strings.ToLower(e.Error())
	if used.without(complaint) == used {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dialect = c.dialect.without(complaint)
	return true
}

// exchange sends one request and passes the reply on.
func (c *Client) exchange(ctx context.Context, req provider.Request, d dialect, emit func(provider.Delta) bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	h := head{model: req.Model, system: req.System, tools: req.Tools, maxTokens: req.MaxTokens, dialect: d}
	m := c.memory.take(h, req.Messages)
	defer c.memory.give(m)

	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	x := exchange{client: c, caller: ctx, ctx: inner, patience: newPatience(c.opt.IdleTimeout, c.opt.Timeout, cancel)}
	defer x.patience.stop()

	resp, err := x.send(m)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return x.refused(resp)
	}
	return x.receive(resp, emit)
}

// exchange is one request and its response.
type exchange struct {
	client   *Client
	caller   context.Context // the consumer's
	ctx      context.Context // ours inside it, which patience may end
	patience *patience
	route    route
}

// mostResent is how often a request is sent again because the connection kept
// for it was dead.
const mostResent = 2

// send sends the body that m holds and waits for the headers. A connection
// kept from before may have died since: that is found out by using it, and
// says nothing about the server.
func (x *exchange) send(m *memo) (*http.Response, error) {
	h, err := x.client.http()
	if err != nil {
		return nil, &provider.Error{Kind: provider.ErrBadRequest, Err: err}
	}
	for resent := 0; ; resent++ {
		kept := false
		ctx := httptrace.WithClientTrace(x.ctx, &httptrace.ClientTrace{
			GotConn: func(i httptrace.GotConnInfo) { kept = i.Reused },
		})
		req, err := x.client.request(ctx, m)
		if err != nil {
			return nil, err
		}
		x.route = x.client.route(req)
		resp, err := h.Do(req)
		switch {
		case err == nil:
			x.patience.alive(true)
			return resp, nil
		case !kept || resent == mostResent || !errors.Is(x.why(err, x.route.unanswered), provider.ErrCutOff) || x.ctx.Err() != nil:
			return nil, x.why(err, x.unanswered)
		}
		h.CloseIdleConnections() // the others are no younger
	}
}

// request makes the HTTP request. It may be sent again on a fresh connection
// if one kept from before turns out to be dead.
func (c *Client) request(ctx context.Context, m *memo) (*http.Request, error) {
	u, err := endpoint(c.opt.BaseURL)
	if err != nil {
		return nil, &provider.Error{Kind: provider.ErrBadRequest, Err: err}
	}
	getBody, length := m.body()
	body, _ := getBody()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), body)
	if err != nil {
		return nil, &provider.Error{Kind: provider.ErrBadRequest, Err: err}
	}
	req.GetBody, req.ContentLength = getBody, length
	req.Header = http.Header{
		"Content-Type":    {"application/json"},
		"Accept":          {"text/event-stream"},
		"Idempotency-Key": {}, // not sent: tells net/http that it may send the request again
	}
	if c.opt.APIKey != "" {
		req.Header.Set("Authorization", "Bearer "+c.opt.APIKey)
	}
	if c.opt.UserAgent != "" {
		req.Header.Set("User-Agent", c.opt.UserAgent)
	}
	for name, v := range c.opt.Headers {
		req.Header.Set(name, v)
	}
	return req, nil
}

// why finds the reason of a failure: the caller's, ours, or the network's, as
// explained by network.
func (x *exchange) why(err error, network func(error) error) error {
	switch cause := context.Cause(x.ctx); cause {
	case nil:
		return network(err)
	case errSilent:
		return say(provider.ErrCutOff, true, nil, "%s sent nothing for %v", x.route, x.client.opt.IdleTimeout)
	case errQuiet:
		return say(provider.ErrCutOff, true, nil, "%s sent nothing but signs of life for %v", x.route, commentsFactor*x.client.opt.IdleTimeout)
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
	if cause := context.Cause(x.ctx); cause != nil && cause != errSilent {
		return x.why(cause, nil)
	}
	f := readFault(body)
	if wait := retryAfter(resp.Header, x.client.opt.Now); wait > 0 {
		f.wait = wait
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

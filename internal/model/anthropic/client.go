// Package anthropic speaks to models over Anthropic's Messages wire.
package anthropic

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"coder/internal/model/provider"
	"coder/internal/model/transport"
)

// Client is a [provider.Provider]. It is safe for concurrent use.
type Client struct {
	*transport.Client
	transport.Listing
	opt     transport.Options
	memory  transport.Memory[head, state]
	dialect transport.Dialect[dialect]
}

// dialect is what a server has told us not to say. The zero dialect says all.
type dialect struct {
	noThinking bool // it takes no thinking back that it did not think itself
	noCaching  bool // it does not know cache_control

	effort        effortForm
	noTemperature bool // its model has its own
}

// effortForm is how a model is told how hard to think.
type effortForm uint8

const (
	asBudget effortForm = iota // so many tokens
	asLevel                    // by name, and it decides itself
	asNothing
)

// or is d where the caller knows more of the model than its server has said.
func (d dialect) or(req provider.Request) dialect {
	if req.ByLevel && d.effort == asBudget {
		d.effort = asLevel
	}
	return d
}

// New returns a client of the server at a base URL, with or without /v1 and
// /messages.
func New(o transport.Options) *Client {
	o.APIKey = strings.TrimSpace(o.APIKey)
	c := &Client{Client: transport.New(o), opt: o}
	c.Listing = transport.Listing{Client: c.Client, At: c.models}
	return c
}

// version of the wire that we speak.
const version = "2023-06-01"

// Stream sends req and yields the reply as it arrives. Where a server refuses a
// part of the request that we can do without, it is asked again without it.
func (c *Client) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return c.Client.Stream(ctx, func(emit func(provider.Delta) bool) error {
		heed := func(d dialect, complaint string) dialect { return d.heed(req, complaint) }
		return c.dialect.Ask(req.Model, func(d dialect) error { return c.ask(ctx, req, d, emit) }, heed)
	})
}

func (c *Client) ask(ctx context.Context, req provider.Request, d dialect, emit func(provider.Delta) bool) error {
	u, err := endpoint(c.opt.BaseURL, "/messages")
	if err != nil {
		return err
	}
	body, length, done := c.memory.Body(head{model: req.Model, system: req.System, tools: req.Tools, maxTokens: req.MaxTokens, effort: req.Effort, temperature: temperature(req), dialect: d.or(req)}, req.Messages)
	defer done()
	header := c.header("text/event-stream")
	header.Set("Content-Type", "application/json")
	return c.Exchange(ctx, transport.Request{Method: http.MethodPost, URL: u, Header: header, Body: body, Length: length}, newReply, emit)
}

// temperature is at most 1 on this wire.
func temperature(req provider.Request) string {
	if t := req.Temperature; t != nil && *t > 1 {
		return "1"
	}
	return transport.Number(req.Temperature)
}

func (c *Client) header(accept string) http.Header {
	h := http.Header{"Accept": {accept}, "Anthropic-Version": {version}}
	c.opt.SetKey(h, "X-Api-Key", "")
	return h
}

// endpoint is the address of path. The base may go up to the server, its
// version, or the path of messages.
func endpoint(base, path string) (*url.URL, error) {
	base = strings.TrimSuffix(strings.TrimRight(strings.TrimSpace(base), "/"), "/messages")
	if !strings.HasSuffix(base, "/v1") {
		path = "/v1" + path
	}
	return transport.Endpoint(base, path)
}

// heed is what is left of d after a complaint.
func (d dialect) heed(req provider.Request, complaint string) dialect {
	says := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(complaint, w) })
	}
	switch {
	case req.Effort != "" && d.effort != asNothing && !says("signature") && says("budget_tokens", "thinking", "output_config", "effort", "adaptive"):
		d.effort = d.or(req).effort + 1
		return d
	case req.Temperature != nil && !d.noTemperature && says("temperature"):
		d.noTemperature = true
		return d
	}
	d.noThinking = d.noThinking || strings.Contains(complaint, "signature") || strings.Contains(complaint, "thinking")
	d.noCaching = d.noCaching || strings.Contains(complaint, "cache_control")
	return d
}

// models is where the list of models is.
func (c *Client) models() (*url.URL, http.Header, error) {
	u, err := endpoint(c.opt.BaseURL, "/models")
	if err != nil {
		return nil, nil, err
	}
	u.RawQuery = "limit=1000"
	return u, c.header("application/json"), nil
}

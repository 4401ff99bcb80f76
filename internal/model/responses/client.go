// Package responses speaks to models over OpenAI's Responses wire, keeping
// nothing at the server: what it wants back is sent back.
package responses

import (
	"context"
	"iter"
	"net/http"
	"net/url"
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
	noEncrypted bool // it has no encrypted reasoning to include
	noReasoning bool // it takes no reasoning back
	noStore     bool // it does not know that parameter

	noEffort      bool // its model does not take a level of effort, or not that one
	noTemperature bool // its model has its own
}

// New returns a client of the server whose base URL goes up to, or includes,
// /responses.
func New(o transport.Options) *Client {
	o.APIKey = strings.TrimSpace(o.APIKey)
	c := &Client{Client: transport.New(o), opt: o}
	c.Listing = transport.Listing{Client: c.Client, At: c.models}
	return c
}

const path = "/responses"

// Stream sends req and yields the reply as it arrives. Where a server refuses a
// part of the request that we can do without, it is asked again without it.
func (c *Client) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return c.Client.Stream(ctx, func(emit func(provider.Delta) bool) error {
		heed := func(d dialect, complaint string) dialect { return d.heed(req, complaint) }
		return c.dialect.Ask(req.Model, func(d dialect) error { return c.ask(ctx, req, d, emit) }, heed)
	})
}

func (c *Client) ask(ctx context.Context, req provider.Request, d dialect, emit func(provider.Delta) bool) error {
	u, err := transport.Endpoint(c.opt.BaseURL, path)
	if err != nil {
		return err
	}
	body, length, done := c.memory.Body(head{model: req.Model, system: req.System, tools: req.Tools, maxTokens: req.MaxTokens, effort: req.Effort, temperature: transport.Number(req.Temperature), dialect: d}, req.Messages)
	defer done()
	header := c.header("text/event-stream")
	header.Set("Content-Type", "application/json")
	return c.Exchange(ctx, transport.Request{Method: http.MethodPost, URL: u, Header: header, Body: body, Length: length}, newReply, emit)
}

// heed is what is left of d after a complaint.
func (d dialect) heed(req provider.Request, complaint string) dialect {
	switch {
	case req.Effort != "" && !d.noEffort && strings.Contains(complaint, "effort"):
		d.noEffort = true
	case req.Temperature != nil && !d.noTemperature && strings.Contains(complaint, "temperature"):
		d.noTemperature = true
	case strings.Contains(complaint, "encrypted"):
		d.noReasoning = d.noEncrypted || d.noReasoning
		d.noEncrypted = true
	case strings.Contains(complaint, "reasoning"), strings.Contains(complaint, "item with id"):
		d.noReasoning = true
	case strings.Contains(complaint, "store"):
		d.noStore = true
	}
	return d
}

func (c *Client) header(accept string) http.Header {
	h := http.Header{"Accept": {accept}}
	c.opt.SetKey(h, "Authorization", "Bearer ")
	return h
}

// models is where the list of models is.
func (c *Client) models() (*url.URL, http.Header, error) {
	u, err := transport.Endpoint(strings.TrimSuffix(strings.TrimRight(strings.TrimSpace(c.opt.BaseURL), "/"), path), "/models")
	return u, c.header("application/json"), err
}

// Package gemini speaks to models over Google's Gemini wire.
package gemini

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

// dialect is what a server has told us to say otherwise. The zero dialect is
// that of the newest models.
type dialect struct {
	oldSchemas   bool // it knows parameters, not parametersJsonSchema
	noThoughts   bool // its model does not think
	mustBeSigned bool // calls of other models need a mark in place of a signature

	byLevel       bool // its model wants a level of thinking, not a budget
	noEffort      bool // its model takes neither
	noTemperature bool // its model has its own
}

// New returns a client of the server at a base URL, with or without a version.
func New(o transport.Options) *Client {
	o.APIKey = strings.TrimSpace(o.APIKey)
	c := &Client{Client: transport.New(o), opt: o}
	c.Listing = transport.Listing{Client: c.Client, At: c.models}
	return c
}

// Stream sends req and yields the reply as it arrives. Where a server wants a
// part of the request said otherwise, it is asked again.
func (c *Client) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return c.Client.Stream(ctx, func(emit func(provider.Delta) bool) error {
		heed := func(d dialect, complaint string) dialect { return d.heed(req, complaint) }
		return c.dialect.Ask(req.Model, func(d dialect) error { return c.ask(ctx, req, d, emit) }, heed)
	})
}

func (c *Client) ask(ctx context.Context, req provider.Request, d dialect, emit func(provider.Delta) bool) error {
	u, err := endpoint(c.opt.BaseURL, "/"+strings.TrimPrefix(req.Model, "models/")+":streamGenerateContent")
	if err != nil {
		return err
	}
	u.RawQuery = "alt=sse"
	body, length, done := c.memory.Body(head{system: req.System, tools: req.Tools, maxTokens: req.MaxTokens, effort: req.Effort, temperature: transport.Number(req.Temperature), dialect: d}, req.Messages)
	defer done()
	header := c.header("text/event-stream")
	header.Set("Content-Type", "application/json")
	return c.Exchange(ctx, transport.Request{Method: http.MethodPost, URL: u, Header: header, Body: body, Length: length}, newReply, emit)
}

func (c *Client) header(accept string) http.Header {
	h := http.Header{"Accept": {accept}}
	c.opt.SetKey(h, "X-Goog-Api-Key", "")
	return h
}

// endpoint is the address of what lies below a list of models. The base may go
// up to the server or its version, or be the place of models at another one of
// Google's.
func endpoint(base, below string) (*url.URL, error) {
	base = strings.TrimSuffix(strings.TrimRight(strings.TrimSpace(base), "/"), "/models")
	if u, err := url.Parse(base); err == nil && strings.Trim(u.Path, "/") == "" {
		base += "/v1beta"
	}
	return transport.Endpoint(base, "/models"+below)
}

// models is where the list of models is.
func (c *Client) models() (*url.URL, http.Header, error) {
	u, err := endpoint(c.opt.BaseURL, "")
	if err != nil {
		return nil, nil, err
	}
	u.RawQuery = "pageSize=1000"
	return u, c.header("application/json"), nil
}

// heed is how to say it after a complaint.
func (d dialect) heed(req provider.Request, complaint string) dialect {
	switch {
	case req.Effort != "" && !d.noEffort && (strings.Contains(complaint, "budget") || strings.Contains(complaint, "level")):
		d.byLevel, d.noEffort = true, d.byLevel
	case req.Temperature != nil && !d.noTemperature && strings.Contains(complaint, "temperature"):
		d.noTemperature = true
	case strings.Contains(complaint, "parametersjsonschema"):
		d.oldSchemas = true
	case strings.Contains(complaint, "thought_signature"), strings.Contains(complaint, "thoughtsignature"), strings.Contains(complaint, "thought signature"):
		d.mustBeSigned = true
	case strings.Contains(complaint, "thinking"), strings.Contains(complaint, "thoughts"):
		d.noThoughts = true
	}
	return d
}

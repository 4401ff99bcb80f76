// Package openai speaks to models over the chat completions wire of OpenAI, as
// it is really spoken by the many servers that call themselves compatible.
package openai

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strings"

	"coder/internal/model/provider"
	"coder/internal/model/transport"
)

type memory = transport.Memory[head, struct{}]

// Client is a [provider.Provider]. It is safe for concurrent use.
type Client struct {
	*transport.Client
	transport.Listing
	opt     transport.Options
	memory  memory
	dialect transport.Dialect[dialect]
}

// New returns a client of the server whose base URL goes up to, or includes,
// /chat/completions.
func New(o transport.Options) *Client {
	o.APIKey = strings.TrimSpace(o.APIKey)
	c := &Client{Client: transport.New(o), opt: o}
	c.Listing = transport.Listing{Client: c.Client, At: c.models}
	c.dialect.Start(dialect{noReasoning: !o.SendReasoning})
	return c
}

const completions = "/chat/completions"

// Stream sends req and yields the reply as it arrives. Where a server refuses a
// part of the request that we can do without, it is asked again without it.
func (c *Client) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return c.Client.Stream(ctx, func(emit func(provider.Delta) bool) error {
		heed := func(d dialect, complaint string) dialect { return d.heed(req, complaint) }
		return c.dialect.Ask(req.Model, func(d dialect) error { return c.ask(ctx, req, d, emit) }, heed)
	})
}

// ask sends req in a dialect.
func (c *Client) ask(ctx context.Context, req provider.Request, d dialect, emit func(provider.Delta) bool) error {
	u, err := transport.Endpoint(strings.ReplaceAll(c.opt.BaseURL, transport.ModelPlace, url.PathEscape(req.Model)), completions)
	if err != nil {
		return err
	}
	body, length, done := c.memory.Body(head{
		model: req.Model, system: req.System, tools: req.Tools, maxTokens: req.MaxTokens, effort: req.Effort, temperature: transport.Number(req.Temperature), dialect: d, progress: c.Server() == transport.LlamaCpp,
	}, req.Messages)
	defer done()
	header := c.header("text/event-stream")
	header.Set("Content-Type", "application/json")
	return c.Exchange(ctx, transport.Request{Method: http.MethodPost, URL: u, Header: header, Body: body, Length: length}, newReply, emit)
}

func (c *Client) header(accept string) http.Header {
	h := http.Header{"Accept": {accept}}
	c.opt.SetKey(h, "Authorization", "Bearer ")
	return h
}

// models is where the list of models is.
func (c *Client) models() (*url.URL, http.Header, error) {
	if strings.Contains(c.opt.BaseURL, transport.ModelPlace) {
		return nil, nil, &provider.Error{Kind: provider.ErrNotAnAPI, Err: errors.New("an endpoint with the model in its address has no list of models")}
	}
	u, err := transport.Endpoint(strings.TrimSuffix(strings.TrimRight(strings.TrimSpace(c.opt.BaseURL), "/"), completions), "/models")
	return u, c.header("application/json"), err
}

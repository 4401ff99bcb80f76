// Package gemini speaks to models over Google's Gemini wire.
package gemini

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"coder/internal/model/provider"
	"coder/internal/model/transport"
)

// Client is a [provider.Provider]. It is safe for concurrent use.
type Client struct {
	*transport.Client
	opt    transport.Options
	memory transport.Memory[head, state]

	mu      sync.Mutex // guards the field below
	dialect dialect
}

// dialect is what a server has told us to say otherwise. The zero dialect is
// that of the newest models.
type dialect struct {
	oldSchemas   bool // it knows parameters, not parametersJsonSchema
	noThoughts   bool // its model does not think
	mustBeSigned bool // calls of other models need a mark in place of a signature
}

// New returns a client of the server at a base URL, with or without a version.
func New(o transport.Options) *Client {
	o.APIKey = strings.TrimSpace(o.APIKey)
	return &Client{Client: transport.New(o), opt: o}
}

// Stream sends req and yields the reply as it arrives. Where a server wants a
// part of the request said otherwise, it is asked again.
func (c *Client) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return c.Client.Stream(ctx, func(emit func(provider.Delta) bool) error {
		for {
			c.mu.Lock()
			d := c.dialect
			c.mu.Unlock()
			err := c.ask(ctx, req, d, emit)
			if !c.learn(d, err) {
				return err
			}
		}
	})
}

func (c *Client) ask(ctx context.Context, req provider.Request, d dialect, emit func(provider.Delta) bool) error {
	u, err := endpoint(c.opt.BaseURL, req.Model)
	if err != nil {
		return err
	}
	body, length, done := c.memory.Body(head{system: req.System, tools: req.Tools, maxTokens: req.MaxTokens, dialect: d}, req.Messages)
	defer done()
	header := http.Header{"Accept": {"text/event-stream"}, "Content-Type": {"application/json"}}
	if c.opt.APIKey != "" {
		header.Set("X-Goog-Api-Key", c.opt.APIKey)
	}
	return c.Exchange(ctx, transport.Request{Method: http.MethodPost, URL: u, Header: header, Body: body, Length: length}, newReply, emit)
}

// endpoint is the address of a model's stream. The base may go up to the
// server or its version, or be the place of models at another one of Google's.
func endpoint(base, model string) (*url.URL, error) {
	base = strings.TrimSuffix(strings.TrimRight(strings.TrimSpace(base), "/"), "/models")
	if u, err := url.Parse(base); err == nil && strings.Trim(u.Path, "/") == "" {
		base += "/v1beta"
	}
	u, err := transport.Endpoint(base, "/models/"+strings.TrimPrefix(model, "models/")+":streamGenerateContent")
	if err == nil {
		u.RawQuery = "alt=sse"
	}
	return u, err
}

// learn changes the dialect if err is about a part that can be said otherwise,
// and reports whether it did.
func (c *Client) learn(used dialect, err error) bool {
	e, ok := errors.AsType[*provider.Error](err)
	if !ok || e.Status != http.StatusBadRequest {
		return false
	}
	learnt, complaint := used, strings.ToLower(e.Error())
	switch {
	case strings.Contains(complaint, "parametersjsonschema"):
		learnt.oldSchemas = true
	case strings.Contains(complaint, "thought_signature"), strings.Contains(complaint, "thoughtsignature"), strings.Contains(complaint, "thought signature"):
		learnt.mustBeSigned = true
	case strings.Contains(complaint, "thinking"), strings.Contains(complaint, "thoughts"):
		learnt.noThoughts = true
	}
	if learnt == used {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dialect = dialect{
		oldSchemas:   c.dialect.oldSchemas || learnt.oldSchemas,
		noThoughts:   c.dialect.noThoughts || learnt.noThoughts,
		mustBeSigned: c.dialect.mustBeSigned || learnt.mustBeSigned,
	}
	return true
}

// Package responses speaks to models over OpenAI's Responses wire, keeping
// nothing at the server: what it wants back is sent back.
package responses

import (
	"context"
	"errors"
	"iter"
	"net/http"
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

// dialect is what a server has told us not to say. The zero dialect says all.
type dialect struct {
	noEncrypted bool // it has no encrypted reasoning to include
	noReasoning bool // it takes no reasoning back
	noStore     bool // it does not know that parameter
}

// New returns a client of the server whose base URL goes up to, or includes,
// /responses.
func New(o transport.Options) *Client {
	o.APIKey = strings.TrimSpace(o.APIKey)
	return &Client{Client: transport.New(o), opt: o}
}

// Stream sends req and yields the reply as it arrives. Where a server refuses a
// part of the request that we can do without, it is asked again without it.
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
	u, err := transport.Endpoint(c.opt.BaseURL, "/responses")
	if err != nil {
		return err
	}
	body, length, done := c.memory.Body(head{model: req.Model, system: req.System, tools: req.Tools, maxTokens: req.MaxTokens, dialect: d}, req.Messages)
	defer done()
	header := http.Header{"Accept": {"text/event-stream"}, "Content-Type": {"application/json"}}
	if c.opt.APIKey != "" {
		header.Set("Authorization", "Bearer "+c.opt.APIKey)
	}
	return c.Exchange(ctx, transport.Request{Method: http.MethodPost, URL: u, Header: header, Body: body, Length: length}, newReply, emit)
}

// learn changes the dialect if err is about a part that we can leave out, and
// reports whether it did.
func (c *Client) learn(used dialect, err error) bool {
	e, ok := errors.AsType[*provider.Error](err)
	if !ok || e.Status != http.StatusBadRequest && e.Status != http.StatusUnprocessableEntity && e.Status != http.StatusNotFound {
		return false
	}
	complaint := strings.ToLower(e.Error())
	learnt := used
	switch {
	case strings.Contains(complaint, "encrypted"):
		learnt.noReasoning = used.noEncrypted || used.noReasoning
		learnt.noEncrypted = true
	case strings.Contains(complaint, "reasoning"), strings.Contains(complaint, "item with id"):
		learnt.noReasoning = true
	case strings.Contains(complaint, "store"):
		learnt.noStore = true
	}
	if learnt == used {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dialect = dialect{
		noEncrypted: c.dialect.noEncrypted || learnt.noEncrypted,
		noReasoning: c.dialect.noReasoning || learnt.noReasoning,
		noStore:     c.dialect.noStore || learnt.noStore,
	}
	return true
}

// Package openai speaks to models over the chat completions wire of OpenAI, as
// it is really spoken by the many servers that call themselves compatible.
package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"

	"coder/internal/model/provider"
	"coder/internal/model/transport"
)

// Client is a [provider.Provider]. It is safe for concurrent use.
type Client struct {
	*transport.Client
	opt    transport.Options
	memory memory

	mu      sync.Mutex // guards the field below
	dialect dialect
}

// New returns a client of the server whose base URL goes up to, or includes,
// /chat/completions.
func New(o transport.Options) *Client {
	o.APIKey = strings.TrimSpace(o.APIKey)
	return &Client{Client: transport.New(o), opt: o, dialect: dialect{noReasoning: !o.SendReasoning}}
}

const completions = "/chat/completions"

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

// ask sends req in a dialect.
func (c *Client) ask(ctx context.Context, req provider.Request, d dialect, emit func(provider.Delta) bool) error {
	u, err := transport.Endpoint(c.opt.BaseURL, completions)
	if err != nil {
		return err
	}
	m := c.memory.take(head{model: req.Model, system: req.System, tools: req.Tools, maxTokens: req.MaxTokens, dialect: d}, req.Messages)
	defer c.memory.give(m)
	body, length := m.body()
	header := c.header("text/event-stream")
	header.Set("Content-Type", "application/json")
	return c.Exchange(ctx, transport.Request{Method: http.MethodPost, URL: u, Header: header, Body: body, Length: length}, newReply, emit)
}

func (c *Client) header(accept string) http.Header {
	h := http.Header{"Accept": {accept}}
	if c.opt.APIKey != "" {
		h.Set("Authorization", "Bearer "+c.opt.APIKey)
	}
	return h
}

// learn changes the dialect if err is about a word of ours that the server
// does not know, and reports whether it did.
func (c *Client) learn(used dialect, err error) bool {
	e, ok := errors.AsType[*provider.Error](err)
	if !ok || e.Status != http.StatusBadRequest && e.Status != http.StatusUnprocessableEntity {
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

// Models asks the endpoint which models it has, by name. It is asked once: a
// list is a convenience.
func (c *Client) Models(ctx context.Context) ([]string, error) {
	u, err := transport.Endpoint(c.opt.BaseURL, completions)
	if err != nil {
		return nil, err
	}
	u.Path = strings.TrimSuffix(u.Path, completions) + "/models"
	body, err := c.Get(ctx, u, c.header("application/json"))
	if err != nil {
		return nil, err
	}
	names := readModels(body)
	if len(names) == 0 {
		return nil, &provider.Error{Kind: provider.ErrNotAnAPI, Err: fmt.Errorf("%s has no list of models", c.Route(u))}
	}
	return names, nil
}

// readModels reads a list in any of the forms that servers give it: objects
// with an id or a name, bare names, under data or models or alone.
func readModels(body []byte) (names []string) {
	var whole struct{ Data, Models json.RawMessage }
	list := json.RawMessage(body)
	if json.Unmarshal(body, &whole) == nil {
		list = whole.Data
		if list == nil {
			list = whole.Models
		}
	}
	var items []json.RawMessage
	if json.Unmarshal(list, &items) != nil {
		return nil
	}
	for _, item := range items {
		var name string
		var m struct{ ID, Name, Model string }
		if json.Unmarshal(item, &name) != nil && json.Unmarshal(item, &m) == nil {
			name = cmp.Or(m.ID, m.Model, m.Name)
		}
		if name = transport.CleanLine(name); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

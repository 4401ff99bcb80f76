// Package anthropic implements Anthropic's Messages wire.
package anthropic

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/model/provider"
	"coder/internal/model/transport"
)

// Client is a [provider.Provider]. It is safe for concurrent use.
type Client = transport.Provider[bodyWriter, dialect, bodyState]

// dialect holds what a server has rejected. The zero dialect omits nothing.
type dialect struct {
	noThinking bool // rejects thinking from another model
	noCaching  bool // rejects cache_control

	effort        effortForm
	noTemperature bool // the model's temperature is fixed
}

// effortForm is how a request expresses the thinking effort.
type effortForm uint8

const (
	effortBudget effortForm = iota // a number of tokens
	effortLevel                    // a level; the model sets the amount
	effortNone
)

// adjust returns d adjusted to what the caller knows about the model.
func (d dialect) adjust(req provider.Request) dialect {
	if req.ByLevel && d.effort == effortBudget {
		d.effort = effortLevel
	}
	return d
}

// apiVersion is the API version in each request.
const apiVersion = "2023-06-01"

// New returns a client of the server at a base URL, with or without /v1 and
// /messages.
func New(o transport.Options) *Client {
	return transport.NewProvider(o, transport.Wire[bodyWriter, dialect, bodyState]{
		Name:    "anthropic",
		Address: func(base, _ string) (*url.URL, error) { return endpoint(base, "/messages", "") },
		List:    func(base string) (*url.URL, error) { return endpoint(base, "/models", "limit=1000") },

		KeyHeader: "X-Api-Key", Header: http.Header{"Anthropic-Version": {apiVersion}},
		Tune: func(h *head, _ *transport.Client, req provider.Request) {
			h.Dialect = h.Dialect.adjust(req)
			if t := req.Temperature; t != nil && *t > 1 {
				h.Temperature = "1" // the maximum on this wire
			}
		},
		Adapt: dialect.adapt, Decoder: newReplyDecoder,
	}, dialect{})
}

// endpoint returns the address of path. The base may end at the server, its version, or the path of messages.
func endpoint(base, path, query string) (*url.URL, error) {
	base = strings.TrimSuffix(strings.TrimRight(strings.TrimSpace(base), "/"), "/messages")
	if !strings.HasSuffix(base, "/v1") {
		path = "/v1" + path
	}
	u, err := transport.Endpoint(base, path)
	if err == nil {
		u.RawQuery = cmp.Or(query, u.RawQuery)
	}
	return u, err
}

// adapt returns d without what the complaint is about.
func (d dialect) adapt(req provider.Request, complaint string) dialect {
	says := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(complaint, w) })
	}
	switch {
	case req.Effort != "" && d.effort != effortNone && !says("signature") &&
		says("budget_tokens", "thinking", "output_config", "effort", "adaptive"):
		d.effort = d.adjust(req).effort + 1
		return d
	case req.Temperature != nil && !d.noTemperature && says("temperature"):
		d.noTemperature = true
		return d
	}
	d.noThinking = d.noThinking || strings.Contains(complaint, "signature") || strings.Contains(complaint, "thinking")
	d.noCaching = d.noCaching || strings.Contains(complaint, "cache_control")
	return d
}

// Rebuild rewrites the body of a sent request; see [transport.Rebuild].
func Rebuild(sent chat.SentRequest, msgs []chat.Message) ([]byte, bool) {
	return transport.Rebuild[bodyWriter, dialect, bodyState](sent, msgs, dialect{}, dialect{noThinking: true},
		dialect{noCaching: true}, dialect{noThinking: true, noCaching: true})
}

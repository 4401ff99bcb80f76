// Package anthropic speaks to models over Anthropic's Messages wire.
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
type Client = transport.Speaker[form, dialect, state]

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

// version of the wire that we speak.
const version = "2023-06-01"

// New returns a client of the server at a base URL, with or without /v1 and
// /messages.
func New(o transport.Options) *Client {
	return transport.Speak(o, transport.Wire[form, dialect, state]{
		Name:    "anthropic",
		Address: func(base, _ string) (*url.URL, error) { return endpoint(base, "/messages", "") },
		List:    func(base string) (*url.URL, error) { return endpoint(base, "/models", "limit=1000") },

		KeyHeader: "X-Api-Key", Header: http.Header{"Anthropic-Version": {version}},
		Tune: func(h *head, _ *transport.Client, req provider.Request) {
			h.Dialect = h.Dialect.or(req)
			if t := req.Temperature; t != nil && *t > 1 {
				h.Temperature = "1" // the most that this wire takes
			}
		},
		Adapted: dialect.adapted, Decoder: newReply,
	}, dialect{})
}

// endpoint is the address of path. The base may go up to the server, its
// version, or the path of messages.
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

// adapted is what is left of d after a complaint.
func (d dialect) adapted(req provider.Request, complaint string) dialect {
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

// Rebuild writes the body of a request again; see [transport.Rebuild].
func Rebuild(sent chat.Sent, msgs []chat.Message) ([]byte, bool) {
	return transport.Rebuild[form, dialect, state](sent, msgs, dialect{}, dialect{noThinking: true}, dialect{noCaching: true}, dialect{noThinking: true, noCaching: true})
}

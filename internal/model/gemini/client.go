// Package gemini implements Google's Gemini wire.
package gemini

import (
	"net/url"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/model/provider"
	"coder/internal/model/transport"
)

// Client is a [provider.Provider]. It is safe for concurrent use.
type Client = transport.Speaker[form, dialect, state]

// dialect holds what a server wants said differently. The zero dialect is that of the newest models.
type dialect struct {
	oldSchemas   bool // it knows parameters, not parametersJsonSchema
	noThoughts   bool // its model does not think
	mustBeSigned bool // calls of other models need a placeholder signature

	byLevel       bool // its model wants a level of thinking, not a budget
	noEffort      bool // its model supports neither
	noTemperature bool // the model's temperature is fixed
}

// New returns a client of the server at a base URL, with or without a version.
func New(o transport.Options) *Client {
	return transport.Speak(o, transport.Wire[form, dialect, state]{
		Name: "gemini",
		Address: func(base, model string) (*url.URL, error) {
			return endpoint(base, "/"+strings.TrimPrefix(model, "models/")+":streamGenerateContent", "alt=sse")
		},
		List:      func(base string) (*url.URL, error) { return endpoint(base, "", "pageSize=1000") },
		KeyHeader: "X-Goog-Api-Key",
		Adapted:   dialect.adapted, Decoder: newReply,
	}, dialect{})
}

// endpoint returns the address below a list of models. The base may end at the server or its version,
// or be the models path of another Google service.
func endpoint(base, below, query string) (*url.URL, error) {
	base = strings.TrimSuffix(strings.TrimRight(strings.TrimSpace(base), "/"), "/models")
	if u, err := url.Parse(base); err == nil && strings.Trim(u.Path, "/") == "" {
		base += "/v1beta"
	}
	u, err := transport.Endpoint(base, "/models"+below)
	if err == nil {
		u.RawQuery = query
	}
	return u, err
}

// adapted returns d changed in response to a complaint.
func (d dialect) adapted(req provider.Request, complaint string) dialect {
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

// Rebuild rewrites the body of a sent request; see [transport.Rebuild].
func Rebuild(sent chat.Sent, msgs []chat.Message) ([]byte, bool) {
	return transport.Rebuild[form, dialect, state](sent, msgs, dialect{}, dialect{mustBeSigned: true}, dialect{noThoughts: true}, dialect{mustBeSigned: true, noThoughts: true})
}

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
type Client = transport.Provider[bodyWriter, dialect, bodyState]

// dialect holds what a server wants said differently. The zero dialect is that of the newest models.
type dialect struct {
	legacySchemas   bool // it knows parameters, not parametersJsonSchema
	noThoughts      bool // its model does not think
	needsSignatures bool // calls of other models need a placeholder signature

	effortByLevel bool // its model wants a level of thinking, not a budget
	noEffort      bool // its model supports neither
	noTemperature bool // the model's temperature is fixed
}

// New returns a client of the server at a base URL, with or without a version.
func New(o transport.Options) *Client {
	return transport.NewProvider(o, transport.Wire[bodyWriter, dialect, bodyState]{
		Name: "gemini",
		Address: func(base, model string) (*url.URL, error) {
			return endpoint(base, "/"+strings.TrimPrefix(model, "models/")+":streamGenerateContent", "alt=sse")
		},
		List:      func(base string) (*url.URL, error) { return endpoint(base, "", "pageSize=1000") },
		KeyHeader: "X-Goog-Api-Key",
		Adapt:     dialect.adapt, Decoder: newReplyDecoder,
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

// adapt returns d changed in response to a complaint.
func (d dialect) adapt(req provider.Request, complaint string) dialect {
	switch {
	case req.Effort != "" && !d.noEffort && (strings.Contains(complaint, "budget") ||
		strings.Contains(complaint, "level")):
		d.effortByLevel, d.noEffort = true, d.effortByLevel
	case req.Temperature != nil && !d.noTemperature && strings.Contains(complaint, "temperature"):
		d.noTemperature = true
	case strings.Contains(complaint, "parametersjsonschema"):
		d.legacySchemas = true
	case strings.Contains(complaint, "thought_signature"), strings.Contains(complaint, "thoughtsignature"),
		strings.Contains(complaint, "thought signature"):
		d.needsSignatures = true
	case strings.Contains(complaint, "thinking"), strings.Contains(complaint, "thoughts"):
		d.noThoughts = true
	}
	return d
}

// Rebuild rewrites the body of a sent request; see [transport.Rebuild].
func Rebuild(sent chat.SentRequest, msgs []chat.Message) ([]byte, bool) {
	return transport.Rebuild[bodyWriter, dialect, bodyState](sent, msgs, dialect{}, dialect{needsSignatures: true},
		dialect{noThoughts: true}, dialect{needsSignatures: true, noThoughts: true})
}

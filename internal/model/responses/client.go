// Package responses implements OpenAI's Responses wire. The server
// stores nothing: each request sends the whole conversation.
package responses

import (
	"net/url"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/model/provider"
	"coder/internal/model/transport"
)

// Client is a [provider.Provider]. It is safe for concurrent use.
type Client = transport.Provider[bodyWriter, dialect, openCalls]

// dialect holds what a server has rejected. The zero dialect omits nothing.
type dialect struct {
	noEncrypted bool // rejects including encrypted reasoning
	noReasoning bool // rejects reasoning in the input
	noStore     bool // rejects store

	noEffort      bool // rejects a level of effort, or this one
	noTemperature bool // the model's temperature is fixed
}

const responsesPath = "/responses"

// New returns a client of a server. The base URL ends before or with /responses.
func New(o transport.Options) *Client {
	return transport.NewProvider(o, transport.Wire[bodyWriter, dialect, openCalls]{
		Name:    "responses",
		Address: func(base, _ string) (*url.URL, error) { return transport.Endpoint(base, responsesPath) },
		List: func(base string) (*url.URL, error) {
			return transport.Endpoint(strings.TrimSuffix(strings.TrimRight(strings.TrimSpace(base), "/"), responsesPath),
				"/models")
		},
		KeyHeader: "Authorization", KeyPrefix: "Bearer ",
		Adapt: dialect.adapt, Decoder: newReplyDecoder,
	}, dialect{})
}

// adapt returns d without what the complaint is about.
func (d dialect) adapt(req provider.Request, complaint string) dialect {
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

// Rebuild rewrites the body of a sent request; see [transport.Rebuild].
func Rebuild(sent chat.SentRequest, msgs []chat.Message) ([]byte, bool) {
	return transport.Rebuild[bodyWriter, dialect, openCalls](sent, msgs, dialect{}, dialect{noReasoning: true})
}

// Package responses speaks to models over OpenAI's Responses wire, keeping
// nothing at the server: what it wants back is sent back.
package responses

import (
	"net/url"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/model/provider"
	"coder/internal/model/transport"
)

// Client is a [provider.Provider]. It is safe for concurrent use.
type Client = transport.Speaker[form, dialect, state]

// dialect is what a server has told us not to say. The zero dialect says all.
type dialect struct {
	noEncrypted bool // it has no encrypted reasoning to include
	noReasoning bool // it takes no reasoning back
	noStore     bool // it does not know that parameter

	noEffort      bool // its model does not take a level of effort, or not that one
	noTemperature bool // its model has its own
}

const path = "/responses"

// New returns a client of the server whose base URL goes up to, or includes,
// /responses.
func New(o transport.Options) *Client {
	return transport.Speak(o, transport.Wire[form, dialect, state]{
		Name:    "responses",
		Address: func(base, _ string) (*url.URL, error) { return transport.Endpoint(base, path) },
		List: func(base string) (*url.URL, error) {
			return transport.Endpoint(strings.TrimSuffix(strings.TrimRight(strings.TrimSpace(base), "/"), path), "/models")
		},
		KeyHeader: "Authorization", KeyPrefix: "Bearer ",
		Adapted: dialect.adapted, Decoder: newReply,
	}, dialect{})
}

// adapted is what is left of d after a complaint.
func (d dialect) adapted(req provider.Request, complaint string) dialect {
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

// Rebuild writes the body of a request again; see [transport.Rebuild].
func Rebuild(sent chat.Sent, msgs []chat.Message) ([]byte, bool) {
	return transport.Rebuild[form, dialect, state](sent, msgs, dialect{}, dialect{noReasoning: true})
}

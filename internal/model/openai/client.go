// Package openai implements OpenAI's chat completions wire, including the variations of the many
// servers that call themselves compatible.
package openai

import (
	"errors"
	"net/url"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/model/provider"
	"coder/internal/model/transport"
)

// Client is a [provider.Provider]. It is safe for concurrent use.
type Client = transport.Speaker[form, dialect, struct{}]

const completions = "/chat/completions"

// New returns a client of a server. The base URL ends before or with /chat/completions.
func New(o transport.Options) *Client {
	return transport.Speak(o, transport.Wire[form, dialect, struct{}]{
		Name: "openai",
		Address: func(base, model string) (*url.URL, error) {
			return transport.Endpoint(strings.ReplaceAll(base, transport.ModelPlace, url.PathEscape(model)), completions)
		},
		List: func(base string) (*url.URL, error) {
			if strings.Contains(base, transport.ModelPlace) {
				return nil, &provider.Error{Kind: provider.ErrNotAnAPI, Err: errors.New("an endpoint with the model in its address has no model list")}
			}
			return transport.Endpoint(strings.TrimSuffix(strings.TrimRight(strings.TrimSpace(base), "/"), completions), "/models")
		},
		KeyHeader: "Authorization", KeyPrefix: "Bearer ",
		Tune: func(h *head, c *transport.Client, _ provider.Request) {
			h.Dialect.progress = c.Server() == transport.LlamaCpp
		},
		Adapted: dialect.adapted, Decoder: newReply,
	}, dialect{noReasoning: !o.SendReasoning})
}

// Rebuild rewrites the body of a sent request; see [transport.Rebuild].
func Rebuild(sent chat.Sent, msgs []chat.Message) ([]byte, bool) {
	return transport.Rebuild[form, dialect, struct{}](sent, msgs, dialect{}, dialect{noReasoning: true}, dialect{noExtra: true}, dialect{noReasoning: true, noExtra: true})
}

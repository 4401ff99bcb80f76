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
type Client = transport.Provider[bodyWriter, dialect, struct{}]

const completionsPath = "/chat/completions"

// New returns a client of a server. The base URL ends before or with /chat/completions.
func New(o transport.Options) *Client {
	return transport.NewProvider(o, transport.Wire[bodyWriter, dialect, struct{}]{
		Name: "openai",
		Address: func(base, model string) (*url.URL, error) {
			return transport.Endpoint(strings.ReplaceAll(base, transport.ModelPlaceholder, url.PathEscape(model)),
				completionsPath)
		},
		List: func(base string) (*url.URL, error) {
			if strings.Contains(base, transport.ModelPlaceholder) {
				return nil, &provider.Error{Kind: provider.ErrNotAnAPI,
					Err: errors.New("an endpoint with the model in its address has no model list")}
			}
			return transport.Endpoint(strings.TrimSuffix(strings.TrimRight(strings.TrimSpace(base), "/"), completionsPath),
				"/models")
		},
		KeyHeader: "Authorization", KeyPrefix: "Bearer ",
		Tune: func(h *head, c *transport.Client, _ provider.Request) {
			h.Dialect.progress = c.Server() == transport.LlamaCpp
		},
		Adapt: dialect.adapt, Decoder: newReplyDecoder,
	}, dialect{noReasoning: !o.SendReasoning})
}

// Rebuild rewrites the body of a sent request; see [transport.Rebuild].
func Rebuild(sent chat.SentRequest, msgs []chat.Message) ([]byte, bool) {
	return transport.Rebuild[bodyWriter, dialect, struct{}](sent, msgs, dialect{}, dialect{noReasoning: true},
		dialect{noExtra: true}, dialect{noReasoning: true, noExtra: true})
}

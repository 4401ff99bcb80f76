package openai_test

import (
	"net/http"
	"testing"

	"coder/internal/model/openai"
	"coder/internal/model/provider"
	"coder/internal/model/transport"
	"coder/testkit/faultserver"
	"coder/testkit/providertest"
)

func TestSlow(t *testing.T) {
	providertest.TestSlow(t, "chat", func(t testing.TB, base string, through http.RoundTripper) provider.Provider {
		c := openai.New(transport.Options{BaseURL: base, APIKey: key, RoundTripper: through})
		t.Cleanup(c.CloseIdle)
		return c
	})
}

func TestContract(t *testing.T) {
	for _, tls := range []bool{false, true} {
		t.Run(map[bool]string{false: "HTTP/1.1", true: "HTTP/2"}[tls], func(t *testing.T) {
			providertest.TestProvider(t, func(t *testing.T, replies ...[]provider.Delta) provider.Provider {
				s := faultserver.Start(t, faultserver.Options{TLS: tls})
				for _, r := range replies {
					s.Script(faultserver.Deltas(r))
				}
				return open(t, s, "", transport.Options{})
			})
		})
	}
}

func TestContractOfRetry(t *testing.T) {
	providertest.TestProvider(t, func(t *testing.T, replies ...[]provider.Delta) provider.Provider {
		s := faultserver.Start(t, faultserver.Options{})
		for _, r := range replies {
			s.Script(faultserver.Deltas(r))
		}
		return provider.Retry(open(t, s, "", transport.Options{}), provider.Backoff{})
	})
}

// open makes a client of a behaviour of s.
func open(t testing.TB, s *faultserver.Server, name string, o transport.Options) *openai.Client {
	t.Helper()
	o.BaseURL, o.CA = s.Base(name), s.CA()
	if o.APIKey == "" {
		o.APIKey = key
	}
	c := openai.New(o)
	t.Cleanup(c.CloseIdle)
	return c
}

const key = "sk-test-0123456789abcdef"

func TestWishes(t *testing.T) {
	open := func(t testing.TB, base string) provider.Provider {
		c := openai.New(transport.Options{BaseURL: base, APIKey: key})
		t.Cleanup(c.CloseIdle)
		return c
	}
	providertest.TestWishes(t, "chat", open, []string{`"temperature"`, "reasoning_effort"}, []providertest.Wish{
		{Name: "effort and temperature", Tune: providertest.Warm, Want: []string{`"reasoning_effort":"high"`, `"temperature":0.25`}},
	})
	wishing := providertest.Wishing(open)
	providertest.TestComplaint(t, "chat", 400, "Unrecognized request argument supplied: reasoning_effort", "reasoning_effort", wishing)
	providertest.TestComplaint(t, "chat", 400, "Unsupported value: 'temperature' does not support 0.25 with this model. Only the default (1) value is supported.", "temperature", wishing)
}

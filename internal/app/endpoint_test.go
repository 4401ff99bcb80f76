package app

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"coder/internal/model/provider"
)

// TestKeysAreSentInTheHeaderOfTheEndpoint on every wire: in its own, or in the
// one that the person or the preset names.
func TestKeysAreSentInTheHeaderOfTheEndpoint(t *testing.T) {
	own := map[string][2]string{
		"openai": {"Authorization", "Bearer k-1"}, "responses": {"Authorization", "Bearer k-1"},
		"anthropic": {"X-Api-Key", "k-1"}, "gemini": {"X-Goog-Api-Key", "k-1"},
	}
	for kind, header := range own {
		var sent http.Header
		var at string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			sent, at = r.Header, r.URL.String()
			w.WriteHeader(http.StatusBadRequest)
		}))
		s := newStudio(t, "", nil)
		p := &s.Config.Provider
		p.Kind, p.BaseURL, p.APIKey = kind, server.URL+"/openai/deployments/{model}?api-version=2024-10-21", "k-1"
		ask := func() {
			t.Helper()
			c, err := s.newClient()
			if err != nil {
				t.Fatal(err)
			}
			_, err = provider.Collect(c.Stream(t.Context(), provider.Prompt("dep loy", "hi")), func(provider.Delta) error { return nil })
			if err == nil {
				t.Error("a refusal was taken for a reply")
			}
		}
		ask()
		if sent.Get(header[0]) != header[1] {
			t.Errorf("%s: %v", kind, sent)
		}
		p.KeyHeader = "api-key"
		ask()
		if sent.Get("Api-Key") != "k-1" || sent.Get(header[0]) != "" {
			t.Errorf("%s: %v", kind, sent)
		}
		for key, want := range map[string]string{"k-1": "Bearer k-1", "Basic k-1": "Basic k-1"} {
			p.KeyHeader, p.APIKey = "authorization", key
			if ask(); sent.Get("Authorization") != want || kind == "anthropic" && sent.Get("X-Api-Key") != "" {
				t.Errorf("%s: %v", kind, sent)
			}
		}
		if want := "/openai/deployments/dep%20loy/chat/completions?api-version=2024-10-21"; kind == "openai" && at != want {
			t.Errorf("asked at %s, want %s", at, want)
		}
		c, err := s.newClient()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Models(t.Context()); kind == "openai" && (err == nil || !strings.Contains(err.Error(), "has no model list")) {
			t.Errorf("a list of deployments: %v", err)
		}
		server.Close()
	}
}

func TestAnAddressWithoutASchemeIsTried(t *testing.T) {
	s := newStudio(t, "", nil)
	for name, want := range map[string]string{
		"127.0.0.1:18117/v1": "http://127.0.0.1:18117/v1", "localhost:1234": "http://localhost:1234", "[::1]:80/v1": "http://[::1]:80/v1", "192.168.1.9:8080": "http://192.168.1.9:8080",
		"api.example.com/v1": "https://api.example.com/v1", "8.8.8.8/v1": "https://8.8.8.8/v1", "http://a.example/v1": "http://a.example/v1",
	} {
		if e, err := s.FindEndpoint(name); err != nil || e.Provider.BaseURL != want {
			t.Errorf("%s: %q, %v", name, e.Provider.BaseURL, err)
		}
	}
	for _, name := range []string{"nosuch", "1", "no such.name", "ftp://host"} {
		if e, err := s.FindEndpoint(name); err == nil {
			t.Errorf("%s is taken for %q", name, e.Provider.BaseURL)
		}
	}
}

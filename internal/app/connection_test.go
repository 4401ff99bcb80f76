package app

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"coder/internal/config"
	"coder/internal/core/chat"
	"coder/internal/model/provider"
)

// wires are all that can be spoken, and the header that carries the key.
var wires = map[string]string{"openai": "Authorization", "responses": "Authorization", "anthropic": "X-Api-Key", "gemini": "X-Goog-Api-Key"}

// ask sends a request to the endpoint of s, and reports what went wrong.
func (s *studio) ask(ctx context.Context) error {
	c, err := s.newClient()
	if err != nil {
		return err
	}
	req := provider.Request{Model: "m", Messages: []chat.Message{chat.TextMessage(chat.User, "hi")}}
	_, err = provider.Collect(c.Stream(ctx, req), func(provider.Delta) error { return nil })
	return err
}

// The key that a command prints is asked for when it is needed, kept, asked for
// anew once it is refused, and never shown.
func TestTheKeyThatACommandPrints(t *testing.T) {
	for kind, header := range wires {
		t.Run(kind, func(t *testing.T) {
			s := newStudio(t, "", nil)
			runs := filepath.Join(t.TempDir(), "runs")
			var mu sync.Mutex
			var got []string
			good := "printed-key-1"
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				key := strings.TrimPrefix(r.Header.Get(header), "Bearer ")
				got = append(got, key)
				w.Header().Set("Content-Type", "application/json")
				if key != good {
					w.WriteHeader(http.StatusUnauthorized)
					_, _ = io.WriteString(w, `{"error":{"message":"the key `+key+` has run out"}}`)
					return
				}
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, `{"error":{"message":"enough"}}`)
			}))
			defer server.Close()
			s.Options.Script = ""
			s.Config.Provider.Kind, s.Config.Provider.BaseURL, s.Config.Provider.Model = kind, server.URL, "m"
			s.Config.Provider.APIKeyCommand = config.Command{"/bin/sh", "-c", `echo run >> "$0"; echo "printed-key-$(wc -l < "$0" | tr -d ' ')"; pwd >&2; test -z "$SOME_TOKEN"`, runs}
			s.Env.Environ = append(s.Env.Environ, "SOME_TOKEN=sk-0123456789abcdef0123")
			for range 2 {
				if err := s.ask(t.Context()); !errors.Is(err, provider.ErrBadRequest) {
					t.Errorf("with a good key: %v", err)
				}
			}
			if !slices.Equal(got, []string{"printed-key-1", "printed-key-1"}) {
				t.Errorf("the server saw %q", got)
			}
			good = "printed-key-2"
			if err := s.ask(t.Context()); !errors.Is(err, provider.ErrBadRequest) {
				t.Errorf("after the key ran out: %v", err)
			}
			good = "none"
			err := s.ask(t.Context())
			if !errors.Is(err, provider.ErrAuth) || strings.Contains(err.Error(), "printed-key") {
				t.Errorf("with a key that never works: %v", err)
			}
			if n := len(got); n != 6 || got[3] != "printed-key-2" || got[5] != "printed-key-3" {
				t.Errorf("the server saw %q", got)
			}
		})
	}
}

func TestACommandThatPrintsNoKey(t *testing.T) {
	for _, tc := range []struct {
		name    string
		command config.Command
		says    string
	}{
		{"fails", config.Command{"/bin/sh", "-c", "echo 'no vault here' >&2; exit 3"}, "exit status 3 (no vault here)"},
		{"is not there", config.Command{"/no/such/program"}, "no such file"},
		{"says nothing", config.Command{"/bin/sh", "-c", ":"}, "it must print one line"},
		{"says too much", config.Command{"/bin/sh", "-c", "echo a; echo b"}, "it must print one line"},
	} {
		s := newStudio(t, "", nil)
		s.Options.Script = ""
		s.Config.Provider.BaseURL, s.Config.Provider.APIKeyCommand = "http://127.0.0.1:1", tc.command
		if err := s.ask(t.Context()); !errors.Is(err, provider.ErrAuth) || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	s := newStudio(t, "", nil)
	s.Options.Script = ""
	s.Config.Provider.BaseURL, s.Config.Provider.APIKeyCommand = "http://127.0.0.1:1", config.Command{"/bin/sh", "-c", "sleep 600"}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.ask(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// A server that wants to see a certificate is shown the one of the settings, and
// every address has the parameters of the settings beside its own.
func TestCertificatesAndParameters(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: der}, "key.pem": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var shown int
	var query string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown, query = len(r.TLS.PeerCertificates), r.URL.RawQuery
		http.Error(w, `{"error":{"message":"enough"}}`, http.StatusBadRequest)
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	defer server.Close()
	ca := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for kind := range wires {
		s := newStudio(t, "", nil)
		p := &s.Config.Provider
		p.Kind, p.BaseURL, p.CAFile, p.Query = kind, server.URL, ca, map[string]string{"api-version": "2026-01"}
		if err := s.ask(t.Context()); !errors.Is(err, provider.ErrUnreachable) && !errors.Is(err, provider.ErrCutOff) {
			t.Errorf("%s without a certificate: %v", kind, err)
		}
		p.CertFile, p.KeyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
		if err := s.ask(t.Context()); !errors.Is(err, provider.ErrBadRequest) || shown != 1 || !strings.Contains(query, "api-version=2026-01") || kind == "gemini" && !strings.Contains(query, "alt=sse") {
			t.Errorf("%s: %v, %d certificates, query %q", kind, err, shown, query)
		}
		p.KeyFile = ""
		if err := s.ask(t.Context()); err == nil || !strings.Contains(err.Error(), "must be set together") {
			t.Errorf("half a pair: %v", err)
		}
		p.KeyFile = filepath.Join(dir, "ca.pem")
		if err := s.ask(t.Context()); err == nil || !strings.Contains(err.Error(), "certificate cannot be used") {
			t.Errorf("a wrong pair: %v", err)
		}
	}
}

func TestProxies(t *testing.T) {
	for _, tc := range []struct {
		proxy, without, to string
		through, says      string
	}{
		{"http://proxy:3128", "", "https://api.example.com/v1", "http://proxy:3128", ""},
		{"socks5://proxy:1080", "", "https://api.example.com/v1", "socks5://proxy:1080", ""},
		{"https://user:word@proxy", "", "https://api.example.com/v1", "https://user:word@proxy", ""},
		{"http://proxy:3128", "", "http://127.0.0.1:8080/v1", "", ""},
		{"http://proxy:3128", "", "http://localhost:8080/v1", "", ""},
		{"http://proxy:3128", "", "http://[::1]:8080/v1", "", ""},
		{"http://proxy:3128", "other.org, .example.com", "https://api.example.com/v1", "", ""},
		{"http://proxy:3128", "example.com:8443", "https://api.example.com/v1", "http://proxy:3128", ""},
		{"http://proxy:3128", "ample.com", "https://api.example.com/v1", "http://proxy:3128", ""},
		{"http://proxy:3128", "10.0.0.0/8", "http://10.1.2.3/v1", "", ""},
		{"http://proxy:3128", "*", "https://api.example.com/v1", "", ""},
		{"none", "", "https://api.example.com/v1", "", ""},
		{"ftp://proxy", "", "https://api.example.com/v1", "", "provider.proxy: expected an address"},
		{"proxy:3128", "", "https://api.example.com/v1", "", "provider.proxy: expected an address"},
	} {
		a := modelsOf(&Site{Env: Env{Environ: []string{"NO_PROXY=" + tc.without}}})
		choose, err := proxyOf(a.Env, tc.proxy)
		if tc.says != "" {
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s: %v", tc.proxy, err)
			}
			continue
		}
		got := ""
		if choose != nil {
			to, _ := url.Parse(tc.to)
			if u, _ := choose(&http.Request{URL: to}); u != nil {
				got = u.String()
			}
		}
		if err != nil || got != tc.through {
			t.Errorf("%s without %q to %s: through %q, want %q: %v", tc.proxy, tc.without, tc.to, got, tc.through, err)
		}
	}
}

// What is wished of replies is what the person says of the model, of the
// endpoint, or what the maker recommends, without what the model refuses.
func TestWishesOfModels(t *testing.T) {
	warm := func(f float64) *float64 { return &f }
	for _, tc := range []struct {
		name, model string
		set         func(*config.Provider)
		effort      string
		byLevel     bool
		temperature *float64
		most        int
	}{
		{"nothing", "unheard-of", func(*config.Provider) {}, "", false, nil, 0},
		{"all of it, for a model nobody knows", "unheard-of", func(p *config.Provider) { p.Effort, p.Temperature, p.MaxOutput = "high", 0.1, 900 }, "high", false, warm(0.1), 900},
		{"a model that refuses a temperature", "gpt-5", func(p *config.Provider) { p.Effort, p.Temperature = "high", 0.1 }, "high", false, nil, 0},
		{"a level that it does not have", "gpt-5", func(p *config.Provider) { p.Effort = "none" }, "minimal", false, nil, 0},
		{"a level above those it has", "gpt-5", func(p *config.Provider) { p.Effort = "max" }, "high", false, nil, 0},
		{"a model that does not think", "gpt-4o", func(p *config.Provider) { p.Effort, p.Temperature = "high", 0.1 }, "", false, warm(0.1), 0},
		{"a model that wants a level", "claude-opus-4-6", func(p *config.Provider) { p.Effort = "high" }, "high", true, nil, 0},
		{"a wire that wants a figure", "claude-opus-4-6", func(p *config.Provider) { p.Kind = "anthropic" }, "", true, nil, defaultMaxOutput},
		{"zero is a temperature", "unheard-of", func(p *config.Provider) { p.Temperature = 0 }, "", false, warm(0), 0},
		{"by model", "mine", func(p *config.Provider) {
			p.Effort, p.Temperature, p.MaxOutput = "high", 0.9, 900
			p.ModelInfo = map[string]json.RawMessage{"mine": json.RawMessage(`{"effort":"low","temperature":0.2,"max_output":100}`)}
		}, "low", false, warm(0.2), 100},
	} {
		a := modelsOf(new(Site))
		a.Config = config.Default()
		tc.set(&a.Config.Provider)
		req := provider.Request{Model: tc.model}
		a.requestTuner()(&req)
		same := (req.Temperature == nil) == (tc.temperature == nil) && (tc.temperature == nil || *req.Temperature == *tc.temperature)
		if req.Effort != tc.effort || req.ByLevel != tc.byLevel || !same || req.MaxTokens != tc.most {
			t.Errorf("%s: %+v", tc.name, req)
		}
	}
	driven := modelsOf(new(Site))
	driven.Config = config.Default()
	driven.Config.Provider.Effort = "high"
	tune := driven.requestTuner()
	for _, step := range [][2]string{{"", "high"}, {"low", "low"}, {"none", "none"}, {"", "high"}} { // whoever drives the session says so, and takes it back
		driven.UseEffort(step[0])
		req := provider.Request{Model: "unheard-of"}
		if tune(&req); req.Effort != step[1] {
			t.Errorf("%q became %q", step[0], req.Effort)
		}
	}
	a := modelsOf(new(Site))
	a.Config = config.Default()
	a.Config.Provider.MaxOutput = 500
	for asked, want := range map[int]int{0: 500, 100: 100, 900: 500} {
		req := provider.Request{Model: "m", MaxTokens: asked}
		if a.requestTuner()(&req); req.MaxTokens != want {
			t.Errorf("%d became %d", asked, req.MaxTokens)
		}
	}
}

func modelsOf(s *Site) *Models { return &Models{Archive: &Archive{Keys: &Keys{Site: s}}} }

package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// looking is the program in an environment with no key, which looks for servers
// of this machine at these addresses alone.
func looking(t *testing.T, addresses ...string) *program {
	t.Helper()
	p := newProgram(t)
	p.env = append(p.env, "CODER_TEST_FAST=1", "CODER_LOCAL_SERVERS="+strings.Join(addresses, ",")+",",
		"CODER_CONFIG="+p.file("patient.json", `{"discovery": {"timeout_ms": 20000}}`))
	return p
}

func (p *program) own() string { return filepath.Join(filepath.Dir(p.self), ".coder", "config.json") }

func (p *program) ownText() string {
	text, err := os.ReadFile(p.own())
	if err != nil {
		return ""
	}
	return string(text)
}

// serve has a server of models on this machine, which is looked for there alone;
// with a word, it is also the address of OpenAI, whose key is there: serve [key].
// Without one that answers: serve none, or, where one is looked for at an address that is
// named and nobody is there: serve dead. Where a vendor wants a key that is nowhere: serve vendor. With its address in CODER_BASE_URL: serve
// address.
func (s *scene) serve(args []string) error {
	config := filepath.Join(s.dir, "patient.json")
	if err := os.WriteFile(config, []byte(`{"discovery": {"timeout_ms": 20000}}`), 0o600); err != nil {
		return err
	}
	s.env = append(s.env, "CODER_CONFIG="+config, "CODER_TEST_FAST=1")
	if slices.Contains(args, "none") {
		s.env = append(s.env, "CODER_LOCAL_SERVERS=,")
		return nil
	}
	server := serveModels(s.t, &modelServer{beside: map[string]string{"GET /v1/models": twoModels}})
	s.env = append(s.env, "CODER_LOCAL_SERVERS="+server.URL+"/v1")
	if slices.Contains(args, "vendor") { // whose key is in no variable
		vendor := serveModels(s.t, &modelServer{wants: "sk-the-key-of-the-server", beside: map[string]string{"GET /v1/models": `{"data":[{"id":"gpt-5.4"},{"id":"gpt-4o"}]}`}})
		s.env = append(s.env, "GROQ_BASE_URL="+vendor.URL+"/v1")
	}
	if slices.Contains(args, "dead") {
		server.Close()
	}
	if slices.Contains(args, "address") {
		s.env = append(s.env, "CODER_BASE_URL="+server.URL+"/v1")
	}
	if slices.Contains(args, "key") {
		vendor := serveModels(s.t, &modelServer{beside: map[string]string{"GET /v1/models": `{"data":[{"id":"gpt-5.4"},{"id":"gpt-4o"}]}`}})
		s.env = append(s.env, "GROQ_API_KEY="+secret, "GROQ_BASE_URL="+vendor.URL+"/v1")
	}
	return nil
}

// port is that of a server on loopback, which differs from play to play and has
// five digits.
var port = regexp.MustCompile(`127\.0\.0\.1:\d{5}`)

const twoModels = `{"data":[{"id":"small","owned_by":"llamacpp","meta":{"n_ctx":8192}},{"id":"other","context_length":131072,"pricing":{"prompt":"0.000001","completion":"0.000002"}}]}`

func TestModelsAreListed(t *testing.T) {
	t.Run("without anything", func(t *testing.T) {
		out, stderr, code := looking(t).run("models")
		if code != 0 || !strings.Contains(out, "no endpoint is configured, and the environment has no vendor's key; coder setup connects one") {
			t.Errorf("%d %s %s", code, out, stderr)
		}
	})
	local := serveModels(t, &modelServer{beside: map[string]string{"GET /v1/models": twoModels}})
	vendor := serveModels(t, &modelServer{beside: map[string]string{"GET /v1/models": `{"data":[{"id":"gpt-5.4"},{"id":"gpt-4o"}]}`}})
	nonsense := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>hello")) }))
	defer nonsense.Close()
	dead := httptest.NewServer(nil)
	dead.Close()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer refusing.Close()

	p := looking(t, local.URL+"/v1", dead.URL+"/v1", nonsense.URL+"/v1")
	p.env = append(p.env, "OPENAI_API_KEY="+secret, "OPENAI_BASE_URL="+vendor.URL+"/v1", "ANTHROPIC_API_KEY=k2", "ANTHROPIC_BASE_URL="+refusing.URL)
	out, stderr, code := p.run("models")
	for _, want := range []string{
		"OpenAI  " + vendor.URL + "/v1  key from OPENAI_API_KEY  (in use)", "*   gpt-5.4  1050000", "    gpt-4o   128000   2.50    10.00",
		"Anthropic  " + refusing.URL + "  key from ANTHROPIC_API_KEY", "  does not list its models: not authorized",
		strings.TrimPrefix(local.URL, "http://"), "    small  8192    ?       ?", "    other  131072  1.00    2.00",
		"not found on this machine: " + strings.TrimPrefix(dead.URL, "http://"), "cannot reach", "not found on this machine: " + strings.TrimPrefix(nonsense.URL, "http://"),
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s%s", want, out, stderr)
		}
	}
	if code != 0 || strings.Contains(out, secret) {
		t.Errorf("%d %s", code, out)
	}
	out, _, _ = p.run("models", "--json")
	var got struct {
		Endpoints []struct {
			Name, Preset, Error string
			InUse               bool `json:"in_use"`
			Models              []struct {
				Name    string
				Window  int
				Default bool
				PriceIn *float64 `json:"price_in"`
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || len(got.Endpoints) != 5 || strings.Contains(out, secret) {
		t.Fatalf("%v %s", err, out)
	}
	if e := got.Endpoints[0]; !e.InUse || e.Preset != "openai" || len(e.Models) != 2 || !e.Models[1].Default || e.Models[1].Window != 1050000 || e.Models[1].PriceIn == nil {
		t.Errorf("%+v", e)
	}
	if e := got.Endpoints[1]; e.Error == "" || e.Preset != "anthropic" {
		t.Errorf("%+v", e)
	}
	if local.requests != nil || vendor.requests != nil {
		t.Error("a model was asked something")
	}
}

// TestASlowServerIsNotWaitedFor though it never answers.
func TestASlowServerIsNotWaitedFor(t *testing.T) {
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer slow.Close()
	p := looking(t, slow.URL+"/v1")
	p.env = append(p.env, "CODER_CONFIG="+p.file("hasty.json", `{"discovery": {"timeout_ms": 100}}`))
	if out, _, code := p.run("models"); code != 0 || !strings.Contains(out, "no answer within 100ms") {
		t.Errorf("%d %s", code, out)
	}
}

func TestSetupInAPipe(t *testing.T) {
	server := func(t *testing.T) *modelServer {
		return serveModels(t, &modelServer{beside: map[string]string{"GET /v1/models": twoModels}})
	}
	t.Run("needs a name", func(t *testing.T) {
		p := looking(t)
		if _, stderr, code := p.run("setup"); code != 2 || !strings.Contains(stderr, "without a terminal name the endpoint: coder setup --preset NAME") || p.ownText() != "" {
			t.Errorf("%d %s", code, stderr)
		}
	})
	t.Run("by name", func(t *testing.T) {
		s := server(t)
		p := looking(t)
		p.env = append(p.env, "GROQ_API_KEY="+secret, "GROQ_BASE_URL="+s.URL+"/v1")
		out, stderr, code := p.run("setup", "--preset", "groq", "--model", "small")
		if code != 0 || !strings.Contains(out, "It works: hello (window: 8192 tokens)") || !strings.Contains(out, "the key: read from GROQ_API_KEY at each start") {
			t.Fatalf("%d %s %s", code, out, stderr)
		}
		if want := "{\n  \"provider\": {\n    \"preset\": \"groq\",\n    \"model\": \"small\"\n  }\n}\n"; p.ownText() != want {
			t.Errorf("%s", p.ownText())
		}
		if info, err := os.Stat(p.own()); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v %v", info, err)
		}
		if out, stderr, code := p.run("-p", "hi"); code != 0 || out != "hello\n" {
			t.Errorf("%d %s %s", code, out, stderr)
		}
		if out, _, _ := p.run("-p", "/status"); !strings.Contains(out, "of 8192 tokens") {
			t.Errorf("the window is not remembered: %s", out)
		}
	})
	t.Run("by address, over other settings", func(t *testing.T) {
		s := server(t)
		p := looking(t)
		before := "{\n  // mine\n  \"ui\": {\"color\": \"never\"},\n  \"provider\": {\"base_url\": \"https://old.example/v1\", \"kind\": \"anthropic\", \"api_key\": \"old-key-of-mine\", \"headers\": {\"X-Auth\": \"old-key-too\"}, \"timeout_ms\": 7000}\n}\n"
		if err := os.MkdirAll(filepath.Dir(p.own()), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p.own(), []byte(before), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, stderr, code := p.run("setup", "--preset", s.URL+"/v1"); code != 42 || !strings.Contains(stderr, "your settings already name an endpoint, https://old.example/v1; --yes replaces it") || p.ownText() != before {
			t.Fatalf("%d %s", code, stderr)
		}
		p.env = append(p.env, "CODER_API_KEY=mine-for-it")
		if out, stderr, code := p.run("setup", "--preset", s.URL+"/v1", "--yes"); code != 0 || !strings.Contains(out, "removed, as it was for another endpoint: provider.headers\n") {
			t.Fatalf("%d %s %s", code, out, stderr)
		}
		text := p.ownText()
		for _, want := range []string{"// mine", `"color": "never"`, `"timeout_ms": 7000`, `"base_url": "` + s.URL + `/v1"`, `"kind": "openai"`, `"model": "other"`, `"api_key": "${CODER_API_KEY}"`} {
			if !strings.Contains(text, want) {
				t.Errorf("%s is missing in %s", want, text)
			}
		}
		if strings.Contains(text, "old-key") || strings.Contains(text, "mine-for-it") {
			t.Errorf("%s", text)
		}
	})
	for name, tt := range map[string]struct{ env, says string }{
		"keys of vendors do not come first": {env: "DEEPSEEK_API_KEY=k"},
		"nor do their models":               {env: "DEEPSEEK_API_KEY=k DEEPSEEK_MODEL=deep"},
		"our own variables do":              {env: "CODER_MODEL=mine", says: "but environment variable CODER_MODEL also sets provider.model, and takes precedence"},
		"and so does an endpoint by name":   {env: "CODER_PROVIDER=deepseek DEEPSEEK_API_KEY=k", says: "but environment variable CODER_PROVIDER also sets provider.preset, and takes precedence"},
	} {
		t.Run(name, func(t *testing.T) {
			s := server(t)
			p := looking(t)
			p.env = append(p.env, strings.Fields(tt.env)...)
			out, stderr, code := p.run("setup", "--preset", s.URL+"/v1", "--model", "small", "--yes")
			if code != 0 || !strings.Contains(out, tt.says) || tt.says == "" && strings.Contains(out, "takes precedence") {
				t.Errorf("%d %s %s", code, out, stderr)
			}
		})
	}
	t.Run("with the key on stdin", func(t *testing.T) {
		s := serveModels(t, &modelServer{wants: "sk-right-key", beside: map[string]string{"GET /v1/models": twoModels}})
		p := looking(t)
		p.env = append(p.env, "GROQ_BASE_URL="+s.URL+"/v1")
		key := func(key string, args ...string) (string, string, int) {
			p.stdin = strings.NewReader(key + "\n")
			defer func() { p.stdin = nil }()
			return p.run(append([]string{"setup", "--preset", "groq", "--api-key-stdin"}, args...)...)
		}
		if out, stderr, code := key("sk-wrong-key", "--model", "small"); code != 41 || strings.Contains(out+stderr, "sk-wrong") || p.ownText() != "" {
			t.Fatalf("%d %s %s", code, out, stderr)
		}
		out, stderr, code := key("sk-right-key")
		if code != 0 || !strings.Contains(out, "the key: in a file that only you can read") || strings.Contains(out+stderr+p.ownText(), "sk-right") {
			t.Fatalf("%d %s %s %s", code, out, stderr, p.ownText())
		}
		if out, stderr, code := p.run("-p", "hi"); code != 0 || out != "hello\n" {
			t.Errorf("%d %s %s", code, out, stderr)
		}
		if out, stderr, code := p.run("-p", "--provider", "openai", "hi"); code == 0 || strings.Contains(out+stderr, "sk-right") {
			t.Errorf("the key went elsewhere: %d %s %s", code, out, stderr)
		}
		s.wants = "sk-another-key"
		if out, stderr, code := p.run("-p", "hi"); code != 41 || !strings.Contains(stderr, "the API key was rejected (from "+filepath.Dir(p.own())+"/api-keys): ") || !strings.Contains(stderr, "run coder setup to change it") || strings.Contains(out+stderr, "sk-right") {
			t.Errorf("%d %s %s", code, out, stderr)
		}
		p.env = append(p.env, "CODER_API_KEY=sk-from-the-variable")
		if _, stderr, code := p.run("-p", "hi"); code != 41 || !strings.Contains(stderr, "the API key was rejected (from CODER_API_KEY): ") {
			t.Errorf("%d %s", code, stderr)
		}
	})
	t.Run("a test that fails writes nothing", func(t *testing.T) {
		s := serveModels(t, &modelServer{beside: map[string]string{"GET /v1/models": twoModels}, most: 1, refuses: `{"error":{"message":"no such thing"}}`})
		p := looking(t)
		if _, stderr, code := p.run("setup", "--preset", s.URL+"/v1"); code != 54 || !strings.Contains(stderr, "the test failed, and nothing was written: request refused: \"no such thing\"") || p.ownText() != "" {
			t.Errorf("%d %s %s", code, stderr, p.ownText())
		}
		if out, _, code := p.run("setup", "--preset", s.URL+"/v1", "--yes"); code != 0 || !strings.Contains(out, "It does not answer") || p.ownText() == "" {
			t.Errorf("%d %s", code, out)
		}
	})
	for name, tt := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no such name":    {[]string{"setup", "--preset", "opnai"}, 42, "unknown endpoint opnai; use one of: openai, openrouter"},
		"no key":          {[]string{"setup", "--preset", "mistral"}, 52, "Mistral needs a key: set MISTRAL_API_KEY and try again"},
		"no address":      {[]string{"setup", "--preset", "azure", "--model", "x"}, 52, "Azure OpenAI needs an address: set AZURE_OPENAI_ENDPOINT"},
		"a key":           {[]string{"setup", "--preset", "sk-ant-foo"}, 42, "this looks like an API key"},
		"no key on stdin": {[]string{"setup", "--preset", "groq", "--api-key-stdin"}, 42, "no API key on stdin"},
		"not an address":  {[]string{"setup", "--preset", "ftp://x"}, 42, "ftp://x is not an address such as https://host/v1"},
		"too many words":  {[]string{"models", "--json", "all", "of", "them"}, 2, "usage: coder models [--json]"},
	} {
		t.Run(name, func(t *testing.T) {
			p := looking(t)
			if _, stderr, code := p.run(tt.args...); code != tt.code || !strings.Contains(stderr, tt.says) || p.ownText() != "" {
				t.Errorf("%d %s", code, stderr)
			}
		})
	}
	t.Run("a file that cannot be read stays", func(t *testing.T) {
		s := server(t)
		p := looking(t)
		if err := os.MkdirAll(filepath.Dir(p.own()), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p.own(), []byte(`{"provider": `), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, stderr, code := p.run("setup", "--preset", s.URL+"/v1", "--yes"); code != 52 || p.ownText() != `{"provider": ` {
			t.Errorf("%d %s", code, stderr)
		}
	})
}

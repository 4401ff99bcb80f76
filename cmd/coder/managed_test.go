package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestManagedSettingsLimitModelsEndpointsAndTheDay asks a server of models under several limits.
func TestManagedSettingsLimitModelsEndpointsAndTheDay(t *testing.T) {
	s := serveModels(t, &modelServer{usage: 60})
	host := strings.TrimPrefix(s.URL, "http://")
	for limits, want := range map[string]struct {
		code int
		says string
	}{
		`{"endpoints": ["` + host + `"], "models": ["sm*"], "day_tokens": 1000000}`: {0, ""},
		`{"models": ["large", "smaller*"]}`:                                         {52, "model small is not allowed by managed settings"},
		`{"models": []}`:                                                            {52, "model small is not allowed"},
		`{"endpoints": ["llm.example.org", "127.0.0.1:1"]}`:                         {52, "endpoint " + host + " is not allowed by managed settings"},
		`{"day_usd": 1}`:                                                            {52, "the price of small is unknown"},
	} {
		asked := len(s.requests)
		p := s.under(t, limits)
		if _, stderr, code := p.run("-p", "hi"); code != want.code || !strings.Contains(stderr, want.says) || (len(s.requests) > asked) != (code == 0) {
			t.Errorf("%s: %d %s (%d requests)", limits, code, stderr, len(s.requests)-asked)
		}
	}
	// Each session of the day counts, in each project.
	p := s.under(t, `{"day_tokens": 100}`)
	for i, want := range []int{0, 0, 58} {
		if _, stderr, code := p.run("-p", "hi"); code != want || want == 58 && !strings.Contains(stderr, "of 100 tokens today") {
			t.Errorf("session %d: %d %s", i, code, stderr)
		}
	}
	p.env = append(p.env, "CODER_TEST_CLOCK=49h")
	if _, stderr, code := p.run("-p", "hi"); code != 0 {
		t.Errorf("two days later: %d %s", code, stderr)
	}
	p = s.under(t, `{"models": ["sm*"]}`)
	if _, stderr, code := p.run("-p", "/model large force"); code != 42 || !strings.Contains(stderr, "model large is not allowed") {
		t.Errorf("%d %s", code, stderr)
	}
}

// under is a program whose model is the server's, with limits of managed settings.
func (s *modelServer) under(t *testing.T, limits string) *program {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "coder")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "managed.json"), []byte(`{"managed": `+limits+`}`), 0o644); err != nil {
		t.Fatal(err)
	}
	p := s.at(t)
	p.env = append(p.env, "CODER_TEST_MANAGED="+dir)
	return p
}

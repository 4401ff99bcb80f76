package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"coder/testkit/faultserver"
)

const secret = "sk-very-secret-key-0123456789"

// connected is a program with a provider on loopback.
func connected(t *testing.T, name string) (*program, *faultserver.Server) {
	t.Helper()
	s := faultserver.Start(t, faultserver.Options{Key: secret})
	p := newProgram(t)
	p.file("a.txt", "hello\n")
	p.env = append(p.env, "CODER_BASE_URL="+s.Base(name), "CODER_API_KEY="+secret, "CODER_MODEL=m", "CODER_TEST_FAST=1")
	return p, s
}

// endless are the behaviours that only a time limit ends; the provider's own
// tests show them with a clock of their own.
var endless = []string{"stall-headers", "stall-mid-stream", "keepalive-only", "slow-stream"}

// TestEveryFaultOfTheWire runs the whole program against each way a server can
// misbehave. Whatever it is: no crash, no hang, no empty success, a session
// that can go on, and a key that stays secret.
func TestEveryFaultOfTheWire(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	for _, name := range faultserver.Names() {
		if strings.HasPrefix(name, "h2-") || contains(endless, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, s := connected(t, name)
			out, stderr, code := p.run("-p", "--session-id", "s1", "--max-steps", "6", "look at a.txt")
			if code == -1 || strings.Contains(stderr, "panic") || strings.Contains(stderr, "goroutine") {
				t.Fatalf("it crashed: %s", stderr)
			}
			if code == 0 && strings.TrimSpace(out) == "" {
				t.Errorf("an empty success; stderr: %s", stderr)
			}
			if code != 0 && !strings.Contains(stderr, "coder: ") {
				t.Errorf("code %d without a word", code)
			}
			if code != 0 && !contains([]string{"1", "30", "41", "53", "54"}, fmt.Sprint(code)) {
				t.Errorf("code %d", code)
			}
			if err := wellFormed(p.ws); err != nil {
				t.Error(err)
			}
			keyStaysSecret(t, p, out+stderr)
			back := faultserver.Stream(faultserver.Text("back"), faultserver.Finish("stop"))
			s.Script(back, back) // a very long conversation is summarised first
			p.env = append(p.env, "CODER_BASE_URL="+s.Base(""))
			if out, stderr, code := p.run("-p", "-c", "go on"); code != 0 || out != "back\n" {
				t.Errorf("the session cannot go on: %q, code %d: %s", out, code, stderr)
			}
		})
	}
}

// keyStaysSecret looks for the key in what was shown and in what was kept.
func keyStaysSecret(t *testing.T, p *program, shown string) {
	t.Helper()
	if strings.Contains(shown, secret) {
		t.Errorf("the key was shown: %s", shown)
	}
	err := filepath.WalkDir(filepath.Join(p.ws, ".coder"), func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(text), secret) {
			t.Errorf("%s holds the key", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func contains(all []string, s string) bool {
	for _, x := range all {
		if x == s {
			return true
		}
	}
	return false
}

// TestProviderFailures holds exit codes, hints and numbers of requests.
func TestProviderFailures(t *testing.T) {
	tests := []struct {
		name     string
		code     int
		says     string
		requests int
	}{
		{"http-401", 41, "from CODER_API_KEY", 1},
		{"http-403", 41, "from CODER_API_KEY", 1},
		{"http-400", 54, "request refused", 1},
		{"http-404-model", 54, "choose one with --model", 1},
		{"http-429-quota", 54, "quota exceeded", 1},
		{"http-429-day", 54, "rate limited", 1},
		{"http-500-always", 54, "provider answered 500", 5},
		{"error-in-stream-fatal", 54, "", 1},
		{"html-200", 54, "did not answer as an API", 5},
		{"ctx-openai", 0, "", 2}, // made shorter, and sent again
		{"finish-length", 0, "length limit", 1},
		{"finish-filter", 0, "content filter", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, s := connected(t, tt.name)
			out, stderr, code := p.run("-p", "hello")
			if code != tt.code || !strings.Contains(stderr, tt.says) {
				t.Errorf("code %d, want %d with %q; stdout %q, stderr: %s", code, tt.code, tt.says, out, stderr)
			}
			if n := s.Count(tt.name); n != tt.requests {
				t.Errorf("%d requests, want %d", n, tt.requests)
			}
		})
	}
}

func TestUnreachableProvider(t *testing.T) {
	p, s := connected(t, "")
	s.Close()
	_, stderr, code := p.run("-p", "hello")
	if code != 54 || !strings.Contains(stderr, "cannot reach "+strings.TrimPrefix(s.URL(), "http://")) || !strings.Contains(stderr, "check CODER_BASE_URL") {
		t.Errorf("code %d: %s", code, stderr)
	}
}

// TestTheBodyGrowsAtItsEndOnly holds the promise that provider caches need:
// each request begins with the bytes of the one before.
func TestTheBodyGrowsAtItsEndOnly(t *testing.T) {
	p, s := connected(t, "")
	for i := range 4 {
		s.Script(faultserver.Stream(faultserver.Call(fmt.Sprint("c", i), "read", `{"path":"a.txt"}`), faultserver.Finish("tool_calls")))
	}
	s.Script(faultserver.Stream(faultserver.Text("done"), faultserver.Finish("stop")))
	if out, stderr, code := p.run("-p", "go"); code != 0 || out != "done\n" {
		t.Fatalf("%q, code %d: %s", out, code, stderr)
	}
	reqs := s.Requests()
	if len(reqs) != 5 {
		t.Fatalf("%d requests", len(reqs))
	}
	for i := 1; i < len(reqs); i++ {
		before := strings.TrimSuffix(string(reqs[i-1].Body), "]}")
		if !strings.HasPrefix(string(reqs[i].Body), before) {
			t.Errorf("request %d does not begin with request %d", i, i-1)
		}
	}
	if !strings.Contains(string(reqs[0].Body), `"stream":true`) {
		t.Error("the reply was not asked for as a stream")
	}
}

// TestToolsAsText shows a model that can only write its calls as text.
func TestToolsAsText(t *testing.T) {
	p, s := connected(t, "")
	s.Script(
		faultserver.Stream(faultserver.Text(`<tool_use>{"name":"read","arguments":{"path":"a.txt"}}</tool_use>`), faultserver.Finish("stop")),
		faultserver.Stream(faultserver.Text("it says hello"), faultserver.Finish("stop")),
	)
	p.file("conf.json", `{"provider": {"tool_mode": "xml"}}`)
	out, stderr, code := p.run("-p", "--session-id", "s1", "--config", "conf.json", "look")
	if code != 0 || out != "it says hello\n" {
		t.Fatalf("%q, code %d: %s", out, code, stderr)
	}
	reqs := s.Requests()
	if strings.Contains(string(reqs[0].Body), `"tools":`) {
		t.Error("the request names tools")
	}
	if !strings.Contains(string(reqs[0].Body), "tool_use") || !strings.Contains(string(reqs[1].Body), "hello") {
		t.Error("the model was not told how to call, or what came of it")
	}
	if err := wellFormed(p.ws); err != nil {
		t.Error(err)
	}
	audit, err := os.ReadFile(filepath.Join(p.ws, ".coder/log/s1/audit.jsonl"))
	if err != nil || !strings.Contains(string(audit), `"toolName":"read"`) {
		t.Errorf("audit: %s, %v", audit, err)
	}
}

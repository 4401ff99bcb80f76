package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// otlpCollector is a collector of the person's own, on loopback.
type otlpCollector struct {
	*httptest.Server
	mu      sync.Mutex
	bodies  map[string]string // by path
	headers http.Header
}

func newCollector(t *testing.T) *otlpCollector {
	t.Helper()
	c := &otlpCollector{bodies: make(map[string]string)}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !json.Valid(body) || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: %v %v %s", r.Method, r.URL, r.Header, err, body)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.bodies[r.URL.Path] += string(body)
		c.headers = r.Header
		_, _ = w.Write([]byte(`{"partialSuccess":{}}`))
	}))
	t.Cleanup(c.Close)
	return c
}

const tracedScript = `usage 100 20
call bash {"command": "env; echo private-output"}
call write {"path": "private-file.txt", "content": "private-content"}
---
say private-answer
`

// TestTelemetryIsSentIfAskedFor to a collector, with nothing of what was said.
func TestTelemetryIsSentIfAskedFor(t *testing.T) {
	c := newCollector(t)
	p := newProgram(t)
	script := p.file("script", tracedScript)
	p.env = append(p.env, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL, "OTEL_EXPORTER_OTLP_HEADERS=x-team-key=collector-key-123", "OTEL_SERVICE_NAME=mine", "OTEL_RESOURCE_ATTRIBUTES=team=blue")
	out, stderr, code := p.run("-p", "--auto-approve", "--session-id", "s", "--script", script, "private-prompt")
	if code != 0 || !strings.Contains(out, "private-answer") || strings.Contains(stderr, "telemetry") {
		t.Fatalf("%d %s %s", code, out, stderr)
	}
	traces, metrics := c.bodies["/v1/traces"], c.bodies["/v1/metrics"]
	for _, want := range []string{
		`"name":"invoke_agent main"`, `"name":"chat script"`, `"name":"execute_tool bash"`, `"name":"execute_tool write"`, `{"key":"gen_ai.conversation.id","value":{"stringValue":"s"}}`,
		`{"key":"service.name","value":{"stringValue":"mine"}}`, `{"key":"team","value":{"stringValue":"blue"}}`, `{"key":"gen_ai.usage.input_tokens","value":{"intValue":"100"}}`,
	} {
		if !strings.Contains(traces, want) {
			t.Errorf("no %s in\n%s", want, traces)
		}
	}
	for _, want := range []string{`"name":"gen_ai.client.token.usage"`, `"name":"coder.turns"`, `"name":"coder.tool.calls"`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s in\n%s", want, metrics)
		}
	}
	if strings.Contains(traces+metrics, "private") || c.headers.Get("X-Team-Key") != "collector-key-123" {
		t.Errorf("%v\n%s\n%s", c.headers, traces, metrics)
	}
	log, err := os.ReadFile(filepath.Join(p.ws, ".coder", "log", "s", "conversation.jsonl"))
	if log := string(log); err != nil || !strings.Contains(log, "private-output") || strings.Contains(log, "collector-key-123") || strings.Contains(log, "OTLP_HEADERS") {
		t.Error("a command was given the key of the collector")
	}
}

func TestNoTelemetryUnlessAskedFor(t *testing.T) {
	c := newCollector(t)
	for name, tt := range map[string]struct {
		env  []string
		says string
	}{
		"not asked for":    {[]string{"OTEL_SERVICE_NAME=mine", "OTEL_EXPORTER_OTLP_HEADERS=a=b"}, ""},
		"disabled":         {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL, "OTEL_SDK_DISABLED=true"}, ""},
		"another protocol": {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}, "no telemetry is sent: OTEL_EXPORTER_OTLP_PROTOCOL is grpc, and only http/json is supported"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProgram(t)
			p.env = append(p.env, tt.env...)
			_, stderr, code := p.run("-p", "--script", p.file("script", "say ok\n"), "hi")
			if code != 0 || len(c.bodies) > 0 || !strings.Contains(stderr, tt.says) || tt.says == "" && stderr != "" {
				t.Errorf("%d, sent %v, said %s", code, c.bodies, stderr)
			}
		})
	}
	// A project cannot ask for it.
	p := newProgram(t)
	p.file(".env", "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL)
	if _, _, code := p.run("-p", "--script", p.file("script", "say ok\n"), "hi"); code != 0 || len(c.bodies) > 0 {
		t.Errorf("%d, sent %v", code, c.bodies)
	}
}

// TestACollectorThatFailsBreaksNothing, whatever it does.
func TestACollectorThatFailsBreaksNothing(t *testing.T) {
	release := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	dead := httptest.NewServer(nil)
	dead.Close()
	defer func() { close(release); hangs.Close(); refuses.Close() }()
	for name, server := range map[string]*httptest.Server{"hangs": hangs, "refuses": refuses, "is not there": dead} {
		t.Run(name, func(t *testing.T) {
			p := newProgram(t)
			p.env = append(p.env, "OTEL_EXPORTER_OTLP_ENDPOINT="+server.URL, "OTEL_EXPORTER_OTLP_TIMEOUT=60000")
			out, stderr, code := p.run("-p", "--script", p.file("script", "say ok\n"), "hi")
			lines := slices.DeleteFunc(strings.Split(stderr, "\n"), func(s string) bool { return s == "" })
			if code != 0 || out != "ok\n" || len(lines) != 1 || !strings.Contains(lines[0], "telemetry cannot be sent to 127.0.0.1:") {
				t.Errorf("%d %q %q", code, out, stderr)
			}
		})
	}
}

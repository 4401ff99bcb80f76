package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// modelServer is a server of models on loopback that answers what is asked
// beside the requests as its table says, and each request with "hello".
type modelServer struct {
	wants string // the key
	*httptest.Server
	beside  map[string]string // by method and path
	usage   int               // tokens that it says it read; 0: it does not say
	refuses string            // the body of a refusal, for requests longer than most bytes
	most    int
	until   func() bool // a reply that has begun ends once this holds
	hangs   bool        // what is asked beside the requests has no answer
	calls   bool        // a reply to words calls a tool

	mu       sync.Mutex // guards the fields below
	asked    []string
	early    bool     // something was asked before the first request
	requests []string // bodies
}

func serveModels(t *testing.T, s *modelServer) *modelServer {
	t.Helper()
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if s.wants != "" && r.Header.Get("Authorization") != "Bearer "+s.wants {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":{"message":"Incorrect API key provided"}}`)
			return
		}
		if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
			s.mu.Lock()
			s.asked = append(s.asked, r.Method+" "+r.URL.Path)
			s.early = s.early || len(s.requests) == 0
			s.mu.Unlock()
			if s.hangs {
				<-r.Context().Done()
				return
			}
			answer, ok := s.beside[r.Method+" "+r.URL.Path]
			if !ok {
				http.NotFound(w, r)
				return
			}
			_, _ = io.WriteString(w, answer)
			return
		}
		s.mu.Lock()
		s.requests = append(s.requests, string(body))
		s.mu.Unlock()
		if s.most > 0 && len(body) > s.most {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, s.refuses)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		usage := ""
		if s.usage > 0 {
			usage = fmt.Sprintf(`,"usage":{"prompt_tokens":%d,"completion_tokens":2}`, s.usage)
		}
		said := `{"content":"hello"}`
		if s.calls && !strings.Contains(string(body), `"role":"tool"`) {
			said = `{"tool_calls":[{"index":0,"id":"c1","function":{"name":"list","arguments":"{\"path\":\".\"}"}}]}`
		}
		_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":%s}]}\n\n", said)
		_ = http.NewResponseController(w).Flush()
		for i := 0; s.until != nil && !s.until() && i < 10_000; i++ { // a failing test ends, too
			time.Sleep(time.Millisecond)
		}
		_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]%s}\n\ndata: [DONE]\n\n", usage)
	}))
	t.Cleanup(s.Close)
	return s
}

// at is the program with that server.
func (s *modelServer) at(t *testing.T) *program {
	t.Helper()
	p := newProgram(t)
	p.env = append(p.env, "CODER_BASE_URL="+s.URL+"/v1", "CODER_MODEL=small", "CODER_TEST_FAST=1")
	return p
}

// heard is what is remembered of the window of a model.
type heard struct {
	Tokens int
	Seen   time.Time
	By     string
}

func windowsFile(p *program) string {
	return filepath.Join(filepath.Dir(p.self), ".coder", "windows.json")
}

// remember is as if an earlier session had heard that the window has so many tokens.
func (s *modelServer) remember(t *testing.T, p *program, window int, seen time.Time) {
	t.Helper()
	text := fmt.Sprintf(`{"%s/v1 small": {"tokens": %d, "seen": %q}}`, s.URL, window, seen.Format(time.RFC3339))
	err := os.MkdirAll(filepath.Dir(windowsFile(p)), 0o700)
	if err = errors.Join(err, os.WriteFile(windowsFile(p), []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func (s *modelServer) remembered(p *program) (h heard, ok bool) {
	text, _ := os.ReadFile(windowsFile(p))
	var known map[string]heard
	_ = json.Unmarshal(text, &known)
	h, ok = known[s.URL+"/v1 small"]
	return h, ok
}

// besides runs the program and counts what the server was asked meanwhile.
func (s *modelServer) besides(t *testing.T, p *program, args ...string) (asked []string) {
	t.Helper()
	s.mu.Lock()
	s.asked = nil
	s.mu.Unlock()
	if _, stderr, code := p.run(append([]string{"-p"}, args...)...); code != 0 || strings.Contains(stderr, "cut") {
		t.Errorf("%d %s", code, stderr)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

const smallWindow = `{"data":[{"id":"small","owned_by":"llamacpp","meta":{"n_ctx_train":131072,"n_ctx":2048}}]}`

// TestTheWindowIsLearntAndRemembered by the server's own word, and the next process knows.
func TestTheWindowIsLearntAndRemembered(t *testing.T) {
	s := serveModels(t, &modelServer{beside: map[string]string{"GET /v1/models": smallWindow}})
	p := s.at(t)
	s.until = func() bool { _, ok := s.remembered(p); return ok }
	out, stderr, code := p.run("-p", "hi")
	if code != 0 || out != "hello\n" || stderr != "" {
		t.Fatalf("%d %q %s", code, out, stderr)
	}
	if h, _ := s.remembered(p); h.Tokens != 2048 {
		t.Errorf("%v is remembered", h)
	}
	out, _, _ = p.run("-p", "/status")
	if !strings.Contains(out, " of 2048 tokens") {
		t.Errorf("%s", out)
	}
	// What the server says now counts, whatever it said the last time.
	s.beside["GET /v1/models"] = strings.Replace(smallWindow, "2048", "65536", 1)
	if _, stderr, code := p.run("-p", "--config", p.file("wide.json", `{"runtime": {"context_token_limit": 9}, "compaction": {"auto": false}}`), "hi"); code != 54 || !strings.Contains(stderr, "a window of about 9 tokens is too small") {
		t.Errorf("%d %s", code, stderr)
	}
	s.until = func() bool { h, _ := s.remembered(p); return h.Tokens == 65536 }
	for _, text := range []string{"{", `{"` + s.URL + `/v1 small": -4}`, `{"` + s.URL + `/v1 small": 40000}`, `[]`, ""} {
		if err := os.WriteFile(windowsFile(p), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, stderr, code := p.run("-p", "hi"); code != 0 || out != "hello\n" {
			t.Errorf("with %q: %d %q %s", text, code, out, stderr)
		}
	}
	if info, err := os.Stat(windowsFile(p)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// TestAServerIsAskedForItsWindowOnce has servers that say nothing, or never answer, and
// turns of two requests.
func TestAServerIsAskedForItsWindowOnce(t *testing.T) {
	for name, hangs := range map[string]bool{"says nothing": false, "never answers": true} {
		t.Run(name, func(t *testing.T) {
			s := serveModels(t, &modelServer{hangs: hangs, calls: true})
			p := s.at(t)
			round := 5
			isOver := func() bool { h, ok := s.remembered(p); return ok && time.Since(h.Seen) < 20*time.Hour }
			if hangs {
				round = 1 // the rest is cancelled
				isOver = func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.asked) > 0 }
			}
			s.until = isOver
			if asked := s.besides(t, p, "hi"); len(asked) != round || s.early || len(s.requests) != 2 {
				t.Errorf("the first session asked %q beside %d requests, early: %v", asked, len(s.requests), s.early)
			}
			if h, ok := s.remembered(p); !ok || h.Tokens != 0 || h.Seen.IsZero() {
				t.Errorf("%v is remembered", h)
			}
			s.until = nil
			if asked := s.besides(t, p, "hi"); len(asked) != 0 {
				t.Errorf("the second session asked %q", asked)
			}
			s.remember(t, p, 0, time.Now().Add(-25*time.Hour))
			s.until = isOver
			if asked := s.besides(t, p, "hi"); len(asked) != round {
				t.Errorf("a day later a session asked %q", asked)
			}
		})
	}
}

// TestATightWindowIsAskedForAgain since the person may have raised it.
func TestATightWindowIsAskedForAgain(t *testing.T) {
	large := strings.Replace(smallWindow, "2048", "65536", 1)
	s := serveModels(t, &modelServer{beside: map[string]string{"GET /v1/models": large}})
	p := s.at(t)
	for window, want := range map[int]int{1700: 65536, 40000: 40000} {
		s.remember(t, p, window, time.Now())
		s.until = func() bool { h, _ := s.remembered(p); return h.Tokens == want }
		if asked := s.besides(t, p, "hi"); len(asked) > 0 != (want != window) {
			t.Errorf("in a window of %d tokens the server was asked %q", window, asked)
		}
	}
}

// TestARefusalWithoutAFigureAsksAgain where the server says a request is too long, and not how
// much it takes.
func TestARefusalWithoutAFigureAsksAgain(t *testing.T) {
	s := serveModels(t, &modelServer{
		beside: map[string]string{"GET /v1/models": smallWindow}, most: 100,
		refuses: `{"error":{"message":"the prompt is too long","code":"context_length_exceeded"}}`,
	})
	p := s.at(t)
	s.remember(t, p, 0, time.Now())
	for range 20 { // a session may end before the answer
		if _, stderr, code := p.run("-p", "hi"); code != 54 {
			t.Errorf("%d %s", code, stderr)
		}
		if h, _ := s.remembered(p); h.Tokens == 2048 {
			return
		}
	}
	t.Errorf("asked %q", s.asked)
}

// TestACutRequestIsTold where the server counts far fewer tokens than were sent.
func TestACutRequestIsTold(t *testing.T) {
	for name, tt := range map[string]struct {
		usage int
		env   string
		want  string
	}{
		"cut":         {4096, "", "the server read 4096 of about"},
		"cut, ollama": {4096, "OLLAMA_HOST", "OLLAMA_CONTEXT_LENGTH"},
		"read whole":  {9000, "", ""},
		"no count":    {0, "", ""},
		"not tokens":  {12, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveModels(t, &modelServer{usage: tt.usage})
			p := s.at(t)
			if tt.env != "" {
				p.env = append(p.env, tt.env+"="+s.URL)
			}
			long := p.file("long.txt", strings.Repeat("some words of a long file\n", 600))
			stdin := func() string { text, _ := os.ReadFile(long); return string(text) }
			out, stderr, code := p.run("-p", "hi "+stdin())
			if code != 0 || out != "hello\n" {
				t.Fatalf("%d %q %s", code, out, stderr)
			}
			if tt.want == "" && strings.Contains(stderr, "cut off") || !strings.Contains(stderr, tt.want) {
				t.Errorf("%s", stderr)
			}
		})
	}
}

// TestARefusalTellsTheWindow where the server does not say otherwise.
func TestARefusalTellsTheWindow(t *testing.T) {
	for name, refusal := range map[string]string{
		"llama.cpp": `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_prompt_tokens":9999,"n_ctx":1024}}`,
		"vLLM":      `{"object":"error","message":"This model's maximum context length is 1024 tokens. However, you requested 9999 tokens in the messages.","code":400}`,
		"LM Studio": `{"error":"Trying to keep the first 9999 tokens when context the overflows. However, the model is loaded with context length of only 1024 tokens"}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := serveModels(t, &modelServer{most: 100, refuses: refusal})
			p := s.at(t)
			_, stderr, code := p.run("-p", "hi")
			if code != 54 || !strings.Contains(stderr, "a window of about 1024 tokens is too small") || !strings.Contains(stderr, "larger window") || strings.Contains(stderr, "start a new session") {
				t.Errorf("%d %s", code, stderr)
			}
			if h, _ := s.remembered(p); h.Tokens != 1024 {
				t.Errorf("%v is remembered", h)
			}
		})
	}
}

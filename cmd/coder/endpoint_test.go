package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// modelServer is a server of models on loopback that answers what is asked
// beside the requests as its table says, and each request with "hello".
type modelServer struct {
	*httptest.Server
	beside  map[string]string // by method and path
	usage   int               // tokens that it says it read; 0: it does not say
	refuses string            // the body of a refusal, for requests longer than most bytes
	most    int
	wait    bool // a reply comes once something was asked beside it

	mu       sync.Mutex // guards the fields below
	asked    []string
	requests []string // bodies
	answered chan struct{}
}

func serveModels(t *testing.T, s *modelServer) *modelServer {
	t.Helper()
	s.answered = make(chan struct{}, 1)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
			s.mu.Lock()
			s.asked = append(s.asked, r.Method+" "+r.URL.Path)
			s.mu.Unlock()
			answer, ok := s.beside[r.Method+" "+r.URL.Path]
			if !ok {
				http.NotFound(w, r)
				return
			}
			_, _ = io.WriteString(w, answer)
			select {
			case s.answered <- struct{}{}:
			default:
			}
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
		if s.wait {
			select {
			case <-s.answered:
			case <-r.Context().Done():
				return
			}
		}
		w.Header().Set("Content-Type", "text/event-stream")
		usage := ""
		if s.usage > 0 {
			usage = fmt.Sprintf(`,"usage":{"prompt_tokens":%d,"completion_tokens":2}`, s.usage)
		}
		_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":\"hello\"}}]}\n\ndata: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]%s}\n\ndata: [DONE]\n\n", usage)
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

func (s *modelServer) remembered(t *testing.T, p *program) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(filepath.Dir(p.self), ".coder", "windows.json"))
	if err != nil {
		t.Fatal(err)
	}
	var known map[string]int
	if err := json.Unmarshal(text, &known); err != nil {
		t.Fatal(err)
	}
	return known[s.URL+"/v1 small"]
}

const smallWindow = `{"data":[{"id":"small","owned_by":"llamacpp","meta":{"n_ctx_train":131072,"n_ctx":2048}}]}`

// TestTheWindowIsLearntAndRemembered by the server's own word, before a request
// that is longer is sent, and the next process knows.
func TestTheWindowIsLearntAndRemembered(t *testing.T) {
	s := serveModels(t, &modelServer{beside: map[string]string{"GET /v1/models": smallWindow}, wait: true})
	p := s.at(t)
	out, stderr, code := p.run("-p", "hi")
	if code != 0 || out != "hello\n" || stderr != "" {
		t.Fatalf("%d %q %s", code, out, stderr)
	}
	if n := s.remembered(t, p); n != 2048 {
		t.Errorf("%d is remembered", n)
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
	file := filepath.Join(filepath.Dir(p.self), ".coder", "windows.json")
	for _, text := range []string{"{", `{"` + s.URL + `/v1 small": -4}`, `[]`, ""} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, stderr, code := p.run("-p", "hi"); code != 0 || out != "hello\n" || s.remembered(t, p) != 65536 {
			t.Errorf("with %q: %d %q %s", text, code, out, stderr)
		}
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// TestACutRequestIsTold where the server counts far fewer tokens than were sent.
func TestACutRequestIsTold(t *testing.T) {
	for name, tt := range map[string]struct {
		usage int
		env   string
		want  string
	}{
		"cut":         {4096, "", "the server read 4096 tokens of a request that has about"},
		"cut, ollama": {4096, "OLLAMA_HOST", "Ollama: start it with OLLAMA_CONTEXT_LENGTH=32768, or set num_ctx in a Modelfile"},
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
			if n := s.remembered(t, p); n != 1024 {
				t.Errorf("%d is remembered", n)
			}
		})
	}
}

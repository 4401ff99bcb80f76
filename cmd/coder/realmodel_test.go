package main

import (
	"bytes"
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

// realServer is the address of a real llama-server, given by whoever runs these
// tests: make real-model URL=…. Others have none, and skip.
func realServer(t *testing.T) string {
	t.Helper()
	url := strings.TrimRight(os.Getenv("CODER_REAL_MODEL"), "/")
	if url == "" {
		t.Skip("no real server was named: make real-model URL=http://127.0.0.1:PORT")
	}
	return url
}

// evaluated is what a real server made of one request.
type evaluated struct {
	bytes, messages, tools        int
	prompt, cached, anew, refused int
}

// evaluator lets a real server evaluate each request, to the last token of it,
// and answers with a script: tokens, template, limits and cache are real, what
// the model does is chosen.
type evaluator struct {
	upstream string

	mu      sync.Mutex
	replies []string // "say TEXT", "call TOOL {JSON}"; the last is repeated
	seen    []evaluated
}

func (e *evaluator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		e.pass(w, r, body)
		return
	}
	var asked map[string]json.RawMessage
	var counts struct {
		Messages, Tools []json.RawMessage
		Model           string
	}
	if json.Unmarshal(body, &asked) != nil || json.Unmarshal(body, &counts) != nil {
		http.Error(w, "not JSON", http.StatusBadRequest)
		return
	}
	for _, name := range []string{"stream_options", "return_progress"} {
		delete(asked, name)
	}
	asked["stream"], asked["max_tokens"] = json.RawMessage("false"), json.RawMessage("1")
	real, _ := json.Marshal(asked)
	res, err := http.Post(e.upstream+r.URL.Path, "application/json", bytes.NewReader(real))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	one := evaluated{bytes: len(body), messages: len(counts.Messages), tools: len(counts.Tools)}
	var got struct {
		Usage struct {
			Prompt int `json:"prompt_tokens"`
		}
		Timings struct {
			Cached int `json:"cache_n"`
			Anew   int `json:"prompt_n"`
		}
	}
	if res.StatusCode != http.StatusOK || json.Unmarshal(text, &got) != nil {
		one.refused = res.StatusCode
	}
	one.prompt, one.cached, one.anew = got.Usage.Prompt, got.Timings.Cached, got.Timings.Anew
	e.mu.Lock()
	e.seen = append(e.seen, one)
	reply := "say fine"
	if isTurn := bytes.Contains(body, []byte("You are coder")); isTurn && len(e.replies) > 0 { // a summary is asked for otherwise
		if reply = e.replies[0]; len(e.replies) > 1 {
			e.replies = e.replies[1:]
		}
	}
	n := len(e.seen)
	e.mu.Unlock()
	if one.refused != 0 {
		w.WriteHeader(res.StatusCode)
		_, _ = w.Write(text)
		return
	}
	delta, end := map[string]any{"role": "assistant"}, "stop"
	switch verb, rest, _ := strings.Cut(reply, " "); {
	case verb == "call" && one.tools > 0:
		name, args, _ := strings.Cut(rest, " ")
		delta["tool_calls"] = []any{map[string]any{"index": 0, "id": fmt.Sprintf("call_%d", n), "type": "function", "function": map[string]string{"name": name, "arguments": args}}}
		end = "tool_calls"
	case verb == "call": // as models write it that have no other way
		name, args, _ := strings.Cut(rest, " ")
		delta["content"] = fmt.Sprintf("<tool_call>{\"name\": %q, \"arguments\": %s}</tool_call>", name, args)
	default:
		delta["content"] = rest
	}
	w.Header().Set("Content-Type", "text/event-stream")
	usage := map[string]any{"prompt_tokens": one.prompt, "completion_tokens": 20, "prompt_tokens_details": map[string]int{"cached_tokens": one.cached}}
	for _, chunk := range []map[string]any{
		{"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": nil}}},
		{"choices": []any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": end}}},
		{"choices": []any{}, "usage": usage},
	} {
		chunk["id"], chunk["object"], chunk["model"] = "x", "chat.completion.chunk", counts.Model
		line, _ := json.Marshal(chunk)
		fmt.Fprintf(w, "data: %s\n\n", line)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// pass lets the real server answer what is no turn: what it is and has.
func (e *evaluator) pass(w http.ResponseWriter, r *http.Request, body []byte) {
	req, err := http.NewRequestWithContext(r.Context(), r.Method, e.upstream+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	req.Header.Set("Content-Type", r.Header.Get("Content-Type"))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer res.Body.Close()
	w.Header().Set("Content-Type", res.Header.Get("Content-Type"))
	w.WriteHeader(res.StatusCode)
	_, _ = io.Copy(w, res.Body)
}

// window is how many tokens the server can take.
func window(t *testing.T, url string) int {
	t.Helper()
	res, err := http.Get(url + "/props")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var props struct {
		Settings struct {
			Context int `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}
	if err := json.NewDecoder(res.Body).Decode(&props); err != nil || props.Settings.Context == 0 {
		t.Fatalf("/props: %v, %+v", err, props)
	}
	return props.Settings.Context
}

// settings names a server in the program's home.
func (p *program) settings(provider map[string]any) {
	p.t.Helper()
	dir := filepath.Join(filepath.Dir(p.self), ".coder")
	text, err := json.Marshal(map[string]any{"provider": provider})
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "config.json"), text, 0o600)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// Twenty turns with large results, in both ways to call tools: no request is longer
// than the window, none is refused, and every turn ends well.
func TestRealModelWindow(t *testing.T) {
	url := realServer(t)
	limit := window(t, url)
	for _, mode := range []string{"native", "xml"} {
		t.Run(fmt.Sprintf("%s, %d tokens", mode, limit), func(t *testing.T) {
			e := &evaluator{upstream: url}
			server := httptest.NewServer(e)
			defer server.Close()
			p := newProgram(t)
			p.settings(map[string]any{"base_url": server.URL + "/v1", "api_key": "none", "model": "tiny", "tool_mode": mode})
			var long strings.Builder
			for i := range 400 {
				fmt.Fprintf(&long, "func Step%d(ctx context.Context, in Input) (Output, error) { return do(ctx, in.Part(%d)) }\n", i, i)
			}
			p.file("long.go", long.String())
			p.file("short.txt", "a line\n")
			refused := 0
			for turn := range 20 {
				e.mu.Lock()
				first := len(e.seen)
				e.replies = [][]string{
					{`call read {"path": "short.txt"}`, "say I have read it."},
					{`call read {"path": "long.go"}`, "say That is long."},
					{`call grep {"pattern": "Step1"}`, `call bash {"command": "seq 1 3000"}`, "say Done."},
					{"say Nothing to do. " + strings.Repeat("Words that fill the window. ", 60)},
				}[turn%4]
				e.mu.Unlock()
				args := []string{"-p", fmt.Sprintf("turn %d: look at the files and tell me what you see", turn)}
				if turn > 0 {
					args = append(args, "-c")
				}
				stdout, stderr, code := p.run(args...)
				if code != 0 && code != 30 { // a command may be refused: nobody is there to be asked
					t.Fatalf("turn %d ends with %d:\n%s\n%s", turn, code, stdout, stderr)
				}
				for _, one := range e.seen[first:] {
					t.Logf("turn %2d: %6d bytes, %2d messages, %2d tools, %5d tokens, %5d cached, %5d anew", turn, one.bytes, one.messages, one.tools, one.prompt, one.cached, one.anew)
					if one.refused != 0 {
						refused++
					}
					if one.prompt > limit {
						t.Errorf("turn %d: a request of %d tokens; the window has %d", turn, one.prompt, limit)
					}
				}
			}
			// What tokens text has can only be guessed before the server has counted some: the first that is dense may
			// be refused, once, and is sent again shorter.
			if refused > 1 {
				t.Errorf("%d requests were refused", refused)
			}
		})
	}
}

// The server speaks three of our wires.
func TestRealModelWires(t *testing.T) {
	url := realServer(t)
	for kind, base := range map[string]string{"openai": "/v1", "responses": "/v1", "anthropic": ""} {
		t.Run(kind, func(t *testing.T) {
			p := newProgram(t)
			p.settings(map[string]any{"kind": kind, "base_url": url + base, "api_key": "none", "model": "tiny", "max_output": 40})
			stdout, stderr, code := p.run("-p", "say hello", "--output-format", "json", "--mode", "plan")
			var out struct {
				Usage struct {
					Input int `json:"input_tokens"`
				} `json:"usage"`
			}
			if code != 0 && code != 30 || json.Unmarshal([]byte(stdout), &out) != nil || out.Usage.Input == 0 {
				t.Errorf("exit code %d:\n%s\n%s", code, stdout, stderr)
			}
		})
	}
}

// A model that can edits a file, within three tries.
func TestRealModelEdits(t *testing.T) {
	url := realServer(t)
	if os.Getenv("CODER_REAL_MODEL_EDITS") == "" {
		t.Skip("the model was not said to be one that can edit: make real-model URL=… EDITS=1")
	}
	var last string
	for try := range 3 {
		p := newProgram(t)
		p.settings(map[string]any{"base_url": url + "/v1", "api_key": "none", "model": "1.5b", "temperature": 0.1, "max_output": 400, "idle_timeout_ms": 0})
		p.file("greet.txt", "Hello, World\n")
		stdout, stderr, code := p.run("-p", "--mode", "auto-edit", "Change the word World to Universe in the file greet.txt")
		text, err := os.ReadFile(filepath.Join(p.ws, "greet.txt"))
		if err == nil && strings.Contains(string(text), "Universe") {
			t.Logf("try %d: %q", try+1, text)
			return
		}
		last = fmt.Sprintf("exit code %d, the file holds %q\n%s\n%s", code, text, stdout, stderr)
		t.Logf("try %d: %s", try+1, last)
	}
	t.Error("the file was not edited in three tries: " + last)
}

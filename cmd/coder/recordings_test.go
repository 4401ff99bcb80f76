package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"coder/internal/core/chat"
	"coder/internal/core/event"
)

// recording is one exchange with a real provider and what a correct client
// makes of it.
type recording struct {
	Name     string
	Wire     string
	Statuses []int
	Text     string `json:"expected_final_text"`
	Calls    []struct {
		Name      string
		Arguments json.RawMessage
	} `json:"expected_tool_calls"`
	EndsOpen bool `json:"ends_open"`
	Errors   int  `json:"max_consecutive_errors"`
}

// findRecordings looks for the recordings beside this project. They are not
// part of it: where they are missing there is nothing to test.
func findRecordings(t *testing.T) (dir string, rs []recording) {
	t.Helper()
	at, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; at != filepath.Dir(at); at = filepath.Dir(at) {
		dir = filepath.Join(at, "shared", "recordings")
		text, err := os.ReadFile(filepath.Join(dir, "index.json"))
		if err != nil {
			continue
		}
		if err := json.Unmarshal(text, &rs); err != nil {
			t.Fatal(err)
		}
		return dir, rs
	}
	t.Skip("no recordings of real providers beside this project")
	return "", nil
}

// TestRecordingsOfRealProviders plays what real providers sent to the whole
// program and wants the recorded answer and calls.
func TestRecordingsOfRealProviders(t *testing.T) {
	dir, rs := findRecordings(t)
	played := 0
	for _, r := range rs {
		if r.Wire != "chat" {
			continue
		}
		played++
		t.Run(r.Name, func(t *testing.T) {
			t.Parallel()
			playRecording(t, filepath.Join(dir, "chat", r.Name), r)
		})
	}
	if played == 0 {
		t.Error("no recording was played")
	}
}

func playRecording(t *testing.T, dir string, r recording) {
	server := replay(t, dir, len(r.Statuses))
	p := newProgram(t)
	p.file("conf.json", fmt.Sprintf(`{"provider": {"max_retries": %d}}`, max(r.Errors, 1)))
	p.env = append(p.env, "CODER_BASE_URL="+server.URL+"/v1", "CODER_API_KEY=k", "CODER_MODEL=m", "CODER_TEST_FAST=1")
	out, stderr, code := p.run("-p", "--auto-approve", "--session-id", "s1", "--config", "conf.json", "go")
	if !r.EndsOpen && (code != 0 || strings.TrimSpace(out) != strings.TrimSpace(r.Text)) {
		t.Errorf("answer %q, code %d, want %q\n%s", out, code, r.Text, stderr)
	}
	recs, err := readSession(p.ws, "s1")
	if err != nil {
		t.Fatal(err)
	}
	var calls []chat.ToolCall
	for _, rec := range recs {
		if m, ok := rec.Event.(event.MessageAdded); ok {
			calls = append(calls, m.Message.Calls()...)
		}
	}
	if len(calls) != len(r.Calls) {
		t.Fatalf("%d calls, want %d", len(calls), len(r.Calls))
	}
	for i, c := range calls {
		if c.Name != r.Calls[i].Name || !sameJSON(c.Args, r.Calls[i].Arguments) {
			t.Errorf("call %d is %s %s, want %s %s", i, c.Name, c.Args, r.Calls[i].Name, r.Calls[i].Arguments)
		}
	}
}

// replay serves the recorded responses in order, whatever is asked.
func replay(t *testing.T, dir string, n int) *httptest.Server {
	t.Helper()
	var served atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i := int(served.Add(1)) - 1
		if i >= n {
			http.Error(w, "the recording is over", http.StatusTeapot)
			return
		}
		resp, err := readRecorded(filepath.Join(dir, fmt.Sprintf("%03d.http", i)))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", resp.contentType)
		w.WriteHeader(resp.status)
		_, _ = w.Write(resp.body)
	}))
	t.Cleanup(s.Close)
	return s
}

type recorded struct {
	status      int
	contentType string
	body        []byte
}

func readRecorded(path string) (recorded, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return recorded{}, err
	}
	in := bufio.NewReader(bytes.NewReader(text))
	resp := recorded{}
	for first := true; ; first = false {
		line, err := in.ReadString('\n')
		if err != nil {
			return recorded{}, err
		}
		line = strings.TrimRight(line, "\r\n")
		switch name, value, _ := strings.Cut(line, ":"); {
		case line == "":
			resp.body, err = io.ReadAll(in)
			return resp, err
		case first:
			if _, err := fmt.Sscanf(line, "HTTP/1.1 %d", &resp.status); err != nil {
				return recorded{}, fmt.Errorf("%s: %q: %w", path, line, err)
			}
		case strings.EqualFold(name, "content-type"):
			resp.contentType = strings.TrimSpace(value)
		}
	}
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && fmt.Sprint(x) == fmt.Sprint(y)
}

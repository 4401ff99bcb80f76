package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"coder/internal/core/chat"
	"coder/internal/model/provider"
)

// recording is what a correct client makes of a recorded exchange.
type recording struct {
	Name      string `json:"name"`
	Wire      string `json:"wire"`
	Steps     int    `json:"steps"`
	FinalText string `json:"expected_final_text"`
	Calls     []struct {
		ID, Name  string
		Arguments any    `json:"arguments"`
		Raw       string `json:"arguments_raw"`
	} `json:"expected_tool_calls"`
	ReasoningPrefix string `json:"expected_reasoning_prefix"`
	EndsOpen        bool   `json:"ends_open"`

	responses []response
}

type response struct {
	status int
	kind   string
	body   []byte
}

// recordings reads the recorded exchanges, which lie beside the module.
func recordings(t testing.TB) []recording {
	t.Helper()
	root := findRecordings()
	if root == "" {
		t.Skip("no shared/recordings folder beside the module")
	}
	index, err := os.ReadFile(filepath.Join(root, "index.json"))
	if err != nil {
		t.Skip("no index of recordings: ", err)
	}
	var all, chat []recording
	if err := json.Unmarshal(index, &all); err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if r.Wire == "chat" {
			r.responses = readResponses(t, filepath.Join(root, r.Wire, r.Name), r.Steps)
			chat = append(chat, r)
		}
	}
	return chat
}

func findRecordings() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for {
		try := filepath.Join(dir, "shared", "recordings")
		if info, err := os.Stat(try); err == nil && info.IsDir() {
			return try
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}

func readResponses(t testing.TB, dir string, n int) []response {
	t.Helper()
	var rs []response
	for i := range n {
		raw, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("%03d.http", i)))
		if err != nil {
			t.Fatal(err)
		}
		head, body, ok := bytes.Cut(raw, []byte("\r\n\r\n"))
		if !ok {
			head, body, ok = bytes.Cut(raw, []byte("\n\n"))
		}
		lines := strings.Split(strings.ReplaceAll(string(head), "\r", ""), "\n")
		if !ok || len(lines) < 2 {
			t.Fatalf("%s %d: not a response", dir, i)
		}
		status, err := strconv.Atoi(strings.Fields(lines[0])[1])
		if err != nil {
			t.Fatal(err)
		}
		_, kind, _ := strings.Cut(lines[1], ": ")
		rs = append(rs, response{status, kind, body})
	}
	return rs
}

// replay serves the responses in order, each in writes of piece bytes; zero
// means in one.
func replay(t testing.TB, rs []response, piece int) string {
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		i := int(n.Add(1)) - 1
		if i >= len(rs) {
			http.Error(w, "asked once too often", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", rs[i].kind)
		w.WriteHeader(rs[i].status)
		body := rs[i].body
		for size := piece; size > 0 && len(body) > size; body = body[size:] {
			w.Write(body[:size])
			http.NewResponseController(w).Flush()
		}
		w.Write(body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestRecordings(t *testing.T) {
	for _, rec := range recordings(t) {
		t.Run(rec.Name, func(t *testing.T) {
			for _, piece := range []int{0, 1021} {
				c := client(t, Options{BaseURL: replay(t, rec.responses, piece), SendReasoning: true})
				checkRecording(t, rec, talk(t, rec, c))
			}
		})
	}
}

// talk asks until the recording is used up and returns the replies. Every call
// is answered by an error, as an agent without the tools would.
func talk(t *testing.T, rec recording, c *Client) []provider.Reply {
	t.Helper()
	p := provider.Retry(c, provider.Backoff{Retries: 20, Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }})
	req := hello()
	var replies []provider.Reply
	for used := 0; used < len(rec.responses); used++ {
		r, err := provider.Collect(p.Stream(t.Context(), req), func(d provider.Delta) error {
			if _, again := d.(provider.Restart); again {
				used++
			}
			return nil
		})
		if err != nil {
			t.Fatalf("response %d: %v", used, err)
		}
		replies = append(replies, r)
		req.Messages = append(req.Messages, r.Message)
		for _, call := range r.Message.Calls() {
			req.Messages = append(req.Messages, chat.Answer(chat.ToolResult{CallID: call.ID, Text: "no such tool", Failed: true}))
		}
	}
	return replies
}

func checkRecording(t *testing.T, rec recording, replies []provider.Reply) {
	t.Helper()
	var calls []chat.ToolCall
	var thoughts []string
	for _, r := range replies {
		calls = append(calls, r.Message.Calls()...)
		thoughts = append(thoughts, r.Message.Reasoning())
		if len(r.Message.Calls()) > 0 != (r.Stop == provider.StopTools) || r.Usage == nil {
			t.Errorf("stop %q with %d calls, usage %v", r.Stop, len(r.Message.Calls()), r.Usage)
		}
	}
	if got := replies[len(replies)-1].Message.Text(); !rec.EndsOpen && got != rec.FinalText {
		t.Errorf("final text is %q, want %q", got, rec.FinalText)
	}
	if !strings.HasPrefix(strings.Join(thoughts, ""), rec.ReasoningPrefix) {
		t.Errorf("reasoning is %.100q, want it to begin with %.100q", thoughts, rec.ReasoningPrefix)
	}
	if len(calls) != len(rec.Calls) {
		t.Fatalf("%d calls, want %d", len(calls), len(rec.Calls))
	}
	for i, want := range rec.Calls {
		var args any
		if err := json.Unmarshal(calls[i].Args, &args); err != nil {
			t.Error(err)
		}
		if calls[i].ID != want.ID || calls[i].Name != want.Name || !reflect.DeepEqual(args, want.Arguments) {
			t.Errorf("call %d is %s %s %s, want %+v", i, calls[i].ID, calls[i].Name, calls[i].Args, want)
		}
	}
}

// cutReader gives out a body in pieces of one size and ends with an error.
type cutReader struct {
	rest []byte
	size int
	err  error
}

func (c *cutReader) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		return 0, c.err
	}
	n := copy(p, c.rest[:min(len(c.rest), max(c.size, 1))])
	c.rest = c.rest[n:]
	return n, nil
}

// read reads a body without a network.
func read(body io.Reader) (provider.Reply, error) {
	return provider.Collect(func(yield func(provider.Delta, error) bool) {
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		x := exchange{client: New(Options{}), caller: context.Background(), ctx: ctx, patience: newPatience(0, 0, cancel)}
		defer x.patience.stop()
		err := x.receive(&http.Response{Body: io.NopCloser(body)}, func(d provider.Delta) bool { return yield(d, nil) })
		if err != nil && err != errLeft {
			yield(nil, err)
		}
	}, func(provider.Delta) error { return nil })
}

// However the network cuts a recording, the reply is the same.
func TestRecordingsInPieces(t *testing.T) {
	for _, rec := range recordings(t) {
		for i, resp := range rec.responses {
			want, err := read(bytes.NewReader(resp.body))
			if resp.status != http.StatusOK {
				continue
			}
			if err != nil {
				t.Fatalf("%s %d: %v", rec.Name, i, err)
			}
			for _, size := range []int{1, 2, 3, 7, 13, 64, 1021, 4099} {
				got, err := read(&cutReader{resp.body, size, io.EOF})
				if err != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("%s %d in pieces of %d: %v, %+v", rec.Name, i, size, err, got)
				}
			}
		}
	}
}

// A recording that breaks off gives an error and no call, or the whole reply
// if nothing of importance was missing.
func TestRecordingsCutShort(t *testing.T) {
	const most = 40 // places to cut one response at
	ends := []error{io.EOF, io.ErrUnexpectedEOF, errors.New("connection reset")}
	for _, rec := range recordings(t) {
		for i, resp := range rec.responses {
			whole, err := read(bytes.NewReader(resp.body))
			if err != nil || resp.status != http.StatusOK {
				continue
			}
			step := max(1, len(resp.body)/most) | 1
			for n, at := 0, 0; at < len(resp.body); n, at = n+1, at+step {
				end := ends[n%len(ends)]
				got, err := read(&cutReader{resp.body[:at], 512, end})
				checkCut(t, fmt.Sprintf("%s %d cut at %d with %v", rec.Name, i, at, end), whole, got, err)
			}
		}
	}
}

func checkCut(t *testing.T, where string, whole, got provider.Reply, err error) {
	t.Helper()
	if !strings.HasPrefix(whole.Message.Text(), got.Message.Text()) || !strings.HasPrefix(whole.Message.Reasoning(), got.Message.Reasoning()) {
		t.Fatalf("%s: %q is not the beginning of %q", where, got.Message.Text(), whole.Message.Text())
	}
	if err == nil {
		if got.Message.Text() != whole.Message.Text() || !reflect.DeepEqual(got.Message.Calls(), whole.Message.Calls()) {
			t.Fatalf("%s: taken for whole: %+v", where, got)
		}
		return
	}
	var e *provider.Error
	if !errors.As(err, &e) || !e.Retryable {
		t.Fatalf("%s: %v is not to be tried again", where, err)
	}
	if n := len(got.Message.Calls()); n > 0 {
		t.Fatalf("%s: %d calls", where, n)
	}
}

package providertest

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"coder/internal/core/chat"
	"coder/internal/model/provider"
)

// An Exchange is what a provider sent, and what a correct client makes of it.
type Exchange struct {
	Name      string `json:"name"`
	Wire      string `json:"wire"`
	Steps     int    `json:"steps"`
	FinalText string `json:"expected_final_text"`
	Calls     []struct {
		ID, Name  string
		Arguments any `json:"arguments"`
	} `json:"expected_tool_calls"`
	ReasoningPrefix string `json:"expected_reasoning_prefix"`
	EndsOpen        bool   `json:"ends_open"`
	Errors          int    `json:"max_consecutive_errors"` // that come one after the other
	Failure         *struct {
		Status  int
		Message string
	} `json:"expected_error"`

	Responses []Response `json:"-"`
}

// A Response is one of the answers of an exchange, as it was sent.
type Response struct {
	Status      int
	ContentType string
	Body        []byte

	abort bool // the connection goes after the body
}

//go:embed testdata/exchanges
var ours embed.FS

// Exchanges are those of a wire: our own, written by hand, and those of a
// folder of recordings of the same form if CODER_RECORDINGS names one.
func Exchanges(t testing.TB, wire string) []Exchange {
	t.Helper()
	own, err := fs.Sub(ours, "testdata/exchanges")
	if err != nil {
		t.Fatal(err)
	}
	all := exchangesIn(t, own, wire)
	if dir := os.Getenv("CODER_RECORDINGS"); dir != "" {
		all = append(all, exchangesIn(t, os.DirFS(dir), wire)...)
	}
	if len(all) == 0 {
		t.Fatalf("no exchange over %s", wire)
	}
	return all
}

func exchangesIn(t testing.TB, dir fs.FS, wire string) (of []Exchange) {
	t.Helper()
	index, err := fs.ReadFile(dir, "index.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []Exchange
	if err := json.Unmarshal(index, &all); err != nil {
		t.Fatal(err)
	}
	for _, x := range all {
		if x.Wire != wire {
			continue
		}
		for i := range x.Steps {
			raw, err := fs.ReadFile(dir, path.Join(wire, x.Name, fmt.Sprintf("%03d.http", i)))
			if err != nil {
				t.Fatal(err)
			}
			r, err := readResponse(raw)
			if err != nil {
				t.Fatalf("%s %d: %v", x.Name, i, err)
			}
			x.Responses = append(x.Responses, r)
		}
		if x.FinalText != "" {
			x.Failure = nil // it passes
		}
		of = append(of, x)
	}
	return of
}

// readResponse reads a status line, a content type and a body.
func readResponse(raw []byte) (Response, error) {
	head, body, ok := bytes.Cut(raw, []byte("\r\n\r\n"))
	if !ok {
		head, body, ok = bytes.Cut(raw, []byte("\n\n"))
	}
	lines := strings.Split(strings.ReplaceAll(string(head), "\r", ""), "\n")
	words := strings.Fields(lines[0])
	if !ok || len(lines) < 2 || len(words) < 2 {
		return Response{}, fmt.Errorf("not a response: %.80q", raw)
	}
	status, err := strconv.Atoi(words[1])
	_, kind, _ := strings.Cut(lines[1], ": ")
	return Response{Status: status, ContentType: kind, Body: body}, err
}

// TestExchanges plays every exchange of a wire to the provider that open makes
// of a server, in pieces of several sizes and cut at many places.
func TestExchanges(t *testing.T, wire string, open func(t testing.TB, url string) provider.Provider) {
	for _, x := range Exchanges(t, wire) {
		t.Run(x.Name, func(t *testing.T) {
			for _, piece := range []int{0, 13, 1021} {
				x.check(t, x.talk(t, open(t, x.Serve(t, piece))))
			}
			x.cut(t, open)
		})
	}
}

// talk asks until the exchange is used up and returns the replies. Every call
// is answered by an error, as an agent without the tools would.
func (x Exchange) talk(t *testing.T, p provider.Provider) (replies []provider.Reply) {
	t.Helper()
	p = provider.Retry(p, provider.Backoff{Retries: 20, Sleep: func(ctx context.Context,
		_ time.Duration) error {
		return ctx.Err()
	}})
	req := ask()
	for used := 0; used < len(x.Responses); used++ {
		r, err := provider.Collect(p.Stream(t.Context(), req), func(d provider.Delta) error {
			if _, again := d.(provider.Restart); again {
				used++
			}
			return nil
		})
		if x.Failure != nil {
			var e *provider.Error
			if !errors.As(err, &e) || e.Status != x.Failure.Status || !strings.Contains(e.Error(), x.Failure.Message) {
				t.Errorf("the error is %v, want %d %s", err, x.Failure.Status, x.Failure.Message)
			}
			return nil
		}
		if err != nil {
			t.Fatalf("response %d: %v", used, err)
		}
		replies = append(replies, r)
		req.Messages = append(req.Messages, r.Message)
		for _, call := range r.Message.Calls() {
			req.Messages = append(req.Messages, chat.ToolMessage(chat.ToolResult{CallID: call.ID, Text: "no such tool",
				Failed: true}))
		}
	}
	return replies
}

func (x Exchange) check(t *testing.T, replies []provider.Reply) {
	t.Helper()
	if x.Failure != nil {
		return
	}
	var calls []chat.ToolCall
	var thoughts strings.Builder
	for _, r := range replies {
		calls = append(calls, r.Message.Calls()...)
		thoughts.WriteString(r.Message.Reasoning())
		if len(r.Message.Calls()) > 0 != (r.Stop == provider.StopTools) || r.Usage == nil {
			t.Errorf("stop %q with %d calls, usage %v", r.Stop, len(r.Message.Calls()), r.Usage)
		}
	}
	if got := replies[len(replies)-1].Message.Text(); !x.EndsOpen && got != x.FinalText {
		t.Errorf("final text is %q, want %q", got, x.FinalText)
	}
	if !strings.HasPrefix(thoughts.String(), x.ReasoningPrefix) {
		t.Errorf("reasoning is %.100q, want it to begin with %.100q", thoughts.String(), x.ReasoningPrefix)
	}
	if len(calls) != len(x.Calls) {
		t.Fatalf("%d calls, want %d", len(calls), len(x.Calls))
	}
	for i, want := range x.Calls {
		var args any
		if err := json.Unmarshal(calls[i].Args, &args); err != nil {
			t.Error(err)
		}
		if calls[i].ID != want.ID || calls[i].Name != want.Name || !reflect.DeepEqual(args, want.Arguments) {
			t.Errorf("call %d is %s %s %s, want %+v", i, calls[i].ID, calls[i].Name, calls[i].Args, want)
		}
	}
}

// cut plays each reply broken off at many places, by an end that looks regular
// and by a connection that is gone: that is an error and no call, or the whole
// reply if nothing of importance was missing.
func (x Exchange) cut(t *testing.T, open func(t testing.TB, url string) provider.Provider) {
	const most = 16
	for i, resp := range x.Responses {
		if resp.Status != http.StatusOK {
			continue
		}
		once := Exchange{Wire: x.Wire, Responses: []Response{resp}}
		whole, err := provider.Collect(open(t, once.Serve(t, 0)).Stream(t.Context(), ask()), ignore)
		if err != nil {
			continue
		}
		step := max(1, len(resp.Body)/most) | 1
		for n, at := 0, 0; at < len(resp.Body); n, at = n+1, at+step {
			part := resp
			part.Body, part.abort = resp.Body[:at], n%2 == 1
			once.Responses[0] = part
			got, err := provider.Collect(open(t, once.Serve(t, 0)).Stream(t.Context(), ask()), ignore)
			var e *provider.Error
			switch where := fmt.Sprintf("response %d cut at %d", i, at); {
			case !strings.HasPrefix(whole.Message.Text(), got.Message.Text()) ||
				!strings.HasPrefix(whole.Message.Reasoning(), got.Message.Reasoning()):
				t.Fatalf("%s: %q is not the beginning of %q", where, got.Message.Text(), whole.Message.Text())
			case err == nil && (got.Message.Text() != whole.Message.Text() ||
				!reflect.DeepEqual(got.Message.Calls(), whole.Message.Calls())):
				t.Fatalf("%s: taken for whole: %+v", where, got)
			case err != nil && (!errors.As(err, &e) || !e.Retryable):
				t.Fatalf("%s: %v is not to be tried again", where, err)
			case err != nil && len(got.Message.Calls()) > 0:
				t.Fatalf("%s: %d calls", where, len(got.Message.Calls()))
			}
		}
	}
}

// Serve answers the n'th request, which must be one that the vendor would take,
// with the n'th response, whatever it asks, in
// writes of piece bytes; zero means in one. It returns the server's address.
func (x Exchange) Serve(t testing.TB, piece int) string {
	t.Helper()
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// whoever asks beside a request is told nothing
		if r.Method != http.MethodPost || strings.HasSuffix(r.URL.Path, "/api/show") {
			http.NotFound(w, r)
			return
		}
		i := int(asked.Add(1)) - 1
		if i >= len(x.Responses) {
			http.Error(w, "the exchange is over", http.StatusTeapot)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = check(x.Wire, body)
		}
		if err != nil {
			t.Errorf("%v: %s", err, body)
		}
		w.Header().Set("Content-Type", x.Responses[i].ContentType)
		w.WriteHeader(x.Responses[i].Status)
		body = x.Responses[i].Body
		for ; piece > 0 && len(body) > piece; body = body[piece:] {
			_, _ = w.Write(body[:piece])
			_ = http.NewResponseController(w).Flush()
		}
		_, _ = w.Write(body)
		if x.Responses[i].abort {
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"coder/internal/core/chat"
	"coder/internal/model/provider"
	"coder/internal/model/providertest"
	"coder/internal/model/transport"
)

func TestExchanges(t *testing.T) {
	for _, rec := range providertest.Exchanges(t, "chat") {
		t.Run(rec.Name, func(t *testing.T) {
			for _, piece := range []int{0, 1021} {
				c := client(t, transport.Options{BaseURL: rec.Serve(t, piece), SendReasoning: true})
				checkExchange(t, rec, talk(t, rec, c))
			}
		})
	}
}

// talk asks until the recording is used up and returns the replies. Every call
// is answered by an error, as an agent without the tools would.
func talk(t *testing.T, rec providertest.Exchange, c *Client) []provider.Reply {
	t.Helper()
	p := provider.Retry(c, provider.Backoff{Retries: 20, Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }})
	req := hello()
	var replies []provider.Reply
	for used := 0; used < len(rec.Responses); used++ {
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

func checkExchange(t *testing.T, rec providertest.Exchange, replies []provider.Reply) {
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
	return collect(context.Background(), New(transport.Options{BaseURL: "http://nowhere", RoundTripper: answer{body}}))
}

// answer is a server that has this to say.
type answer struct{ body io.Reader }

func (a answer) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(a.body)}, nil
}

// However the network cuts a recording, the reply is the same.
func TestExchangesInPieces(t *testing.T) {
	for _, rec := range providertest.Exchanges(t, "chat") {
		for i, resp := range rec.Responses {
			want, wantErr := read(bytes.NewReader(resp.Body))
			if resp.Status != http.StatusOK {
				continue
			}
			for _, size := range []int{1, 2, 3, 7, 13, 64, 1021, 4099} {
				got, err := read(&cutReader{resp.Body, size, io.EOF})
				if fmt.Sprint(err) != fmt.Sprint(wantErr) || !reflect.DeepEqual(got, want) {
					t.Errorf("%s %d in pieces of %d: %v, %+v; want %v, %+v", rec.Name, i, size, err, got, wantErr, want)
				}
			}
		}
	}
}

// A recording that breaks off gives an error and no call, or the whole reply
// if nothing of importance was missing.
func TestExchangesCutShort(t *testing.T) {
	const most = 40 // places to cut one response at
	ends := []error{io.EOF, io.ErrUnexpectedEOF, errors.New("connection reset")}
	for _, rec := range providertest.Exchanges(t, "chat") {
		for i, resp := range rec.Responses {
			whole, err := read(bytes.NewReader(resp.Body))
			if err != nil || resp.Status != http.StatusOK {
				continue
			}
			step := max(1, len(resp.Body)/most) | 1
			for n, at := 0, 0; at < len(resp.Body); n, at = n+1, at+step {
				end := ends[n%len(ends)]
				got, err := read(&cutReader{resp.Body[:at], 512, end})
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

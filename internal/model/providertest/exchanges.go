package providertest

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
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

	Responses []Response `json:"-"`
}

// A Response is one of the answers of an exchange, as it was sent.
type Response struct {
	Status      int
	ContentType string
	Body        []byte
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
		of = append(of, x)
	}
	if len(of) == 0 {
		t.Fatalf("no exchange over %s", wire)
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
	return Response{status, kind, body}, err
}

// Serve answers the n'th request with the n'th response, whatever it asks, in
// writes of piece bytes; zero means in one. It returns the server's address.
func (x Exchange) Serve(t testing.TB, piece int) string {
	t.Helper()
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i := int(asked.Add(1)) - 1
		if i >= len(x.Responses) {
			http.Error(w, "the exchange is over", http.StatusTeapot)
			return
		}
		w.Header().Set("Content-Type", x.Responses[i].ContentType)
		w.WriteHeader(x.Responses[i].Status)
		body := x.Responses[i].Body
		for ; piece > 0 && len(body) > piece; body = body[piece:] {
			_, _ = w.Write(body[:piece])
			_ = http.NewResponseController(w).Flush()
		}
		_, _ = w.Write(body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

package providertest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"coder/internal/core/chat"
	"coder/internal/model/provider"
)

// TestComplaint has a server refuse any request with a word in it. It must be
// asked again without it, at once and from then on.
func TestComplaint(t *testing.T, wire string, status int, complaint, word string,
	open func(t testing.TB, url string) provider.Provider, said ...chat.Message) {
	t.Helper()
	answer := Exchanges(t, wire)[0].Responses[0]
	var refused atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), word) {
			refused.Add(1)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"error":{"type":"invalid_request_error","message":"`+complaint+`"}}`)
			return
		}
		w.Header().Set("Content-Type", answer.ContentType)
		_, _ = w.Write(answer.Body)
	}))
	t.Cleanup(s.Close)
	p := open(t, s.URL)
	for range 2 {
		req := ask()
		req.Messages = append(req.Messages, said...)
		req.Tools[0].Schema = []byte(`{"type":"object","properties":{"path":{"type":"string","minLength":1}}}`)
		if _, err := provider.Collect(p.Stream(t.Context(), req), ignore); err != nil {
			t.Errorf("%s: %v", complaint, err)
		}
	}
	if n := refused.Load(); n != 1 {
		t.Errorf("%s: refused %d times, want once", complaint, n)
	}
}

// TestWishes holds a wire to how it puts what is wished of a reply: of each
// request every part of want is in the body, and no part of the wire's words
// where nothing is wished.
func TestWishes(t *testing.T, wire string, open func(t testing.TB, url string) provider.Provider, words []string,
	wishes []Wish) {
	t.Helper()
	answer := Exchanges(t, wire)[0].Responses[0]
	var sent string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent = string(body)
		w.Header().Set("Content-Type", answer.ContentType)
		_, _ = w.Write(answer.Body)
	}))
	t.Cleanup(s.Close)
	p := open(t, s.URL)
	for _, w := range append(wishes, Wish{Name: "nothing"}) {
		req := ask()
		if w.Tune != nil {
			w.Tune(&req)
		}
		if _, err := provider.Collect(p.Stream(t.Context(), req), ignore); err != nil {
			t.Errorf("%s: %v", w.Name, err)
		}
		for _, want := range w.Want {
			if !strings.Contains(sent, want) {
				t.Errorf("%s: no %s in %s", w.Name, want, sent)
			}
		}
		for _, word := range words {
			if strings.Contains(sent, word) != strings.Contains(strings.Join(w.Want, " "), word) {
				t.Errorf("%s: %s in %s", w.Name, word, sent)
			}
		}
	}
}

// Wish is what is wished of a reply, and how that is put.
type Wish struct {
	Name string
	Tune func(*provider.Request)
	Want []string
}

// Wishing changes a client so that it always wishes for effort and a temperature.
func Wishing(open func(t testing.TB, url string) provider.Provider) func(t testing.TB, url string) provider.Provider {
	return func(t testing.TB, url string) provider.Provider { return provider.MapRequests(open(t, url), Warm) }
}

// Warm wishes for much effort and a temperature.
func Warm(r *provider.Request) {
	temperature := 0.25
	r.Effort, r.Temperature = "high", &temperature
}

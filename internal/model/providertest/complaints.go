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
func TestComplaint(t *testing.T, wire string, status int, complaint, word string, open func(t testing.TB, url string) provider.Provider, said ...chat.Message) {
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

package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestWhatIsWrongIsSaidInOneSentenceWithoutSecrets(t *testing.T) {
	page := func(status int, kind, body string) string {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}))
		t.Cleanup(web.Close)
		return web.URL
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	tests := []struct{ url, kind, want string }{
		{page(404, "text/html", "<html><b>nothing</b>"), HTTP, "the address answered 404 Not Found; coder mcp get s shows the settings"},
		{page(403, "text/html", "<html><b>nothing</b>"), SSE, "the address answered 403 Forbidden"},
		{page(200, "text/html", "<html><b>welcome</b>"), HTTP, "not an MCP server: the answer was text/html"},
		{page(200, "application/json", `{"jsonrpc":"2.0","id":1,"result":[]}`), HTTP, ""},
		{gone.URL, HTTP, "connection refused"},
		{gone.URL, SSE, "connection refused"},
	}
	for _, tt := range tests {
		h := New(Options{
			Servers: []Server{{Name: "s", Type: tt.kind, URL: strings.Replace(tt.url, "http://", "http://me:pass-word@", 1) + "/mcp?key=very-secret"}},
			Root:    t.TempDir(), Now: time.Now, Warn: func(string) {}, TestOnly: true,
		})
		if h.greetTimeout = time.Minute; tt.want == "" {
			h.greetTimeout = time.Second // nothing it says is an answer to what it was asked
		}
		h.WaitReady(t.Context(), time.Hour)
		why := h.Status()[0].Reason
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		for _, bad := range []string{"very-secret", "pass-word", "calling \"", "Go struct", "<html>"} {
			if why == "" || strings.Contains(why, bad) || !strings.Contains(why, tt.want) {
				t.Errorf("%s %s: it says %q, want %q and no %q", tt.kind, tt.url, why, tt.want, bad)
			}
		}
	}
}

func TestWordsOfALibraryAreNotPassedOn(t *testing.T) {
	p := &peer{Server: Server{Name: "s"}}
	var into struct{ A struct{ B int } }
	shape := json.Unmarshal([]byte(`{"A":[]}`), &into)
	for want, err := range map[string]error{
		"the server closed the connection before answering":                  fmt.Errorf(`calling "tools/call": %w`, io.EOF),
		"the server's answer violates the protocol; its maker must fix that": fmt.Errorf(`calling "tools/call": %w`, shape),
		"unsupported protocol version 1999-01-01":                            errors.New(`calling "initialize": unsupported protocol version: "1999-01-01"`),
		"Get http://h/x: refused":                                            errors.New(`connection closed: calling "x": Get http://u:p@h/x?k=secret#f: refused`),
	} {
		if got := p.plainError(err).Error(); got != want {
			t.Errorf("%v is %q, want %q", err, got, want)
		}
	}
}

func TestAServerOfAnotherVersionIsToldSo(t *testing.T) {
	w := serving(t, false, "other version").up(t)
	if want := "unsupported protocol version 1999-01-01; restarting"; !strings.Contains(w.said(), want) {
		t.Errorf("it was said\n%s", w.said())
	}
}

func TestWhatAServerDoesAgainAndAgainIsToldOnce(t *testing.T) {
	s := asking(greetingVersion, `{}`, false)
	var mu sync.Mutex // guards told
	told := 0
	h := linked(t, s, Options{})
	h.options.Warn = func(string) { mu.Lock(); defer mu.Unlock(); told++ }
	for session := range s.Sessions() {
		for range 30 {
			if got, err := session.Elicit(t.Context(), &sdk.ElicitParams{Message: "psst", RequestedSchema: json.RawMessage(`{"type":"object"}`)}); err != nil || got.Action != cancelAction {
				t.Fatalf("%+v, %v", got, err)
			}
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if told != 1 {
		t.Errorf("the person was told %d times", told)
	}
}

func TestAServerThatChangesWithoutEndIsLookedAtWithPauses(t *testing.T) {
	now := time.Now()
	p := &peer{host: &Host{options: Options{Now: func() time.Time { return now }}}}
	var got []bool
	for range 6 {
		got = append(got, p.reloadsTooOften())
		now = now.Add(reloadPause)
	}
	now = now.Add(time.Minute)
	got = append(got, p.reloadsTooOften())
	if want := "[false false false true true true false]"; fmt.Sprint(got) != want {
		t.Errorf("it is waited %v, want %s", got, want)
	}
}

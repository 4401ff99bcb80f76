package mcp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// kept are logins in memory.
type kept struct {
	mu  sync.Mutex
	all map[string]json.RawMessage
}

func (k *kept) Load(address string) (json.RawMessage, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.all[address], nil
}

func (k *kept) Save(address string, login json.RawMessage) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all == nil {
		k.all = make(map[string]json.RawMessage)
	}
	k.all[address] = login
	return nil
}

// gate is a server that gives tokens, and the MCP server that wants them.
type gate struct {
	*httptest.Server
	mu      sync.Mutex
	clients map[string]string // the address of each for redirects
	codes   map[string]url.Values
	access  []string // tokens in force, the last the newest
	refresh string   // the one that may be used, once
	says    string   // the error of the next login
	greets  bool     // strangers, too
	seen    []string // what was wrong, or notable
}

func newGate(t *testing.T) *gate {
	t.Helper()
	g := &gate{clients: make(map[string]string), codes: make(map[string]url.Values)}
	mux := http.NewServeMux()
	server := sdk.NewServer(&sdk.Implementation{Name: "locked"}, nil)
	server.AddTool(&sdk.Tool{Name: "open", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "sesame"}}}, nil
	})
	mcp := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{Stateless: true})
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		ok := slices.Contains(g.access, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		ok = ok || g.greets && bytes.Contains(body, []byte(`"initialize"`))
		g.mu.Unlock()
		if !ok {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer resource_metadata="%s/meta", scope="read"`, g.URL))
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		mcp.ServeHTTP(w, r)
	})
	answer := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("GET /meta", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"resource": g.URL + "/mcp", "authorization_servers": []string{g.URL}})
	})
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{
			"issuer": g.URL, "authorization_endpoint": g.URL + "/authorize", "token_endpoint": g.URL + "/token", "registration_endpoint": g.URL + "/register",
			"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"none"},
		})
	})
	mux.HandleFunc("POST /register", func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			RedirectURIs []string `json:"redirect_uris"`
		}
		_ = json.NewDecoder(r.Body).Decode(&m)
		g.mu.Lock()
		defer g.mu.Unlock()
		id := fmt.Sprintf("client-%d", len(g.clients))
		g.clients[id] = m.RedirectURIs[0]
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(map[string]any{"client_id": id, "redirect_uris": m.RedirectURIs, "token_endpoint_auth_method": "none"})
	})
	mux.HandleFunc("GET /authorize", g.authorize)
	mux.HandleFunc("POST /token", g.token)
	g.Server = httptest.NewServer(mux)
	t.Cleanup(g.Close)
	return g
}

// authorize is a person who logs in at once.
func (g *gate) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.clients[q.Get("client_id")] != q.Get("redirect_uri") || q.Get("code_challenge_method") != "S256" || q.Get("resource") != g.URL+"/mcp" || q.Get("scope") != "read" {
		g.seen = append(g.seen, "asked with "+r.URL.RawQuery)
	}
	back, _ := url.Parse(q.Get("redirect_uri"))
	answer := url.Values{"state": {q.Get("state")}, "iss": {g.URL}}
	if g.says != "" {
		answer.Set("error", g.says)
	} else {
		code := fmt.Sprintf("code-%d", len(g.codes))
		g.codes[code] = q
		answer.Set("code", code)
	}
	back.RawQuery = answer.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

// token gives tokens, for a code once and for the newest token to refresh with once.
func (g *gate) token(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	g.mu.Lock()
	defer g.mu.Unlock()
	ok := r.Form.Get("grant_type") == "refresh_token" && r.Form.Get("refresh_token") == g.refresh && g.refresh != ""
	if q, found := g.codes[r.Form.Get("code")]; found {
		sum := sha256.Sum256([]byte(r.Form.Get("code_verifier")))
		ok = q.Get("code_challenge") == base64.RawURLEncoding.EncodeToString(sum[:]) && q.Get("client_id") == r.Form.Get("client_id") && r.Form.Get("resource") == g.URL+"/mcp"
		delete(g.codes, r.Form.Get("code"))
	}
	w.Header().Set("Content-Type", "application/json")
	if !ok {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":"invalid_grant"}`)
		return
	}
	access := fmt.Sprintf("access-%d", len(g.access))
	g.access, g.refresh = append(g.access, access), "refresh-after-"+access
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": access, "token_type": "Bearer", "refresh_token": g.refresh, "expires_in": 3600})
}

// revoke makes all tokens but those to refresh with worthless.
func (g *gate) revoke() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.access {
		g.access[i] = "gone"
	}
}

// greet says whether strangers are greeted.
func (g *gate) greet(all bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.greets = all
}

func (g *gate) host(t *testing.T, store Logins) *world {
	t.Helper()
	w := &world{}
	w.Host = New(Options{
		Servers: []Server{{Name: "s", Type: HTTP, URL: g.URL + "/mcp"}, {Name: "local", Type: Stdio, Command: "x", Disabled: true}}, Root: t.TempDir(), Now: time.Now,
		Warn: func(text string) { w.mu.Lock(); defer w.mu.Unlock(); w.told = append(w.told, text) }, Logins: store,
	})
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// browser opens an address, and goes where it leads.
func browser(address string) {
	go func() {
		if res, err := http.Get(address); err == nil {
			_ = res.Body.Close()
		}
	}()
}

func TestLoggingInWithAServer(t *testing.T) {
	g, store := newGate(t), &kept{}
	w := g.host(t, store)
	g.greet(true)
	if err := w.Authorise(t.Context(), "s", browser, nil); err != nil {
		t.Fatal(err)
	}
	g.greet(false)
	open := func(w *world, when string) {
		t.Helper()
		if _, text, err := w.call(t, t.Context(), "mcp__s__open", "{}"); err != nil || !strings.Contains(text, "sesame") {
			t.Errorf("%s: %s, %v", when, text, err)
		}
	}
	w.up(t)
	open(w, "after the login")
	g.revoke()
	open(w, "when the token is no longer taken")

	other := g.host(t, store) // what is kept serves the next session
	other.up(t)
	open(other, "in another session")
	g.revoke()
	open(other, "which refreshes")
	open(w, "where another process has refreshed")

	if found, err := w.DeleteLogin("s"); !found || err != nil {
		t.Errorf("logging out: %v, %v", found, err)
	}
	if found, _ := w.DeleteLogin("s"); found {
		t.Error("logged out twice")
	}
	stranger := g.host(t, store)
	stranger.up(t)
	if s := stranger.Status(); s[1].State != LoginRequired || !strings.Contains(stranger.said(), "run coder mcp login s") {
		t.Errorf("%+v, %s", s, stranger.said())
	}
	if len(g.seen) > 0 {
		t.Error(g.seen)
	}
}

func TestALoginByPasteAndOthersThatFail(t *testing.T) {
	g := newGate(t)
	w := g.host(t, &kept{})
	led := func(address string) string { // where a browser elsewhere is led, without going there
		c := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		res, err := c.Get(address)
		if err != nil {
			return ""
		}
		defer res.Body.Close()
		return res.Header.Get("Location")
	}
	pasted := make(chan string)
	err := w.Authorise(t.Context(), "s", func(address string) {
		go func() {
			pasted <- "what is this?"
			pasted <- "http://127.0.0.1/callback?code=stolen&state=wrong"
			pasted <- led(address) + "\r"
		}()
	}, pasted)
	if err != nil {
		t.Errorf("pasted: %v", err)
	}
	g.mu.Lock()
	g.says = "access_denied"
	g.mu.Unlock()
	if err := w.Authorise(t.Context(), "s", browser, nil); err == nil || !strings.Contains(err.Error(), "the login was refused: access_denied") {
		t.Errorf("refused: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := w.Authorise(ctx, "s", func(string) { cancel() }, nil); err != context.Canceled {
		t.Errorf("given up: %v", err)
	}
	for name, want := range map[string]string{"local": "needs no login", "nobody": "unknown server"} {
		if err := w.Authorise(t.Context(), name, browser, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What a login gave goes to the server it was for, and nowhere else.
func TestTokensStayWithTheirServer(t *testing.T) {
	var got []string
	var mu sync.Mutex
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, r.Header.Get("Authorization")+r.Header.Get("X-Own"))
	}))
	defer elsewhere.Close()
	moved := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	}))
	defer moved.Close()
	store := &kept{all: map[string]json.RawMessage{moved.URL: json.RawMessage(`{"client_id":"c","token":{"access_token":"secret"}}`)}}
	h := New(Options{Servers: []Server{{Name: "s", Type: HTTP, URL: moved.URL, Headers: map[string]string{"X-Own": "secret"}}}, Root: t.TempDir(), Now: time.Now, Warn: func(string) {}, Logins: store})
	defer h.Close()
	res, err := h.peers[0].webClient().Get(moved.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if len(got) != 1 || got[0] != "" {
		t.Errorf("elsewhere it was heard: %q", got)
	}
}

package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"coder/internal/core/clip"
	"coder/internal/core/jsonx"
	"coder/internal/core/message"
	"coder/internal/core/sanitize"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

const (
	// refreshTimeout is the timeout for a new token.
	refreshTimeout = 30 * time.Second
	// maxRefusal limits how much of a refusal is read.
	maxRefusal = 64 << 10
)

// Logins stores the logins to web servers by address. Saving an empty text deletes the login.
type Logins interface {
	Load(address string) (json.RawMessage, error)
	Save(address string, login json.RawMessage) error
}

// login is a stored login: coder's identity at the server that
// issues tokens, that server's address, and the tokens.
type login struct {
	ClientID     string           `json:"client_id"`
	ClientSecret string           `json:"client_secret,omitempty"`
	TokenURL     string           `json:"token_url"`
	Style        oauth2.AuthStyle `json:"auth_style"`
	Scopes       []string         `json:"scopes,omitempty"`
	Token        *oauth2.Token    `json:"token"`
}

// loadLogin returns the stored login for the server, or nil.
func (p *peer) loadLogin() *login {
	if p.host.options.Logins == nil {
		return nil
	}
	raw, err := p.host.options.Logins.Load(p.URL)
	l := new(login)
	if err != nil || len(raw) == 0 || json.Unmarshal(raw, l) != nil || l.Token == nil {
		return nil
	}
	return l
}

func (p *peer) saveLogin(l *login) error {
	return p.host.options.Logins.Save(p.URL, jsonx.MustMarshal(l))
}

// tokenSource supplies the token for requests to one server.
type tokenSource struct {
	peer   *peer
	mu     sync.Mutex // guards the field below, and refreshing
	login  *login
	loaded bool // the stored login was read
}

// get returns the current token, refreshed if necessary, or "" if
// there is none. stale is a token that the server rejected.
func (t *tokenSource) get(ctx context.Context, stale string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	usable := func() bool { return t.login != nil && t.login.Token.Valid() && t.login.Token.AccessToken != stale }
	if t.loaded && usable() {
		return t.login.Token.AccessToken
	}
	if t.loaded && t.login == nil && stale == "" {
		return ""
	}
	t.login, t.loaded = t.peer.loadLogin(), true // another process may have refreshed it
	switch {
	case t.login == nil:
		return ""
	case usable():
		return t.login.Token.AccessToken
	case t.login.Token.RefreshToken == "":
		return ""
	}
	ctx, cancel := context.WithTimeout(context.WithValue(context.WithoutCancel(ctx), oauth2.HTTPClient,
		t.peer.host.plainClient()), refreshTimeout)
	defer cancel()
	old := t.login
	cfg := oauth2.Config{ClientID: old.ClientID, ClientSecret: old.ClientSecret,
		Endpoint: oauth2.Endpoint{TokenURL: old.TokenURL, AuthStyle: old.Style}}
	fresh, err := cfg.TokenSource(ctx, &oauth2.Token{RefreshToken: old.Token.RefreshToken}).Token()
	if err != nil {
		return ""
	}
	next := *old
	next.Token = fresh
	t.login = &next
	if err := t.peer.saveLogin(&next); err != nil {
		t.peer.host.options.Warn(fmt.Sprintf("the login with the MCP server %s could not be saved: %v",
			oneLine(t.peer.Name), err))
	}
	return fresh.AccessToken
}

// reset drops the token in memory, so that the stored login is read again.
func (t *tokenSource) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.login, t.loaded = nil, false
}

// plainClient returns a client without credentials.
func (h *Host) plainClient() *http.Client {
	return &http.Client{Transport: h.options.Transport, Timeout: refreshTimeout}
}

// Authorise logs in to a web server. show gets the address for the user to open in a browser. pasted, which
// may be nil, supplies the address the browser was redirected to, for a browser on another machine.
func (h *Host) Authorise(ctx context.Context, name string, show func(address string), pasted <-chan string) error {
	p := h.findPeer(name)
	switch {
	case p == nil:
		return errors.New("unknown server")
	case p.URL == "":
		return errors.New("a program on this machine needs no login")
	case h.options.Logins == nil:
		return errors.New("no folder to save a login in: set HOME or CODER_HOME")
	}
	back, err := listenForRedirect(p.OAuth.CallbackPort)
	if err != nil {
		return err
	}
	defer back.close()
	req, res, err := p.probe(ctx)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusUnauthorized {
		return errors.New("the server requires no login")
	}
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		PreregisteredClient: p.OAuth.credentials(),
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "coder", RedirectURIs: []string{back.address},
			GrantTypes:    []string{"authorization_code", "refresh_token"},
			ResponseTypes: []string{"code"}, TokenEndpointAuthMethod: "none",
		}},
		RedirectURL: back.address, RequestRefreshToken: true, AcceptUnadvertisedIss: true, Client: h.plainClient(),
		AuthorizationCodeFetcher: func(ctx context.Context, a *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			show(a.URL)
			return back.wait(ctx, a.URL, pasted)
		},
		NewTokenSource: func(_ context.Context, c *oauth2.Config, t *oauth2.Token) (oauth2.TokenSource, error) {
			return oauth2.StaticTokenSource(t), p.saveLogin(&login{c.ClientID, c.ClientSecret, c.Endpoint.TokenURL,
				c.Endpoint.AuthStyle, c.Scopes, t})
		},
	})
	if err == nil {
		err = handler.Authorize(ctx, req, res)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return errors.New(clip.Truncate(sanitize.Line(maskAddresses(err.Error()), 500), 500))
	}
	p.tokens.reset()
	return nil
}

// DeleteLogin deletes the login to a server. It reports whether there was one.
func (h *Host) DeleteLogin(name string) (bool, error) {
	p := h.findPeer(name)
	if p == nil || p.loadLogin() == nil {
		return false, nil
	}
	p.tokens.reset()
	return true, h.options.Logins.Save(p.URL, nil)
}

func (h *Host) findPeer(name string) *peer {
	for _, p := range h.peers {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// probe sends the server requests without credentials: a greeting, and
// a request for its tools, because some servers greet everyone.
func (p *peer) probe(ctx context.Context) (req *http.Request, res *http.Response, err error) {
	for _, want := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + greetingVersion +
			`","capabilities":{},"clientInfo":{"name":"coder","version":"0"}}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`,
	} {
		method := http.MethodPost
		if p.Type == SSE {
			method, want = http.MethodGet, ""
		}
		if req, err = http.NewRequestWithContext(ctx, method, p.URL, strings.NewReader(want)); err != nil {
			return nil, nil, err
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if res, err = p.host.plainClient().Do(req); err != nil {
			return nil, nil, cmp.Or(unreachableError(err), err)
		}
		if res.StatusCode == http.StatusUnauthorized {
			break
		}
		_ = res.Body.Close() // the body is not needed
	}
	res.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(res.Body, maxRefusal), res.Body}
	return req, res, nil
}

// credentials returns the user's client credentials for a server that issues none itself.
func (o OAuth) credentials() *oauthex.ClientCredentials {
	if o.ClientID == "" {
		return nil
	}
	c := &oauthex.ClientCredentials{ClientID: o.ClientID}
	if o.ClientSecret != "" {
		c.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: o.ClientSecret}
	}
	return c
}

// redirectServer receives the browser after the login: a local port that no other machine can reach.
type redirectServer struct {
	address string
	server  *http.Server
	results chan url.Values
	wg      sync.WaitGroup
}

func listenForRedirect(port int) (*redirectServer, error) {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, message.Errorf("wait for the browser: %w", err)
	}
	r := &redirectServer{address: "http://" + l.Addr().String() + "/callback", results: make(chan url.Values, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /callback", func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, "Done. You can close this page and go back to coder.\n") // a failure does not matter
		select {
		case r.results <- q.URL.Query():
		default:
		}
	})
	r.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	r.wg.Go(func() { _ = r.server.Serve(l) }) // ends with close
	return r, nil
}

func (r *redirectServer) close() {
	ctx, cancel := context.WithTimeout(context.Background(), endGrace)
	defer cancel()
	if r.server.Shutdown(ctx) != nil { // the page is still being sent
		_ = r.server.Close()
	}
	r.wg.Wait()
}

// wait waits for the browser to return from address, or for a
// pasted address. It ignores anything from another login.
func (r *redirectServer) wait(ctx context.Context, address string, pasted <-chan string) (*auth.AuthorizationResult,
	error) {
	sent, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	for {
		var got url.Values
		select {
		case got = <-r.results:
		case line, ok := <-pasted:
			if !ok {
				pasted = nil
			}
			if u, err := url.Parse(strings.TrimSpace(line)); err == nil {
				got = u.Query()
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		switch {
		case got.Get("state") == "" || got.Get("state") != sent.Query().Get("state"):
		case got.Get("error") != "":
			return nil, message.Errorf("the login was refused: %s",
				oneLine(got.Get("error")+" "+got.Get("error_description")))
		case got.Get("code") != "":
			return &auth.AuthorizationResult{Code: got.Get("code"), State: got.Get("state"), Iss: got.Get("iss")}, nil
		}
	}
}

package mcp

import (
	"net/http"
	"net/url"
	"strings"
)

// webClient returns the client for a web server: it adds the server's headers and login, which no other host gets.
func (p *peer) webClient() *http.Client { return &http.Client{Transport: authTransport{p}} }

type authTransport struct{ *peer }

// RoundTrip adds the credentials to a request to the server itself. It
// resends a rejected request once if a newer token is available.
func (k authTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	own, err := url.Parse(k.URL)
	if err != nil {
		return nil, err
	}
	next := k.host.options.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	if r.URL.Host != own.Host || r.URL.Scheme != own.Scheme {
		return next.RoundTrip(r)
	}
	token := k.tokens.get(r.Context(), "")
	res, err := next.RoundTrip(k.withCredentials(r, token))
	if err == nil && res.StatusCode == http.StatusUnauthorized && token != "" && (r.GetBody != nil || r.Body == nil) {
		if fresh := k.tokens.get(r.Context(), token); fresh != "" {
			again := k.withCredentials(r, fresh)
			if r.GetBody != nil {
				if again.Body, err = r.GetBody(); err != nil {
					return res, nil
				}
			}
			_ = res.Body.Close() // only the status matters
			res, err = next.RoundTrip(again)
		}
	}
	if err == nil && r.Method != http.MethodDelete { // a goodbye, sent while the failure is reported, explains nothing
		k.httpStatus.Store(int32(res.StatusCode))
		if r.Method == http.MethodPost {
			k.badContentType.Store(invalidContentType(res))
		}
		k.needsLogin.Store(res.StatusCode == http.StatusUnauthorized)
	}
	return res, err
}

// withCredentials returns r with the server's headers, and a token if there is one.
func (k authTransport) withCredentials(r *http.Request, token string) *http.Request {
	r = r.Clone(r.Context())
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for name, value := range k.Headers {
		r.Header.Set(name, value)
	}
	return r
}

// invalidContentType returns the content type of an answer to a message if the protocol does not
// use that type. The library may report only that the connection was closed.
func invalidContentType(res *http.Response) *string {
	kind, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	kind = strings.TrimSpace(kind)
	if res.StatusCode != http.StatusOK || kind == "" || kind == "application/json" || kind == "text/event-stream" {
		return nil
	}
	return &kind
}

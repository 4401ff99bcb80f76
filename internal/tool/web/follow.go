package web

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"coder/internal/core/message"
	"coder/internal/host/egress"
)

const (
	maxRedirects = 5
	maxHead      = 256 << 10 // bytes of a response's headers
	acceptHeader = "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/plain;q=0.8, */*;q=0.5"
)

// follow sends the request and follows redirects as long as the caller was allowed to go there;
// otherwise its error is a [redirectError]. It returns the last response, whose body the caller must
// close, and the addresses of the redirects.
func (o Options) follow(ctx context.Context, r request) (*http.Response, []string, error) {
	var hops []string
	asked := r.url
	for {
		resp, err := o.send(ctx, r)
		if err != nil {
			return nil, nil, err
		}
		to := resp.Header.Get("Location")
		if !slices.Contains(redirectStatuses, resp.StatusCode) || to == "" {
			return resp, hops, nil
		}
		resp.Body.Close()
		if len(hops) == maxRedirects {
			return nil, nil, message.Errorf("redirected more than %d times", maxRedirects)
		}
		if r, err = o.redirectRequest(asked, r, to, resp.StatusCode); err != nil {
			return nil, nil, message.Errorf("redirected to %.200q: %w", to, err)
		}
		hops = append(hops, r.url.String())
	}
}

// redirectError is the error of a redirect to a host that was not approved.
type redirectError struct {
	target *url.URL
	status int
}

func (e *redirectError) Error() string {
	return "redirected to another host, which was not requested; to continue, fetch the address in redirect_to"
}

func withoutWWW(host string) string {
	const www = "www."
	if rest := host[min(len(host), len(www)):]; strings.EqualFold(host[:len(host)-len(rest)], www) &&
		strings.Contains(rest, ".") {
		return rest
	}
	return host
}

var redirectStatuses = []int{
	http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
	http.StatusPermanentRedirect,
}

// redirectRequest returns the request for a redirect. Another host gets nothing that the caller added.
func (o Options) redirectRequest(asked *url.URL, r request, to string, status int) (request, error) {
	ref, err := r.url.Parse(to)
	if err != nil {
		return r, errors.New("the address is malformed")
	}
	u, err := o.parseURL(ref.String())
	if err != nil {
		return r, err
	}
	// Approval of an address includes the same address with or without www, and addresses that are allowed
	// anyway, if the address does not carry data.
	here, there := *asked, *u
	here.Host, there.Host = withoutWWW(here.Host), withoutWWW(there.Host)
	plain := request{url: u, method: http.MethodGet}
	reached := o.IsApproved != nil && o.IsApproved(plain.target()) && plain.sentData() == ""
	if !sameSite(&here, &there) && !o.isListed(u.Hostname(), effectivePort(u)) && !reached {
		return r, &redirectError{target: u, status: status}
	}
	if status != http.StatusTemporaryRedirect && status != http.StatusPermanentRedirect {
		r.method, r.body = http.MethodGet, ""
		r.header = maps.Clone(r.header)
		maps.DeleteFunc(r.header, func(key string, _ []string) bool { return strings.HasPrefix(key, "Content-") })
	}
	if !sameSite(r.url, u) {
		if r.method != http.MethodGet {
			return r, errors.New("the data to send is meant for another host")
		}
		r.header = http.Header{}
	}
	r.url = u
	return r, nil
}

// sameSite reports whether to may get what was meant for
// from: the same host and port, or the same host over TLS.
func sameSite(from, to *url.URL) bool {
	if !strings.EqualFold(from.Hostname(), to.Hostname()) {
		return false
	}
	if from.Scheme == "http" && to.Scheme == "https" {
		return effectivePort(from) == "80" && effectivePort(to) == "443"
	}
	return from.Scheme == to.Scheme && effectivePort(from) == effectivePort(to)
}

// send sends one request over its own connection.
func (o Options) send(ctx context.Context, r request) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, r.url.String(), strings.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	if r.body == "" {
		req.Body, req.ContentLength = http.NoBody, 0
	}
	req.Header.Set("User-Agent", o.UserAgent)
	req.Header.Set("Accept", acceptHeader)
	maps.Copy(req.Header, r.header)
	t, err := o.transport(ctx, req)
	if err != nil {
		return nil, err
	}
	return t.RoundTrip(req)
}

// transport returns a transport for one request. If the request goes through a proxy, the host is
// checked first; the proxy itself is the user's choice.
func (o Options) transport(ctx context.Context, req *http.Request) (*http.Transport, error) {
	t := &http.Transport{
		DialContext: o.dialer().Dial, DisableKeepAlives: true, MaxResponseHeaderBytes: maxHead,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: o.SkipTLSVerify},
	}
	if o.Proxy == nil {
		return t, nil
	}
	proxy, err := o.Proxy(req)
	if err != nil || proxy == nil {
		return t, err
	}
	if !o.IsAllowed(req.URL.Hostname(), effectivePort(req.URL)) {
		if _, err := o.dialer().Resolve(ctx, req.URL.Hostname(), effectivePort(req.URL)); err != nil {
			return nil, err
		}
	}
	own := o
	own.AllowPrivate = true
	t.Proxy, t.DialContext = http.ProxyURL(proxy), own.dialer().Dial
	return t, nil
}

// ErrAddress is the error of a host with a forbidden address.
var ErrAddress = egress.ErrAddress

// dialer returns a dialer that connects only to allowed addresses.
func (o Options) dialer() egress.Dialer {
	return egress.Dialer{Allow: o.IsAllowed, Lookup: o.Lookup, Connect: o.Connect}
}

// IsAllowed reports whether a host may be reached at any address.
func (o Options) IsAllowed(host, port string) bool { return o.AllowPrivate || o.isListed(host, port) }

// isListed reports whether the user's settings list a host.
func (o Options) isListed(host, port string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return slices.ContainsFunc(o.AllowHosts, func(rule string) bool {
		rule = strings.ToLower(rule)
		if above, ok := strings.CutPrefix(rule, "*"); ok && strings.HasPrefix(above, ".") {
			return strings.HasSuffix(host, above)
		}
		return rule == host || rule == net.JoinHostPort(host, port)
	})
}

// checkAddress returns an error for addresses that are forbidden without a lookup.
func (o Options) checkAddress(u *url.URL) error {
	host := u.Hostname()
	a, err := netip.ParseAddr(host)
	if name := strings.ToLower(strings.TrimSuffix(host, ".")); err != nil &&
		(name == "localhost" || strings.HasSuffix(name, ".localhost")) {
		a, err = netip.IPv6Loopback(), nil
	}
	if err != nil || o.IsAllowed(host, effectivePort(u)) {
		return nil
	}
	return egress.CheckAddress(host, a)
}

func effectivePort(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	maxRedirects = 5
	maxHead      = 256 << 10 // bytes of a response's headers
	accepted     = "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/plain;q=0.8, */*;q=0.5"
)

// follow sends the request and goes where it is redirected, as long as that is
// where the caller was allowed to go; else its error is an [redirectAway]. It returns
// the last response, whose body the caller closes, and the addresses it was led
// to.
func (o Options) follow(ctx context.Context, r request) (*http.Response, []string, error) {
	var hops []string
	asked := r.url
	for {
		resp, err := o.send(ctx, r)
		if err != nil {
			return nil, nil, err
		}
		to := resp.Header.Get("Location")
		if !slices.Contains(redirects, resp.StatusCode) || to == "" {
			return resp, hops, nil
		}
		resp.Body.Close()
		if len(hops) == maxRedirects {
			return nil, nil, fmt.Errorf("redirected more than %d times", maxRedirects)
		}
		if r, err = o.redirect(asked, r, to, resp.StatusCode); err != nil {
			return nil, nil, fmt.Errorf("redirected to %.200q: %w", to, err)
		}
		hops = append(hops, r.url.String())
	}
}

// redirectAway is the error of a redirect to a host that nobody was asked about.
type redirectAway struct {
	to     *url.URL
	status int
}

func (e *redirectAway) Error() string {
	return "redirected to another host, which was not asked for; to go on, fetch the address in redirect_to"
}

func withoutWWW(host string) string {
	const www = "www."
	if rest := host[min(len(host), len(www)):]; strings.EqualFold(host[:len(host)-len(rest)], www) && strings.Contains(rest, ".") {
		return rest
	}
	return host
}

var redirects = []int{
	http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect,
}

// redirect is the request that a server asks us to make instead. To another
// host nothing goes that the caller added.
func (o Options) redirect(asked *url.URL, r request, to string, status int) (request, error) {
	ref, err := r.url.Parse(to)
	if err != nil {
		return r, errors.New("the address is malformed")
	}
	u, err := o.parseURL(ref.String())
	if err != nil {
		return r, err
	}
	// Who let us go to an address lets us go to the same one with or without
	// www before it, and to what was allowed, if nothing is sent along that only
	// looks like an address.
	here, there := *asked, *u
	here.Host, there.Host = withoutWWW(here.Host), withoutWWW(there.Host)
	plain := request{url: u, method: http.MethodGet}
	reached := o.Reaches != nil && o.Reaches(plain.target()) && plain.sends() == ""
	if !sameSite(&here, &there) && !o.listed(u.Hostname(), portOf(u)) && !reached {
		return r, &redirectAway{to: u, status: status}
	}
	if status != http.StatusTemporaryRedirect && status != http.StatusPermanentRedirect {
		r.method, r.body = http.MethodGet, ""
		r.header = maps.Clone(r.header)
		maps.DeleteFunc(r.header, func(key string, _ []string) bool { return strings.HasPrefix(key, "Content-") })
	}
	if !sameSite(r.url, u) {
		if r.method != http.MethodGet {
			return r, errors.New("what was to be sent is meant for another host")
		}
		r.header = http.Header{}
	}
	r.url = u
	return r, nil
}

// sameSite reports whether to may be told what was meant for from: the same
// host and port, or the same host now over TLS.
func sameSite(from, to *url.URL) bool {
	if !strings.EqualFold(from.Hostname(), to.Hostname()) {
		return false
	}
	if from.Scheme == "http" && to.Scheme == "https" {
		return portOf(from) == "80" && portOf(to) == "443"
	}
	return from.Scheme == to.Scheme && portOf(from) == portOf(to)
}

// send makes one request, over a connection of its own that ends with it.
func (o Options) send(ctx context.Context, r request) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, r.url.String(), strings.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	if r.body == "" {
		req.Body, req.ContentLength = http.NoBody, 0
	}
	req.Header.Set("User-Agent", o.UserAgent)
	req.Header.Set("Accept", accepted)
	maps.Copy(req.Header, r.header)
	t, err := o.transport(ctx, req)
	if err != nil {
		return nil, err
	}
	return t.RoundTrip(req)
}

// transport carries one request. Where that goes through a proxy, the host is
// checked before; the proxy itself is the user's choice.
func (o Options) transport(ctx context.Context, req *http.Request) (*http.Transport, error) {
	t := &http.Transport{
		DialContext: o.dial, DisableKeepAlives: true, MaxResponseHeaderBytes: maxHead,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: o.SkipTLSVerify},
	}
	if o.Proxy == nil {
		return t, nil
	}
	proxy, err := o.Proxy(req)
	if err != nil || proxy == nil {
		return t, err
	}
	if !o.allowed(req.URL.Hostname(), portOf(req.URL)) {
		if _, err := o.addresses(ctx, req.URL.Hostname(), portOf(req.URL)); err != nil {
			return nil, err
		}
	}
	own := o
	own.AllowPrivate = true
	t.Proxy, t.DialContext = http.ProxyURL(proxy), own.dial
	return t, nil
}

// ErrAddress is the error of a host whose address may not be reached.
var ErrAddress = errors.New("only public addresses can be fetched")

// patience is how long one of several addresses of a host may take to answer.
const patience = 5 * time.Second

// reserved are the ranges, beyond those that package netip knows, which are not
// part of the public network.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),       // this network
	netip.MustParsePrefix("100.64.0.0/10"),   // behind the provider's address translation
	netip.MustParsePrefix("192.0.0.0/24"),    // protocol assignments
	netip.MustParsePrefix("192.0.2.0/24"),    // documentation
	netip.MustParsePrefix("192.88.99.0/24"),  // relays to version 6
	netip.MustParsePrefix("198.18.0.0/15"),   // measurement
	netip.MustParsePrefix("198.51.100.0/24"), // documentation
	netip.MustParsePrefix("203.0.113.0/24"),  // documentation
	netip.MustParsePrefix("240.0.0.0/4"),     // the future, and broadcast
	netip.MustParsePrefix("2001::/23"),       // protocol assignments, tunnels
	netip.MustParsePrefix("2001:db8::/32"),   // documentation
	netip.MustParsePrefix("3fff::/20"),       // documentation
}

// Addresses of version 6 that stand for one of version 4, which is what counts.
var (
	global6 = netip.MustParsePrefix("2000::/3")
	sixTo4  = netip.MustParsePrefix("2002::/16")
	nat64   = netip.MustParsePrefix("64:ff9b::/96")
)

// why tells what keeps an address from being public; "" if nothing does.
func why(a netip.Addr) string {
	a = a.Unmap()
	if a.Is6() { // it may stand for one of version 4, which is what counts
		b := a.As16()
		switch plain := a.WithZone(""); {
		case sixTo4.Contains(plain):
			a = netip.AddrFrom4([4]byte(b[2:6]))
		case nat64.Contains(plain):
			a = netip.AddrFrom4([4]byte(b[12:16]))
		}
	}
	switch {
	case !a.IsValid():
		return "invalid"
	case a.IsLoopback():
		return "loopback"
	case a.IsPrivate():
		return "private"
	case a.IsLinkLocalUnicast():
		return "link-local"
	case a.IsMulticast():
		return "multicast"
	case a.IsUnspecified():
		return "unspecified"
	case a.Is6() && !global6.Contains(a.WithZone("")),
		slices.ContainsFunc(reserved, func(p netip.Prefix) bool { return p.Contains(a.WithZone("")) }):
		return "reserved"
	}
	return ""
}

// allowed reports whether a host may be reached whatever its address is.
func (o Options) allowed(host, port string) bool { return o.AllowPrivate || o.listed(host, port) }

// listed reports whether a host is one of those the user named.
func (o Options) listed(host, port string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return slices.ContainsFunc(o.AllowHosts, func(rule string) bool {
		rule = strings.ToLower(rule)
		if above, ok := strings.CutPrefix(rule, "*"); ok && strings.HasPrefix(above, ".") {
			return strings.HasSuffix(host, above)
		}
		return rule == host || rule == net.JoinHostPort(host, port)
	})
}

// plainlyForbidden refuses what need not be looked up to be refused.
func (o Options) plainlyForbidden(u *url.URL) error {
	host := u.Hostname()
	a, err := netip.ParseAddr(host)
	if name := strings.ToLower(strings.TrimSuffix(host, ".")); err != nil && (name == "localhost" || strings.HasSuffix(name, ".localhost")) {
		a, err = netip.IPv6Loopback(), nil
	}
	if err != nil || o.allowed(host, portOf(u)) {
		return nil
	}
	return refuse(host, a)
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// barred is what keeps an address from being public, in words.
var barred = map[string]string{
	"invalid": "%s is no address of a machine", "loopback": "%s is an address of this machine", "private": "%s is an address of a private network", "link-local": "%s is an address of this link alone",
	"multicast": "%s is an address of many at once", "unspecified": "%s is an address of no machine", "reserved": "%s is an address that is reserved",
}

func refuse(host string, a netip.Addr) error {
	reason := barred[why(a)]
	switch {
	case reason == "":
		return nil
	case host == a.String():
		return fmt.Errorf("%w: "+reason, ErrAddress, host)
	}
	return fmt.Errorf("%w: "+reason, ErrAddress, host+"="+a.String())
}

// addresses looks a host up and refuses it if any of its addresses may not be
// reached: one that is public in part may be public only to pass this check.
func (o Options) addresses(ctx context.Context, host, port string) ([]netip.Addr, error) {
	list := []netip.Addr{}
	if a, err := netip.ParseAddr(host); err == nil {
		list = append(list, a)
	} else if list, err = o.Lookup(ctx, host); err != nil {
		if named := (*net.DNSError)(nil); errors.As(err, &named) && ctx.Err() == nil {
			err = errors.New(named.Err) // the rest names the host once more, and who was asked
		}
		return nil, fmt.Errorf("look up %s: %w", host, err)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("look up %s: it has no address", host)
	}
	for _, a := range list {
		if err := refuse(host, a); err != nil && !o.allowed(host, port) {
			return nil, err
		}
	}
	return list, nil
}

// dial connects to a host at an address that was checked: the very one, so that
// the name cannot come to mean another in between.
func (o Options) dial(ctx context.Context, _, to string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(to)
	if err != nil {
		return nil, err
	}
	list, err := o.addresses(ctx, host, port)
	if err != nil {
		return nil, err
	}
	number, err := net.LookupPort("tcp", port)
	if err != nil {
		return nil, err
	}
	var failed error
	for i, a := range list {
		attempt, cancel := ctx, func() {}
		if i < len(list)-1 { // only the last may take all the time there is
			attempt, cancel = context.WithTimeout(ctx, patience)
		}
		conn, err := o.Connect(attempt, netip.AddrPortFrom(a.Unmap(), uint16(number)))
		cancel()
		if err == nil {
			return conn, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}

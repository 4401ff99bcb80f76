package browser

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Key holds the secrets that admit a browser. All are random, new for each run.
type Key struct {
	Token  string // in the address that the user opens
	Cookie string // replaces the token after the first request
	Form   string // hidden field of every form
	// Path is the folder of all pages. A host's cookies go to all its ports; the cookie is limited to this
	// folder, so no other server receives it.
	Path string
}

// guard admits only requests by the user's browser, from our own pages.
type guard struct {
	Key
	secure bool
	names  []string // host names accepted besides addresses
}

// maxForm is the size limit of a form.
const maxForm = 4 << 20

// refusal is why a request is not served. A refused request has changed nothing.
type refusal struct {
	status int
	reason string
}

// setHeaders sets the headers of every response.
func setHeaders(h http.Header) {
	for name, value := range map[string]string{
		"Content-Security-Policy":      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		"Cache-Control":                "no-store",
		"Referrer-Policy":              "same-origin", // without a referrer, browsers send forms with Origin: null
		"X-Content-Type-Options":       "nosniff",
		"X-Frame-Options":              "DENY",
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Permissions-Policy":           "camera=(), microphone=(), geolocation=()",
	} {
		h.Set(name, value)
	}
}

// basePath returns the path of the pages.
func (g *guard) basePath() string { return "/" + g.Path }

// cookieName differs in every run.
func (g *guard) cookieName() string { return "coder-" + g.Path }

// origin returns the origin of our own pages for a request to host.
func (g *guard) origin(host string) string {
	if g.secure {
		return "https://" + host
	}
	return "http://" + host
}

// check returns why a request is refused, or nil.
func (g *guard) check(r *http.Request) *refusal {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	inside := strings.HasPrefix(r.URL.Path, g.basePath()+"/")
	switch {
	case !g.isOwnHost(r.Host, local):
		return &refusal{http.StatusMisdirectedRequest, "this is not an address of coder web; open the one that it printed"}
	case r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodPost:
		return &refusal{http.StatusMethodNotAllowed, "this request method is not allowed here"}
	case !g.isSameOrigin(r):
		return &refusal{http.StatusForbidden, "the request comes from another site; nothing was changed"}
	case !inside:
		return &refusal{http.StatusNotFound, "nothing here; open the address that coder web printed"}
	}
	return nil
}

// isOwnHost reports whether a request was made to this host: by an address, which nobody else can redirect
// here, or by one of our names. Other names may lead anywhere.
func (g *guard) isOwnHost(host string, local net.Addr) bool {
	at, ok := local.(*net.TCPAddr)
	if !ok {
		return false
	}
	name, port, err := net.SplitHostPort(host)
	if err != nil { // the default port is omitted
		name, port = strings.Trim(host, "[]"), map[bool]string{true: "443", false: "80"}[g.secure]
	}
	if port != strconv.Itoa(at.Port) {
		return false
	}
	if ip, err := netip.ParseAddr(name); err == nil {
		reached, ok := netip.AddrFromSlice(at.IP)
		return ok && ip.WithZone("").Unmap() == reached.WithZone("").Unmap()
	}
	name = strings.ToLower(name)
	return name == "localhost" && at.IP.IsLoopback() || slices.Contains(g.names, name)
}

// isSameOrigin reports whether no other page made the request. A link from anywhere may open a page by its
// address: the cookie is not sent with it.
func (g *guard) isSameOrigin(r *http.Request) bool {
	own := g.origin(r.Host)
	origin, given := r.Header.Get("Origin"), r.Header.Values("Origin")
	site := r.Header.Get("Sec-Fetch-Site")
	if r.Method == http.MethodPost {
		return len(given) == 1 && origin == own && (site == "" || site == "same-origin")
	}
	visit := r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	return (len(given) == 0 || origin == own) && (site == "" || site == "same-origin" || site == "none" || visit)
}

// equalSecrets compares secrets in constant time.
func equalSecrets(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// exchangeToken exchanges the token in the address for the cookie. It reports whether that answers the request.
func (g *guard) exchangeToken(w http.ResponseWriter, r *http.Request) (done bool, no *refusal) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return false, &refusal{http.StatusBadRequest, "the address cannot be read"}
	}
	if !q.Has("token") {
		return false, nil
	}
	if r.Method != http.MethodGet || len(q["token"]) != 1 || !equalSecrets(q.Get("token"), g.Token) {
		return false, &refusal{http.StatusForbidden,
			"the token in the address is not from this run; open the address that coder web printed"}
	}
	http.SetCookie(w, &http.Cookie{
		Name: g.cookieName(), Value: g.Cookie, Path: g.basePath() + "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: g.secure,
	})
	http.Redirect(w, r, g.basePath()+"/", http.StatusSeeOther)
	return true, nil
}

// admit returns why a checked request is not admitted, or nil.
func (g *guard) admit(w http.ResponseWriter, r *http.Request) *refusal {
	if c, err := r.Cookie(g.cookieName()); err != nil || !equalSecrets(c.Value, g.Cookie) {
		return &refusal{http.StatusForbidden, "this browser is not authorized; open the address that coder web printed"}
	}
	if r.Method != http.MethodPost {
		return nil
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); kind != "application/x-www-form-urlencoded" {
		return &refusal{http.StatusUnsupportedMediaType, "this form is not from coder web; nothing was changed"}
	}
	if err := r.ParseForm(); err != nil {
		return &refusal{http.StatusRequestEntityTooLarge, "the form cannot be read, or is too long; nothing was changed"}
	}
	if !equalSecrets(r.PostForm.Get("form"), g.Form) {
		return &refusal{http.StatusForbidden, "the form is not from this run; reload the page. Nothing was changed"}
	}
	return nil
}

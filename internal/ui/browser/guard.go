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

// Key is what lets a browser in. All of it is chance, and of this run alone.
type Key struct {
	Token  string // in the address that the person opens
	Cookie string // what the token becomes
	Form   string // what every form of ours carries
	// Place is the folder that all pages are in. A cookie goes to every port of
	// its host; in a folder that only these pages know it goes to no other server.
	Place string
}

// guard lets pass what a browser of the person asks for, from our own pages.
type guard struct {
	Key
	secure bool
	names  []string // of this host, beside its addresses
}

// maxForm is how much a form may hold.
const maxForm = 4 << 20

// refusal is why a request is not served. Nothing was changed by it.
type refusal struct {
	status int
	why    string
}

// headers are those of every answer.
func headers(h http.Header) {
	for name, value := range map[string]string{
		"Content-Security-Policy":      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		"Cache-Control":                "no-store",
		"Referrer-Policy":              "same-origin", // without any, browsers say that a form comes from nowhere
		"X-Content-Type-Options":       "nosniff",
		"X-Frame-Options":              "DENY",
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Permissions-Policy":           "camera=(), microphone=(), geolocation=()",
	} {
		h.Set(name, value)
	}
}

// base is where the pages are.
func (g *guard) base() string { return "/" + g.Place }

// cookieName has nothing to do with that of another run.
func (g *guard) cookieName() string { return "coder-" + g.Place }

// origin is where our own pages come from, for a request that was made to host.
func (g *guard) origin(host string) string {
	if g.secure {
		return "https://" + host
	}
	return "http://" + host
}

// check is why a request is refused; nil if it is not.
func (g *guard) check(r *http.Request) *refusal {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	inside := strings.HasPrefix(r.URL.Path, g.base()+"/")
	switch {
	case !g.ours(r.Host, local):
		return &refusal{http.StatusMisdirectedRequest, "this is not an address of coder web; open the one that it printed"}
	case r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodPost:
		return &refusal{http.StatusMethodNotAllowed, "this request method is not allowed here"}
	case !g.fromHere(r):
		return &refusal{http.StatusForbidden, "the request comes from another site; nothing was changed"}
	case !inside:
		return &refusal{http.StatusNotFound, "nothing here; open the address that coder web printed"}
	}
	return nil
}

// ours reports whether a request was made to this host: by an address, which
// nobody else can have led here, or by a name that is ours. What a name of
// somebody else leads to is up to them.
func (g *guard) ours(host string, local net.Addr) bool {
	at, ok := local.(*net.TCPAddr)
	if !ok {
		return false
	}
	name, port, err := net.SplitHostPort(host)
	if err != nil { // the usual port is left out
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

// fromHere reports whether no other page asks for it. A page may be gone to from
// anywhere, by its address alone: the cookie does not come along.
func (g *guard) fromHere(r *http.Request) bool {
	own := g.origin(r.Host)
	origin, given := r.Header.Get("Origin"), r.Header.Values("Origin")
	site := r.Header.Get("Sec-Fetch-Site")
	if r.Method == http.MethodPost {
		return len(given) == 1 && origin == own && (site == "" || site == "same-origin")
	}
	visit := r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	return (len(given) == 0 || origin == own) && (site == "" || site == "same-origin" || site == "none" || visit)
}

// same compares secrets in a time that says nothing about them.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// enter takes a token out of the address and gives the cookie for it. It reports
// whether the request is answered with that.
func (g *guard) enter(w http.ResponseWriter, r *http.Request) (done bool, no *refusal) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return false, &refusal{http.StatusBadRequest, "the address cannot be read"}
	}
	if !q.Has("token") {
		return false, nil
	}
	if r.Method != http.MethodGet || len(q["token"]) != 1 || !same(q.Get("token"), g.Token) {
		return false, &refusal{http.StatusForbidden, "the token in the address is not from this run; open the address that coder web printed"}
	}
	http.SetCookie(w, &http.Cookie{
		Name: g.cookieName(), Value: g.Cookie, Path: g.base() + "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: g.secure,
	})
	http.Redirect(w, r, g.base()+"/", http.StatusSeeOther)
	return true, nil
}

// admit is why a request that was checked is not let in; nil if it is.
func (g *guard) admit(w http.ResponseWriter, r *http.Request) *refusal {
	if c, err := r.Cookie(g.cookieName()); err != nil || !same(c.Value, g.Cookie) {
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
	if !same(r.PostForm.Get("form"), g.Form) {
		return &refusal{http.StatusForbidden, "the form is not from this run; reload the page. Nothing was changed"}
	}
	return nil
}

package web

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"coder/internal/core/display"
	"coder/internal/core/message"
	"coder/internal/core/sanitize"
	"coder/internal/tool"
)

const (
	maxURL     = 8 << 10
	maxBody    = 1 << 20
	maxHeaders = 50
	maxHeader  = 16 << 10 // bytes of one header's value
	maxTitle   = 200
)

type fetchArgs struct {
	URL        string            `json:"url" also:"uri link address"`
	Method     string            `json:"method,omitzero" enum:"GET|POST"`
	Headers    map[string]string `json:"headers,omitzero" hidden:"yes"`
	Body       string            `json:"body,omitzero" also:"data"`
	Auth       string            `json:"auth,omitzero" also:"authorization" hidden:"yes" doc:"value of the Authorization header"`
	Format     string            `json:"format,omitzero" enum:"markdown|text|html"`
	TimeoutSec int               `json:"timeout_sec,omitzero" also:"timeout" hidden:"yes" doc:"seconds it may take"`
	MaxSizeKB  int               `json:"max_size_kb,omitzero" hidden:"yes" doc:"most to read"`
	Offset     int               `json:"offset,omitzero" also:"start_index start"`
}

// request is a valid fetch.
type request struct {
	url     *url.URL
	method  string
	header  http.Header // added by the caller
	body    string
	format  string
	timeout time.Duration // none if zero
	maxSize int           // maximum bytes to read; none if zero
	offset  int
}

func (o Options) parse(a fetchArgs) (request, error) {
	u, err := o.parseURL(strings.TrimSpace(a.URL))
	if err != nil {
		return request{}, err
	}
	r := request{
		url: u, method: cmp.Or(a.Method, http.MethodGet), body: a.Body, format: cmp.Or(a.Format, "markdown"),
		offset:  a.Offset,
		timeout: time.Duration(min(a.TimeoutSec, 1<<20)) * time.Second, maxSize: min(a.MaxSizeKB, 1<<20) << 10,
	}
	switch {
	case a.Body != "" && r.method != http.MethodPost:
		return request{}, errors.New("a body requires the method POST")
	case len(a.Body) > maxBody:
		return request{}, message.Errorf("body is too long (%d bytes)", len(a.Body))
	case a.TimeoutSec < 0 || a.MaxSizeKB < 0 || a.Offset < 0:
		return request{}, errors.New("timeout_sec, max_size_kb and offset must not be negative")
	}
	r.header, err = parseHeaders(a)
	return r, err
}

// parseURL returns an error for an address that must not be
// fetched, whether it comes from a caller or from a redirect.
func (o Options) parseURL(s string) (*url.URL, error) {
	if len(s) > maxURL {
		return nil, message.Errorf("url is too long (%d bytes)", len(s))
	}
	u, err := url.Parse(s)
	if err != nil {
		return nil, message.Errorf("url is malformed: %w", errors.Unwrap(err))
	}
	switch {
	case u.Scheme == "" && u.Host == "":
		return nil, errors.New("url must begin with http:// or https://")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, message.Errorf("only http and https can be fetched, not %s", u.Scheme)
	case u.User != nil:
		return nil, errors.New("url must not contain a user name or password")
	case u.Hostname() == "":
		return nil, errors.New("url names no host")
	}
	u.Fragment, u.RawFragment = "", ""
	return u, o.checkAddress(u)
}

// reservedHeaders are headers that the transport sets, or that would change how it works.
var reservedHeaders = []string{
	"Accept-Encoding", "Connection", "Content-Length", "Expect", "Host", "Keep-Alive", "Proxy-Authorization",
	"Proxy-Connection", "Range", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

func parseHeaders(a fetchArgs) (http.Header, error) {
	if len(a.Headers) > maxHeaders {
		return nil, message.Errorf("at most %d headers are allowed", maxHeaders)
	}
	h := make(http.Header, len(a.Headers)+1)
	set := func(name, value string) error {
		key := http.CanonicalHeaderKey(name)
		switch {
		case name == "" || strings.ContainsFunc(name, isNotToken):
			return message.Errorf("%q is not a header name", sanitize.Line(name, maxTitle))
		case slices.Contains(reservedHeaders, key):
			return message.Errorf("the header %s cannot be set", key)
		case len(value) > maxHeader || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }):
			return message.Errorf("the header %s is too long or contains control characters", key)
		case h[key] != nil:
			return message.Errorf("the header %s is set twice", key)
		}
		h.Set(key, value)
		return nil
	}
	for name, value := range a.Headers {
		if err := set(name, value); err != nil {
			return nil, err
		}
	}
	if a.Auth != "" {
		return h, set("Authorization", a.Auth)
	}
	return h, nil
}

func isNotToken(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
}

// target returns what the request touches, without its query.
func (r request) target() string {
	return (&url.URL{Scheme: r.url.Scheme, Host: r.url.Host, Path: r.url.Path}).String()
}

func (r request) plan() tool.Plan {
	title := r.url.String()
	if r.method != http.MethodGet {
		title = r.method + " " + title
	}
	var b strings.Builder // everything that would be sent
	fmt.Fprintf(&b, "%s %s\n", r.method, r.url)
	for _, key := range slices.Sorted(maps.Keys(r.header)) {
		fmt.Fprintf(&b, "%s: %s\n", key, r.header.Get(key))
	}
	if r.body != "" {
		b.WriteString("\n" + r.body)
	}
	return tool.Plan{
		Title:   sanitize.Line(title, maxTitle),
		Effects: []tool.Effect{{Kind: tool.Net, Target: r.target()}},
		Preview: display.Code{Lang: "http", Source: b.String()},
		Sends:   r.sentData(),
	}
}

// An address beyond these limits counts as sending data: bytes of
// the query, of the path, and of one unbroken part of the path.
const (
	maxQuery    = 128
	maxPath     = 256
	maxPathPart = 64
)

// sentData describes what the request sends besides asking for a page: data can leave in any of these ways.
func (r request) sentData() string {
	var what []string
	if r.method != http.MethodGet {
		what = append(what, fmt.Sprintf("a %s request", r.method))
	}
	if r.body != "" {
		what = append(what, fmt.Sprintf("a body of %d bytes", len(r.body)))
	}
	if len(r.header) > 0 {
		what = append(what, "custom headers")
	}
	if n := len(r.url.RawQuery); n > maxQuery {
		what = append(what, fmt.Sprintf("a query of %d bytes", n))
	}
	path := r.url.EscapedPath()
	run := 0
	for _, part := range strings.FieldsFunc(path, func(c rune) bool { return strings.ContainsRune("/-_.~,;:!'()@", c) }) {
		run = max(run, len(part))
	}
	if len(path) > maxPath || run > maxPathPart {
		what = append(what, fmt.Sprintf("a path of %d bytes", len(path)))
	}
	return strings.Join(what, ", ")
}

// Package web has the tool that fetches from the web. It guarantees,
// whatever an address, a name server or a server says:
//
//  1. Only public addresses are reached, unless the user allows others. The check
//     applies to the address of the actual connection, on every hop, so neither a
//     redirect nor a changing name leads to the internal network.
//  2. A fetch ends: in time, after a few redirects, and after a number of bytes
//     counted after decompression.
//  3. A redirect leads no farther than the requested host and those that the
//     user named or allowed: any other target is reported, and nothing is sent
//     there.
//  4. What a caller adds to a request, such as a credential, is sent only to the
//     host it was meant for.
//  5. The result is readable text: limited in size, valid UTF-8, without control
//     characters, without scripts.
package web

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/message"
	"coder/internal/core/sanitize"
	"coder/internal/tool"
)

//go:embed fetch.md
var fetchDoc string

// Options configures the tool. The zero Options are usable.
type Options struct {
	// AllowPrivate allows every address, including those of this machine and its network.
	AllowPrivate bool
	// AllowHosts are hosts that may be reached at any address, and that
	// redirects may lead to: "intranet", "localhost:8080", "*.corp.example".
	AllowHosts []string
	// IsApproved, if set, reports whether fetching from an address needs no approval: redirects may lead there, too.
	IsApproved func(address string) bool
	// MaxText and MaxImage are how many bytes of a body are read: 5 MiB of text and 1 MiB of an image if zero.
	MaxText, MaxImage int
	// Vision means that the model supports images.
	Vision bool
	// Timeout is the maximum duration of a fetch; 30 seconds if zero.
	Timeout time.Duration
	// Proxy chooses a proxy for a request, as in [http.Transport]. The host of a request through a proxy is
	// still looked up here, to check its address.
	Proxy         func(*http.Request) (*url.URL, error)
	UserAgent     string
	SkipTLSVerify bool

	// Lookup and Connect replace the network: the addresses of a host, and a connection to one of them.
	Lookup  func(ctx context.Context, host string) ([]netip.Addr, error)
	Connect func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
}

const (
	defaultText    = 5 << 20
	defaultImage   = 1 << 20
	defaultTimeout = 30 * time.Second
	defaultAgent   = "coder"
	maxPreview     = 4000 // characters of a page shown to the user
)

// withDefaults returns o with defaults for zero fields.
func (o Options) withDefaults() Options {
	o.MaxText = cmp.Or(max(o.MaxText, 0), defaultText)
	o.MaxImage = cmp.Or(max(o.MaxImage, 0), defaultImage)
	o.Timeout = cmp.Or(max(o.Timeout, 0), defaultTimeout)
	o.UserAgent = cmp.Or(o.UserAgent, defaultAgent)
	return o
}

// Fetch returns the tool that fetches a page and makes it readable text.
func Fetch(o Options) tool.Tool {
	o = o.withDefaults()
	return tool.Func[fetchArgs]{
		Name: "fetch", Doc: fetchDoc,
		Aliases: []tool.Alias{{Dialect: tool.CoAuthor, Name: "webFetch"}, {Name: "fetch_url"}, {Name: "http_request"}},
		PlanRun: func(_ context.Context, a fetchArgs) (tool.Plan, tool.Run, error) {
			r, err := o.parse(a)
			if err != nil {
				return tool.Plan{}, nil, err
			}
			return r.plan(), func(ctx context.Context, _ io.Writer) (tool.Result, error) { return o.fetch(ctx, r) }, nil
		},
	}
}

type fetchResult struct {
	OK          bool     `json:"ok"`
	URL         string   `json:"url"`
	Status      int      `json:"status"`
	Error       string   `json:"error,omitzero"`
	ContentType string   `json:"content_type,omitzero"`
	Size        int      `json:"size"`
	Title       string   `json:"title,omitzero"`
	Content     string   `json:"content"`
	Truncated   bool     `json:"truncated"`
	NextOffset  int      `json:"next_offset,omitzero"`
	Redirects   []string `json:"redirects,omitzero"`
	RedirectTo  string   `json:"redirect_to,omitzero"`
	Note        string   `json:"note,omitzero"`

	images []chat.Image
}

// fetch follows the request to its page and reads it, within the time limit.
func (o Options) fetch(ctx context.Context, r request) (tool.Result, error) {
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
	}
	limit := o.Timeout
	if r.timeout > 0 {
		limit = min(limit, r.timeout)
	}
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	v, err := o.fetchPage(bounded, r)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return tool.Result{}, ctx.Err()
	case bounded.Err() != nil:
		return tool.Result{}, message.Errorf("fetch %s: timed out after %v", r.target(), limit)
	default:
		return tool.Result{}, message.Errorf("fetch %s: %w", r.target(), err)
	}
	shown, _ := sliceChars(v.Content, 0, maxPreview)
	if v.RedirectTo != "" {
		shown = "redirected to " + v.RedirectTo
	}
	return tool.Result{
		Value: v, Failed: !v.OK, Show: display.Text(shown), Images: v.images,
		Summary: strings.TrimSpace(fmt.Sprintf("%d %s, %d bytes", v.Status, v.ContentType, v.Size)),
	}, nil
}

// fetchPage fetches what the request asks for.
func (o Options) fetchPage(ctx context.Context, r request) (fetchResult, error) {
	resp, hops, err := o.follow(ctx, r)
	if away := (*redirectError)(nil); errors.As(err, &away) {
		return fetchResult{URL: r.url.String(), Status: away.status, Error: away.Error(),
			RedirectTo: sanitize.Line(away.target.String(), 0)}, nil
	}
	if err != nil {
		return fetchResult{}, err
	}
	defer resp.Body.Close()
	v, err := o.readResponse(resp, r)
	v.Redirects = hops
	if len(hops) > 0 {
		v.URL = hops[len(hops)-1]
		if came := resp.Request.URL.Hostname(); !strings.EqualFold(r.url.Hostname(), came) {
			v.Note = tool.JoinNotes(v.Note, "this comes from another host, "+came)
		}
	}
	return v, err
}

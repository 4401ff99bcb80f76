package mcp

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"coder/internal/core/sanitize"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// client is what answers the server.
func (p *peer) client() *sdk.Client {
	c := sdk.NewClient(&sdk.Implementation{Name: "coder", Version: p.host.o.Version}, &sdk.ClientOptions{
		ToolListChangedHandler:      func(_ context.Context, r *sdk.ToolListChangedRequest) { p.relist(r.Session) },
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { p.calls.progress(r.Params) },
	})
	root := url.URL{Scheme: "file", Path: filepath.ToSlash(p.host.o.Root)}
	c.AddRoots(&sdk.Root{URI: root.String(), Name: filepath.Base(p.host.o.Root)})
	return c
}

// relist takes in the tools of a server that says that they have changed, beside
// what is done: however often it says so, once at a time and once more after.
func (p *peer) relist(session *sdk.ClientSession) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stale = true; p.listing || p.session != session {
		return
	}
	p.listing = true
	p.host.work.Go(func() {
		for {
			p.mu.Lock()
			if !p.stale || p.session != session {
				p.listing = false
				p.mu.Unlock()
				return
			}
			p.stale = false
			p.mu.Unlock()
			if p.list(p.host.life, session) == nil {
				p.host.advertised.changed()
			}
		}
	})
}

// maxProgress is how often one call may tell how far it is.
const maxProgress = 500

// calls are the calls under way with one server.
type calls struct {
	mu   sync.Mutex // guards the fields below
	next int
	open map[string]*progress
}

// progress is where a call tells how far it is.
type progress struct {
	ctx  context.Context
	out  io.Writer
	told int
}

// begin opens a call: by token it tells how far it is, until done.
func (c *calls) begin(ctx context.Context, out io.Writer) (token string, done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = make(map[string]*progress)
	}
	c.next++
	token = "call-" + strconv.Itoa(c.next)
	c.open[token] = &progress{ctx: ctx, out: out}
	return token, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.open, token)
	}
}

// progress shows how far a call is.
func (c *calls) progress(at *sdk.ProgressNotificationParams) {
	token, _ := at.ProgressToken.(string)
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.open[token]
	if !ok || p.told >= maxProgress {
		return
	}
	p.told++
	words := []string{}
	if at.Total > 0 {
		words = append(words, fmt.Sprintf("%.0f%%", 100*at.Progress/at.Total))
	}
	if at.Message != "" {
		words = append(words, sanitize.Line(at.Message, 200))
	}
	if len(words) == 0 {
		words = append(words, strconv.FormatFloat(at.Progress, 'f', -1, 64))
	}
	_, _ = io.WriteString(p.out, strings.Join(words, " ")+"\n") // for people to watch
}

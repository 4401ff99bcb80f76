package mcp

//lint:file-ignore SA1019 roots and sampling are on their way out, and the servers that people have use them

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"coder/internal/core/event"
	"coder/internal/core/sanitize"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// client returns the client that answers the server.
func (p *peer) client() *sdk.Client {
	o := &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{
			RootsV2:     &sdk.RootCapabilities{},
			Elicitation: &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}, URL: &sdk.URLElicitationCapabilities{}},
		},
		ToolListChangedHandler:      func(_ context.Context, r *sdk.ToolListChangedRequest) { p.relist(r.Session, tools) },
		ResourceListChangedHandler:  func(_ context.Context, r *sdk.ResourceListChangedRequest) { p.relist(r.Session, resources) },
		PromptListChangedHandler:    func(_ context.Context, r *sdk.PromptListChangedRequest) { p.relist(r.Session, prompts) },
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { p.calls.progress(r.Params) },
		ElicitationHandler:          p.elicit,
	}
	if p.host.o.Sample != nil {
		o.CreateMessageHandler = p.sample
	}
	c := sdk.NewClient(&sdk.Implementation{Name: "coder", Version: p.host.o.Version}, o)
	root := url.URL{Scheme: "file", Path: filepath.ToSlash(p.host.o.Root)}
	c.AddRoots(&sdk.Root{URI: root.String(), Name: filepath.Base(p.host.o.Root)})
	return c
}

// lists are the kinds of lists that a server has.
type lists uint8

const (
	tools lists = 1 << iota
	resources
	prompts
)

// relist reloads a server's changed lists in the background: however many change reports come, one
// reload at a time and one more afterwards.
func (p *peer) relist(session *sdk.ClientSession, what lists) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stale |= what; p.listing || p.session != session {
		return
	}
	p.listing = true
	p.host.work.Go(func() {
		for {
			p.mu.Lock()
			what := p.stale
			if p.session != session {
				what = 0
			}
			if what == 0 {
				p.listing = false
				p.mu.Unlock()
				p.listed.Do(func() { close(p.surveyed) })
				return
			}
			p.stale = 0
			wait := p.tooOften()
			p.mu.Unlock()
			if wait && p.host.o.Sleep(p.host.life, relistPause) != nil {
				continue // outdated: session is gone, or soon will be
			}
			if what&tools != 0 && p.list(p.host.life, session) == nil {
				p.host.advertised.changed()
			}
			if what&resources != 0 {
				p.listResources(p.host.life, session)
			}
			if what&prompts != 0 {
				p.listPrompts(p.host.life, session)
			}
		}
	})
}

const (
	// relistPause is the time between two reloads for a server that keeps reporting changes: more than
	// relistFree times with less than relistCalm in between.
	relistPause = time.Second
	relistFree  = 3
	relistCalm  = 10 * time.Second
)

// tooOften reports whether the server keeps reporting changes. The caller holds p.mu.
func (p *peer) tooOften() bool {
	now := p.host.o.Now()
	if now.Sub(p.lastList) > relistCalm {
		p.relisted = 0
	}
	p.lastList = now
	p.relisted++
	return p.relisted > relistFree
}

const (
	// maxProgress limits the progress reports of one call.
	maxProgress = 500
	// maxAsked limits the server's questions in one call.
	maxAsked = 20
)

// calls are the running calls of one server.
type calls struct {
	mu   sync.Mutex // guards the fields below, and those of the calls
	next int
	open []*openCall // in order of start
}

// openCall is a running call: where its progress is shown, and whom the server may ask during it.
type openCall struct {
	token string
	ctx   context.Context // ends with the call
	out   io.Writer
	told  int // number of progress reports
	asked int // number of the server's questions
	limit time.Duration
	clock *time.Timer   // ends the call
	spent []event.Event // model costs caused by the server
}

// errLate ends a call that runs too long.
var errLate = errors.New("too late")

// begin opens a call with a time limit; done closes it.
func (c *calls) begin(ctx context.Context, out io.Writer, limit time.Duration) (o *openCall, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	o = &openCall{token: "call-" + strconv.Itoa(c.next), ctx: ctx, out: out, limit: limit, clock: time.AfterFunc(limit, func() { cancel(errLate) })}
	c.open = append(c.open, o)
	return o, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		o.clock.Stop()
		cancel(nil)
		c.open = slices.DeleteFunc(c.open, func(other *openCall) bool { return other == o })
	}
}

// asking returns the call for a server's question: the one open
// longest. Its time limit is paused until answered is called.
func (c *calls) asking() (o *openCall, answered func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) == 0 {
		return nil, nil, errors.New("the server may only ask during a request")
	}
	o = c.open[0]
	if o.asked++; o.asked > maxAsked {
		return nil, nil, fmt.Errorf("the server asked more than %d times", maxAsked)
	}
	o.clock.Stop()
	return o, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if slices.Contains(c.open, o) {
			o.clock.Reset(o.limit)
		}
	}, nil
}

// spend adds costs to a call.
func (c *calls) spend(o *openCall, spent []event.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o.spent = append(o.spent, spent...)
}

// costs returns a call's costs so far.
func (c *calls) costs(o *openCall) []event.Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(o.spent)
}

// progress shows a call's progress.
func (c *calls) progress(at *sdk.ProgressNotificationParams) {
	token, _ := at.ProgressToken.(string)
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.open, func(o *openCall) bool { return o.token == token })
	if i < 0 || c.open[i].told >= maxProgress {
		return
	}
	o := c.open[i]
	o.told++
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
	_, _ = io.WriteString(o.out, strings.Join(words, " ")+"\n") // only for viewers
}

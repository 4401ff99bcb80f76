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
	"coder/internal/core/message"
	"coder/internal/core/sanitize"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// newClient returns the client that answers the server.
func (p *peer) newClient() *sdk.Client {
	o := &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{
			RootsV2: &sdk.RootCapabilities{},
			Elicitation: &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{},
				URL: &sdk.URLElicitationCapabilities{}},
		},
		ToolListChangedHandler: func(_ context.Context,
			r *sdk.ToolListChangedRequest) {
			p.reloadLists(r.Session, toolList)
		},
		ResourceListChangedHandler: func(_ context.Context,
			r *sdk.ResourceListChangedRequest) {
			p.reloadLists(r.Session, resourceList)
		},
		PromptListChangedHandler: func(_ context.Context,
			r *sdk.PromptListChangedRequest) {
			p.reloadLists(r.Session, promptList)
		},
		ProgressNotificationHandler: func(_ context.Context,
			r *sdk.ProgressNotificationClientRequest) {
			p.calls.showProgress(r.Params)
		},
		ElicitationHandler: p.elicit,
	}
	if p.host.options.Sample != nil {
		o.CreateMessageHandler = p.sample
	}
	c := sdk.NewClient(&sdk.Implementation{Name: "coder", Version: p.host.options.Version}, o)
	root := url.URL{Scheme: "file", Path: filepath.ToSlash(p.host.options.Root)}
	c.AddRoots(&sdk.Root{URI: root.String(), Name: filepath.Base(p.host.options.Root)})
	return c
}

// listKinds are the kinds of lists that a server has.
type listKinds uint8

const (
	toolList listKinds = 1 << iota
	resourceList
	promptList
)

// reloadLists reloads a server's changed lists in the background: however many change reports come, one
// reload at a time and one more afterwards.
func (p *peer) reloadLists(session *sdk.ClientSession, what listKinds) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.staleLists |= what; p.reloading || p.session != session {
		return
	}
	p.reloading = true
	p.host.wg.Go(func() {
		for {
			p.mu.Lock()
			what := p.staleLists
			if p.session != session {
				what = 0
			}
			if what == 0 {
				p.reloading = false
				p.mu.Unlock()
				p.listsOnce.Do(func() { close(p.listsLoaded) })
				return
			}
			p.staleLists = 0
			wait := p.reloadsTooOften()
			p.mu.Unlock()
			if wait && p.host.options.Sleep(p.host.ctx, reloadPause) != nil {
				continue // outdated: session is gone, or soon will be
			}
			if what&toolList != 0 && p.listTools(p.host.ctx, session) == nil {
				p.host.advertised.markChanged()
			}
			if what&resourceList != 0 {
				p.listResources(p.host.ctx, session)
			}
			if what&promptList != 0 {
				p.listPrompts(p.host.ctx, session)
			}
		}
	})
}

const (
	// reloadPause is the time between two reloads for a server that keeps reporting changes: more than
	// freeReloads times with less than reloadResetTime in between.
	reloadPause     = time.Second
	freeReloads     = 3
	reloadResetTime = 10 * time.Second
)

// reloadsTooOften reports whether the server keeps reporting changes. The caller holds p.mu.
func (p *peer) reloadsTooOften() bool {
	now := p.host.options.Now()
	if now.Sub(p.lastReload) > reloadResetTime {
		p.reloadCount = 0
	}
	p.lastReload = now
	p.reloadCount++
	return p.reloadCount > freeReloads
}

const (
	// maxProgress limits the progress reports of one call.
	maxProgress = 500
	// maxQuestions limits the server's questions in one call.
	maxQuestions = 20
)

// callTracker are the running calls of one server.
type callTracker struct {
	mu      sync.Mutex // guards the fields below, and those of the calls
	next    int
	running []*openCall // in order of start
}

// openCall is a running call: where its progress is shown, and whom the server may ask during it.
type openCall struct {
	token         string
	ctx           context.Context // ends with the call
	out           io.Writer
	progressCount int // number of progress reports
	questionCount int // number of the server's questions
	limit         time.Duration
	timer         *time.Timer   // ends the call
	costs         []event.Event // model costs caused by the server
}

// errCallTimeout ends a call that runs too long.
var errCallTimeout = errors.New("too late")

// begin opens a call with a time limit; done closes it.
func (c *callTracker) begin(ctx context.Context, out io.Writer, limit time.Duration) (o *openCall, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	o = &openCall{token: "call-" + strconv.Itoa(c.next), ctx: ctx, out: out, limit: limit,
		timer: time.AfterFunc(limit, func() { cancel(errCallTimeout) })}
	c.running = append(c.running, o)
	return o, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		o.timer.Stop()
		cancel(nil)
		c.running = slices.DeleteFunc(c.running, func(other *openCall) bool { return other == o })
	}
}

// callForQuestion returns the call for a server's question: the one open
// longest. Its time limit is paused until answered is called.
func (c *callTracker) callForQuestion() (o *openCall, answered func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.running) == 0 {
		return nil, nil, errors.New("the server may only ask during a request")
	}
	o = c.running[0]
	if o.questionCount++; o.questionCount > maxQuestions {
		return nil, nil, message.Errorf("the server asked more than %d times", maxQuestions)
	}
	o.timer.Stop()
	return o, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if slices.Contains(c.running, o) {
			o.timer.Reset(o.limit)
		}
	}, nil
}

// addCosts adds costs to a call.
func (c *callTracker) addCosts(o *openCall, spent []event.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o.costs = append(o.costs, spent...)
}

// costs returns a call's costs so far.
func (c *callTracker) costs(o *openCall) []event.Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(o.costs)
}

// showProgress shows a call's progress.
func (c *callTracker) showProgress(at *sdk.ProgressNotificationParams) {
	token, _ := at.ProgressToken.(string)
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.running, func(o *openCall) bool { return o.token == token })
	if i < 0 || c.running[i].progressCount >= maxProgress {
		return
	}
	o := c.running[i]
	o.progressCount++
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

package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"coder/internal/core/message"
	"coder/internal/host/program"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// peer is one server.
type peer struct {
	Server
	host          *Host
	restart       chan struct{} // a restart is requested
	attempted     chan struct{} // closed once it is ready or has failed
	attemptedOnce sync.Once
	// listsLoaded is closed once its resources and prompts are known.
	listsLoaded    chan struct{}
	listsOnce      sync.Once
	calls          callTracker
	tokens         tokenSource
	needsLogin     atomic.Bool            // it requires a login
	switchedOff    atomic.Bool            // it must not run
	httpStatus     atomic.Int32           // its last HTTP status, if it is a web server
	badContentType atomic.Pointer[string] // the content type of its last answer, if invalid in the protocol

	mu          sync.Mutex // guards the fields below
	state       State
	lastErr     error
	lastWarning string          // the last message to the user
	warnedKinds map[string]bool // kinds of warnings the user has seen
	reloadCount int             // number of change reports in a row
	lastReload  time.Time
	session     *sdk.ClientSession
	serverName  string
	tools       []*remoteTool
	skipped     []string
	staleLists  listKinds // lists to reload
	reloading   bool      // a reload is running
	resources   []Resource
	prompts     []Prompt
}

// run runs the server until ctx ends, and restarts it when it ends,
// later each time. After too many failures it waits for the user.
func (p *peer) run(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		select {
		case <-p.restart: // it starts now anyway
		default:
		}
		if p.switchedOff.Load() {
			p.waitEnabled(ctx)
			continue
		}
		began := p.host.options.Now()
		err := p.runOnce(ctx)
		if ctx.Err() != nil {
			break
		}
		if err == nil { // the user restarts it
			failures = 0
			continue
		}
		p.mu.Lock()
		ready := p.state == Ready
		p.mu.Unlock()
		if ready && p.host.options.Now().Sub(began) >= stableTime {
			failures = 0
		}
		failures++
		hopeless := errors.Is(err, program.ErrNotFound) || errors.Is(err, errUnauthorised) || errors.Is(err, errNoRelay) ||
			p.host.options.TestOnly || failures > maxRestarts
		p.recordFailure(err, hopeless)
		if !hopeless {
			_ = p.waitRetry(ctx, time.Second<<(failures-1))
			continue
		}
		select {
		case <-p.restart:
			failures = 0
		case <-ctx.Done():
		}
	}
}

// waitEnabled keeps the server stopped until it is switched on.
func (p *peer) waitEnabled(ctx context.Context) {
	p.clearLists()
	p.attemptedOnce.Do(func() { close(p.attempted) })
	select {
	case <-p.restart:
	case <-ctx.Done():
	}
}

// clearLists removes what the server offers.
func (p *peer) clearLists() {
	p.mu.Lock()
	had := len(p.tools) > 0
	p.state, p.lastErr, p.tools, p.resources, p.prompts = Disabled, nil, nil, nil, nil
	p.mu.Unlock()
	if had {
		p.host.advertised.markChanged()
	}
}

// waitRetry waits before the next attempt, or until the user restarts the server.
func (p *peer) waitRetry(ctx context.Context, d time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-p.restart:
			cancel()
		case <-stop:
		}
	})
	err := p.host.options.Sleep(ctx, d)
	close(stop)
	watch.Wait()
	return err
}

// recordFailure records why the server failed, and warns the user once.
func (p *peer) recordFailure(err error, hopeless bool) {
	why := p.plainError(err)
	p.mu.Lock()
	p.state, p.lastErr, p.session = Failed, why, nil
	if errors.Is(err, errUnauthorised) {
		p.state = LoginRequired
	}
	text := fmt.Sprintf("MCP server %s failed: %s; restarting", oneLine(p.Name), oneLine(why.Error()))
	tell := p.lastWarning != text
	p.lastWarning = text
	p.mu.Unlock()
	if tell || hopeless && !errors.Is(err, program.ErrNotFound) && !errors.Is(err, errUnauthorised) {
		switch {
		case hopeless && p.host.options.TestOnly:
			text = fmt.Sprintf("MCP server %s failed: %s", oneLine(p.Name), oneLine(why.Error()))
		case hopeless && p.host.options.Interactive:
			text = fmt.Sprintf("MCP server %s failed: %s; not restarted (/mcp reconnect restarts it)", oneLine(p.Name),
				oneLine(why.Error()))
		case hopeless:
			text = fmt.Sprintf("MCP server %s failed: %s; not restarted (coder mcp test %s tries it)", oneLine(p.Name),
				oneLine(why.Error()), oneLine(p.Name))
		}
		p.host.options.Warn(text)
	}
	p.attemptedOnce.Do(func() { close(p.attempted) })
}

// warnOnce warns the user once about a kind of problem, however often a server causes it.
func (p *peer) warnOnce(kind, text string) {
	p.mu.Lock()
	before := p.warnedKinds[kind]
	if p.warnedKinds == nil {
		p.warnedKinds = make(map[string]bool)
	}
	p.warnedKinds[kind] = true
	p.mu.Unlock()
	if !before {
		p.host.options.Warn(text)
	}
}

// runOnce starts the server, offers its tools, and returns when it has ended, with nil if the user restarts it.
func (p *peer) runOnce(ctx context.Context) error {
	p.mu.Lock()
	p.state = Starting
	p.mu.Unlock()
	line, err := p.connect(ctx)
	if err != nil {
		return err
	}
	defer line.close()
	if err := p.listTools(ctx, line.session); err != nil {
		return line.explainError(message.Errorf("list the tools: %w", err))
	}
	p.mu.Lock()
	p.state, p.lastErr, p.session = Ready, nil, line.session
	p.mu.Unlock()
	defer func() { // it cannot be called for now
		p.mu.Lock()
		defer p.mu.Unlock()
		p.session = nil
	}()
	p.host.advertised.markChanged()
	p.attemptedOnce.Do(func() { close(p.attempted) })
	p.reloadLists(line.session, resourceList|promptList)
	ended := make(chan error, 1)
	go func() { ended <- line.session.Wait() }() // ends with line
	select {
	case err := <-ended:
		return line.explainError(cmp.Or(err, errors.New("the server closed the connection")))
	case <-p.restart:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

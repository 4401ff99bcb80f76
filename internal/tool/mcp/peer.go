package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"coder/internal/host/program"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// peer is one server.
type peer struct {
	Server
	host    *Host
	again   chan struct{} // a restart is requested
	settled chan struct{} // closed once it is ready or has failed
	once    sync.Once
	// surveyed is closed once its resources and prompts are known.
	surveyed chan struct{}
	listed   sync.Once
	calls    calls
	tokens   tokens
	locked   atomic.Bool            // it requires a login
	off      atomic.Bool            // it must not run
	status   atomic.Int32           // its last HTTP status, if it is a web server
	page     atomic.Pointer[string] // the content type of its last answer, if invalid in the protocol

	mu        sync.Mutex // guards the fields below
	state     State
	why       error
	told      string          // the last message to the user
	warned    map[string]bool // kinds of warnings the user has seen
	relisted  int             // number of change reports in a row
	lastList  time.Time
	session   *sdk.ClientSession
	says      string
	tools     []*remote
	refused   []string
	stale     lists // lists to reload
	listing   bool  // a reload is running
	resources []Resource
	prompts   []Prompt
}

// live runs the server until ctx ends, and restarts it when it ends,
// later each time. After too many failures it waits for the user.
func (p *peer) live(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		select {
		case <-p.again: // it starts now anyway
		default:
		}
		if p.off.Load() {
			p.rest(ctx)
			continue
		}
		began := p.host.o.Now()
		err := p.serve(ctx)
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
		if ready && p.host.o.Now().Sub(began) >= stable {
			failures = 0
		}
		failures++
		hopeless := errors.Is(err, program.ErrNotFound) || errors.Is(err, errUnauthorised) || errors.Is(err, errNoRelay) || p.host.o.Trial || failures > attempts
		p.fail(err, hopeless)
		if !hopeless {
			_ = p.pause(ctx, time.Second<<(failures-1))
			continue
		}
		select {
		case <-p.again:
			failures = 0
		case <-ctx.Done():
		}
	}
}

// rest keeps the server stopped until it is switched on.
func (p *peer) rest(ctx context.Context) {
	p.clear()
	p.once.Do(func() { close(p.settled) })
	select {
	case <-p.again:
	case <-ctx.Done():
	}
}

// clear removes what the server offers.
func (p *peer) clear() {
	p.mu.Lock()
	had := len(p.tools) > 0
	p.state, p.why, p.tools, p.resources, p.prompts = Off, nil, nil, nil, nil
	p.mu.Unlock()
	if had {
		p.host.advertised.changed()
	}
}

// pause waits before the next attempt, or until the user restarts the server.
func (p *peer) pause(ctx context.Context, d time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-p.again:
			cancel()
		case <-stop:
		}
	})
	err := p.host.o.Sleep(ctx, d)
	close(stop)
	watch.Wait()
	return err
}

// fail records why the server failed, and warns the user once.
func (p *peer) fail(err error, hopeless bool) {
	why := p.plain(err)
	p.mu.Lock()
	p.state, p.why, p.session = Failed, why, nil
	if errors.Is(err, errUnauthorised) {
		p.state = Locked
	}
	text := fmt.Sprintf("MCP server %s failed: %s; restarting", oneLine(p.Name), oneLine(why.Error()))
	tell := p.told != text
	p.told = text
	p.mu.Unlock()
	if tell || hopeless && !errors.Is(err, program.ErrNotFound) && !errors.Is(err, errUnauthorised) {
		switch {
		case hopeless && p.host.o.Trial:
			text = fmt.Sprintf("MCP server %s failed: %s", oneLine(p.Name), oneLine(why.Error()))
		case hopeless && p.host.o.Attended:
			text = fmt.Sprintf("MCP server %s failed: %s; not restarted (/mcp reconnect restarts it)", oneLine(p.Name), oneLine(why.Error()))
		case hopeless:
			text = fmt.Sprintf("MCP server %s failed: %s; not restarted (coder mcp test %s tries it)", oneLine(p.Name), oneLine(why.Error()), oneLine(p.Name))
		}
		p.host.o.Warn(text)
	}
	p.once.Do(func() { close(p.settled) })
}

// tellOnce warns the user once about a kind of problem, however often a server causes it.
func (p *peer) tellOnce(kind, text string) {
	p.mu.Lock()
	before := p.warned[kind]
	if p.warned == nil {
		p.warned = make(map[string]bool)
	}
	p.warned[kind] = true
	p.mu.Unlock()
	if !before {
		p.host.o.Warn(text)
	}
}

// serve starts the server, offers its tools, and returns when it has ended, with nil if the user restarts it.
func (p *peer) serve(ctx context.Context) error {
	p.mu.Lock()
	p.state = Starting
	p.mu.Unlock()
	line, err := p.connect(ctx)
	if err != nil {
		return err
	}
	defer line.close()
	if err := p.list(ctx, line.session); err != nil {
		return line.explain(fmt.Errorf("list the tools: %w", err))
	}
	p.mu.Lock()
	p.state, p.why, p.session = Ready, nil, line.session
	p.mu.Unlock()
	defer func() { // it cannot be called for now
		p.mu.Lock()
		defer p.mu.Unlock()
		p.session = nil
	}()
	p.host.advertised.changed()
	p.once.Do(func() { close(p.settled) })
	p.relist(line.session, resources|prompts)
	ended := make(chan error, 1)
	go func() { ended <- line.session.Wait() }() // ends with line
	select {
	case err := <-ended:
		return line.explain(cmp.Or(err, errors.New("the server closed the connection")))
	case <-p.again:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

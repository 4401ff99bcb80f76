// Package mcp lets the model use tools of other programs that speak the Model Context Protocol. A
// [Host] runs the configured servers, confined, beside the session, and offers their tools as
// [tool.Tool]s. Their effects are unknown, so each call is judged as unknown. A server's output is
// untrusted: it is limited in size, cleaned, and believed only where the user said so.
package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"coder/internal/core/clock"
	"coder/internal/core/sanitize"
	"coder/internal/host/program"
)

const (
	// greetTimeout is the timeout of an attempt to connect to a server.
	greetTimeout = 60 * time.Second
	listTimeout  = 30 * time.Second
	// stableTime is how long a server must run before its failures are counted from zero again.
	stableTime = time.Minute
	// maxRestarts is how often a server is restarted in a row.
	maxRestarts = 4
	// greetingVersion is the newest protocol version with a greeting.
	greetingVersion = "2025-11-25"
)

// Options configures a Host. Fields may be nil where stated.
type Options struct {
	Servers []Server // highest precedence first: of two with like names the second is skipped
	Root    string   // the workspace, absolute
	Env     []string // of programs; a server's settings are added
	Version string   // of coder
	Vision  bool     // the model supports images
	// Interactive means that a user is present who can type commands.
	Interactive bool
	// TestOnly means that servers are only tested: none is restarted.
	TestOnly bool
	// Confine confines the command of every program before it starts.
	Confine func(*program.Cmd, Server) error
	// WatchCall, which may be nil, is called before a call that may write. The function it returns is called
	// afterwards and returns a note for the model.
	WatchCall func(context.Context) func(context.Context) string
	// Transport, which may be nil, carries requests to web servers.
	Transport http.RoundTripper
	// Relay, which may be nil, sends a message to a server inside the
	// program that drives the session, and returns the answer.
	Relay func(ctx context.Context, server string, message json.RawMessage) (json.RawMessage, error)
	// IsTaken reports whether another tool already has a name.
	IsTaken func(name string) bool
	Warn    func(string) // warns the user
	Now     func() time.Time
	// Logins, which may be nil, stores logins to servers.
	Logins Logins
	// Sample, which may be nil, gets the session's model's answer for a server.
	Sample func(context.Context, SampleRequest) (SampleResult, error)
	// Sleep, which may be nil, waits between attempts.
	Sleep func(context.Context, time.Duration) error
	// TimeoutFactor is the factor for server timeouts; zero means one.
	TimeoutFactor int
}

// Host runs servers and offers their tools. It is safe for concurrent use.
type Host struct {
	options      Options
	peers        []*peer
	ctx          context.Context
	cancel       context.CancelFunc
	startOnce    sync.Once
	wg           sync.WaitGroup
	advertised   advertisedTools
	greetTimeout time.Duration // timeout of an attempt to connect; shorter in tests
}

// New returns a Host. It starts no server.
func New(o Options) *Host {
	if o.Sleep == nil {
		o.Sleep = clock.Sleep
	}
	o.TimeoutFactor = max(1, o.TimeoutFactor)
	h := &Host{options: o, greetTimeout: greetTimeout}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	taken := make(map[string]string)
	for _, s := range o.Servers {
		name := ServerKey(s.Name)
		if other, twice := taken[name]; twice {
			o.Warn(fmt.Sprintf("MCP server %s is skipped: its name is too similar to %s", oneLine(s.Name), oneLine(other)))
			continue
		}
		taken[name] = s.Name
		p := &peer{Server: s, host: h, restart: make(chan struct{}, 1), attempted: make(chan struct{}),
			listsLoaded: make(chan struct{})}
		if s.Disabled {
			p.state = Disabled
			p.switchedOff.Store(true)
			p.attemptedOnce.Do(func() { close(p.attempted) })
			p.listsOnce.Do(func() { close(p.listsLoaded) })
		}
		p.tokens.peer = p
		h.peers = append(h.peers, p)
	}
	slices.SortFunc(h.peers, func(a, b *peer) int { return cmp.Compare(a.Name, b.Name) })
	return h
}

// Start starts the servers in the background. It does not wait.
func (h *Host) Start() {
	h.startOnce.Do(func() {
		for _, p := range h.peers {
			p.mu.Lock()
			if p.state = Starting; p.switchedOff.Load() {
				p.state = Disabled
			}
			p.mu.Unlock()
			h.wg.Go(func() { p.run(h.ctx) })
		}
	})
}

// WaitReady waits until every server is ready or has failed, for patience at most.
func (h *Host) WaitReady(ctx context.Context, patience time.Duration) {
	h.Start()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	var late []string
	for _, p := range h.peers {
		select {
		case <-p.attempted:
		case <-ctx.Done():
			return
		case <-limit.C:
			limit.Reset(0)
			late = append(late, oneLine(p.Name))
		}
	}
	if len(late) > 0 {
		h.options.Warn(fmt.Sprintf("no longer waiting for MCP servers: %s", strings.Join(late, ", ")))
	}
}

// Close stops the servers and waits until they have ended.
func (h *Host) Close() error {
	h.cancel()
	h.startOnce.Do(func() {}) // prevent later starts
	h.wg.Wait()
	return nil
}

// Reconnect restarts a server, or all if name is empty. It reports whether a server of that name exists.
func (h *Host) Reconnect(name string) bool {
	h.Start()
	found := name == ""
	for _, p := range h.peers {
		if name == "" || strings.EqualFold(p.Name, name) {
			found = true
			select {
			case p.restart <- struct{}{}:
			default: // already requested
			}
		}
	}
	return found
}

// SetEnabled switches a server off or on until the Host is
// closed. It reports whether a server of that name exists.
func (h *Host) SetEnabled(name string, on bool) bool {
	i := slices.IndexFunc(h.peers, func(p *peer) bool { return strings.EqualFold(p.Name, name) })
	if i < 0 {
		return false
	}
	p := h.peers[i]
	if p.switchedOff.Swap(!on) == !on { // no change
		return true
	}
	h.Reconnect(name)
	if !on {
		p.clearLists() // it may take a moment to end
	}
	return true
}

// State is the state of a server.
type State string

// The states.
const (
	Waiting       State = "not started"
	Disabled      State = "switched off"
	Starting      State = "starting"
	Ready         State = "ready"
	Failed        State = "failed"
	LoginRequired State = "not logged in" // it requires a login
	Invalid       State = "skipped"       // its settings are unusable
)

// Status is the current status of a server.
type Status struct {
	Server
	State      State
	Reason     string // why it failed
	Tools      []ToolStatus
	Skipped    []string // what is not used, and why
	ServerName string   // its own name
}

// ToolStatus is a tool's status for display.
type ToolStatus struct {
	Name, Description string
	Loaded            bool // it is advertised
	ReadOnly          bool // according to the trusted server
}

// Status returns the status of all servers, by name.
func (h *Host) Status() (all []Status) {
	for _, p := range h.peers {
		p.mu.Lock()
		s := Status{Server: p.Server, State: cmp.Or(p.state, Waiting), Skipped: slices.Clone(p.skipped),
			ServerName: p.serverName}
		if p.lastErr != nil {
			s.Reason = oneLine(p.lastErr.Error())
		}
		tools := p.tools
		p.mu.Unlock()
		for _, t := range tools {
			about, _, _ := strings.Cut(t.spec.Doc, "\n")
			s.Tools = append(s.Tools, ToolStatus{t.spec.Name, oneLine(about), h.advertised.isLoaded(t.spec.Name),
				t.isReadOnly()})
		}
		all = append(all, s)
	}
	return all
}

// oneLine returns untrusted text as one line.
func oneLine(s string) string { return sanitize.Line(s, 300) }

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
	// greetPatience is the timeout of an attempt to connect to a server.
	greetPatience = 60 * time.Second
	listPatience  = 30 * time.Second
	// stable is how long a server must run before its failures are counted from zero again.
	stable = time.Minute
	// attempts is how often a server is restarted in a row.
	attempts = 4
	// older is the newest protocol version with a greeting.
	older = "2025-11-25"
)

// Options configures a Host. Fields may be nil where stated.
type Options struct {
	Servers []Server // highest precedence first: of two with like names the second is skipped
	Root    string   // the workspace, absolute
	Env     []string // of programs; a server's settings are added
	Version string   // of coder
	Vision  bool     // the model supports images
	// Attended means that a user is present who can type commands.
	Attended bool
	// Trial means that servers are only tested: none is restarted.
	Trial bool
	// Confine confines the command of every program before it starts.
	Confine func(*program.Cmd, Server) error
	// Watch, which may be nil, is called before a call that may write. The function it returns is called
	// afterwards and returns a note for the model.
	Watch func(context.Context) func(context.Context) string
	// Transport, which may be nil, carries requests to web servers.
	Transport http.RoundTripper
	// Relay, which may be nil, sends a message to a server inside the
	// program that drives the session, and returns the answer.
	Relay func(ctx context.Context, server string, message json.RawMessage) (json.RawMessage, error)
	// Taken reports whether another tool already has a name.
	Taken func(name string) bool
	Warn  func(string) // warns the user
	Now   func() time.Time
	// Logins, which may be nil, stores logins to servers.
	Logins Logins
	// Sample, which may be nil, gets the session's model's answer for a server.
	Sample func(context.Context, Sampling) (Sampled, error)
	// Sleep, which may be nil, waits between attempts.
	Sleep func(context.Context, time.Duration) error
	// Patience is the factor for server timeouts; zero means one.
	Patience int
}

// Host runs servers and offers their tools. It is safe for concurrent use.
type Host struct {
	o          Options
	peers      []*peer
	life       context.Context
	end        context.CancelFunc
	start      sync.Once
	work       sync.WaitGroup
	advertised advertised
	greeting   time.Duration // timeout of an attempt to connect; shorter in tests
}

// New returns a Host. It starts no server.
func New(o Options) *Host {
	if o.Sleep == nil {
		o.Sleep = clock.Sleep
	}
	o.Patience = max(1, o.Patience)
	h := &Host{o: o, greeting: greetPatience}
	h.life, h.end = context.WithCancel(context.Background())
	taken := make(map[string]string)
	for _, s := range o.Servers {
		name := Key(s.Name)
		if other, twice := taken[name]; twice {
			o.Warn(fmt.Sprintf("MCP server %s is skipped: its name is too similar to %s", oneLine(s.Name), oneLine(other)))
			continue
		}
		taken[name] = s.Name
		p := &peer{Server: s, host: h, again: make(chan struct{}, 1), settled: make(chan struct{}), surveyed: make(chan struct{})}
		if s.Disabled {
			p.state = Off
			p.off.Store(true)
			p.once.Do(func() { close(p.settled) })
			p.listed.Do(func() { close(p.surveyed) })
		}
		p.tokens.peer = p
		h.peers = append(h.peers, p)
	}
	slices.SortFunc(h.peers, func(a, b *peer) int { return cmp.Compare(a.Name, b.Name) })
	return h
}

// Start starts the servers in the background. It does not wait.
func (h *Host) Start() {
	h.start.Do(func() {
		for _, p := range h.peers {
			p.mu.Lock()
			if p.state = Starting; p.off.Load() {
				p.state = Off
			}
			p.mu.Unlock()
			h.work.Go(func() { p.live(h.life) })
		}
	})
}

// Settle waits until every server is ready or has failed, for patience at most.
func (h *Host) Settle(ctx context.Context, patience time.Duration) {
	h.Start()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	var late []string
	for _, p := range h.peers {
		select {
		case <-p.settled:
		case <-ctx.Done():
			return
		case <-limit.C:
			limit.Reset(0)
			late = append(late, oneLine(p.Name))
		}
	}
	if len(late) > 0 {
		h.o.Warn(fmt.Sprintf("no longer waiting for MCP servers: %s", strings.Join(late, ", ")))
	}
}

// Close stops the servers and waits until they have ended.
func (h *Host) Close() error {
	h.end()
	h.start.Do(func() {}) // prevent later starts
	h.work.Wait()
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
			case p.again <- struct{}{}:
			default: // already requested
			}
		}
	}
	return found
}

// Toggle switches a server off or on until the Host is
// closed. It reports whether a server of that name exists.
func (h *Host) Toggle(name string, on bool) bool {
	i := slices.IndexFunc(h.peers, func(p *peer) bool { return strings.EqualFold(p.Name, name) })
	if i < 0 {
		return false
	}
	p := h.peers[i]
	if p.off.Swap(!on) == !on { // no change
		return true
	}
	h.Reconnect(name)
	if !on {
		p.clear() // it may take a moment to end
	}
	return true
}

// State is the state of a server.
type State string

// The states.
const (
	Waiting  State = "not started"
	Off      State = "switched off"
	Starting State = "starting"
	Ready    State = "ready"
	Failed   State = "failed"
	Locked   State = "not logged in" // it requires a login
	LeftOut  State = "skipped"       // its settings are unusable
)

// Status is the current status of a server.
type Status struct {
	Server
	State   State
	Why     string // why it failed
	Tools   []ToolStatus
	Refused []string // what is not used, and why
	Says    string   // its own name
}

// ToolStatus is a tool's status for display.
type ToolStatus struct {
	Name, About string
	Loaded      bool // it is advertised
	ReadOnly    bool // according to the trusted server
}

// Status returns the status of all servers, by name.
func (h *Host) Status() (all []Status) {
	for _, p := range h.peers {
		p.mu.Lock()
		s := Status{Server: p.Server, State: cmp.Or(p.state, Waiting), Refused: slices.Clone(p.refused), Says: p.says}
		if p.why != nil {
			s.Why = oneLine(p.why.Error())
		}
		tools := p.tools
		p.mu.Unlock()
		for _, t := range tools {
			about, _, _ := strings.Cut(t.spec.Doc, "\n")
			s.Tools = append(s.Tools, ToolStatus{t.spec.Name, oneLine(about), h.advertised.isLoaded(t.spec.Name), t.reads()})
		}
		all = append(all, s)
	}
	return all
}

// oneLine returns untrusted text as one line.
func oneLine(s string) string { return sanitize.Line(s, 300) }

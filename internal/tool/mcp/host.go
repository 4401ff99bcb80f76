// Package mcp lets the model use tools of other programs that speak the Model
// Context Protocol. A [Host] runs the servers that people configured, beside the
// session and within bounds, and offers their tools as [tool.Tool]s: what they
// would do nobody can tell, so each call is judged as such. Whatever a server
// says is a stranger's word: it is bounded, cleaned, and believed only where the
// person said so.
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
	// greetPatience is how long an attempt to reach a server may take.
	greetPatience = 60 * time.Second
	listPatience  = 30 * time.Second
	// stable is how long a server has to run for its next end to count as the first.
	stable = time.Minute
	// attempts is how often a server is started again in a row.
	attempts = 4
	// older is the newest protocol that begins with a greeting.
	older = "2025-11-25"
)

// Options are what a Host is made of. Those that say so may be nil.
type Options struct {
	Servers []Server // the strongest first: of two with like names the second is left out
	Root    string   // the workspace, absolute
	Env     []string // of programs; what a server's settings say is added
	Version string   // of this program
	Vision  bool     // the model can be shown pictures
	// Attended says that there is a person who can type commands.
	Attended bool
	// Trial says that servers are only tried: none is started again.
	Trial bool
	// Confine is given the command of every program before it starts.
	Confine func(*program.Cmd, Server) error
	// Watch, which may be nil, is called before a call that may write. What it returns
	// finds afterwards what is worth a word to the model.
	Watch func(context.Context) func(context.Context) string
	// Transport, which may be nil, carries what is said to servers on the web.
	Transport http.RoundTripper
	// Relay, which may be nil, passes a message on to a server that is a part of the
	// program which drives the session, and returns its answer.
	Relay func(ctx context.Context, server string, message json.RawMessage) (json.RawMessage, error)
	// Taken reports whether a tool of another origin has a name.
	Taken func(name string) bool
	Warn  func(string) // tells the person
	Now   func() time.Time
	// Logins, which may be nil, keeps what logins with servers gave.
	Logins Logins
	// Sample, which may be nil, has the session's model answer for a server.
	Sample func(context.Context, Sampling) (Sampled, error)
	// Sleep, which may be nil, passes the time between attempts.
	Sleep func(context.Context, time.Duration) error
	// Patience is how many times as long as usual a server is waited for; zero is once.
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
	greeting   time.Duration // patience with an attempt to reach a server; tests have less
}

// New makes a Host. Nothing is started.
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

// Start starts the servers, beside whatever is done. It does not wait.
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

// Settle waits until every server has come up or failed, for patience at most.
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

// Close ends the servers and waits until they are gone.
func (h *Host) Close() error {
	h.end()
	h.start.Do(func() {}) // none is started any more
	h.work.Wait()
	return nil
}

// Reconnect starts a server anew, or all if name is empty. It reports whether
// there is one of that name.
func (h *Host) Reconnect(name string) bool {
	h.Start()
	found := name == ""
	for _, p := range h.peers {
		if name == "" || strings.EqualFold(p.Name, name) {
			found = true
			select {
			case p.again <- struct{}{}:
			default: // it is on its way
			}
		}
	}
	return found
}

// Toggle switches a server off or on, for as long as this Host lives. It reports
// whether there is one of that name.
func (h *Host) Toggle(name string, on bool) bool {
	i := slices.IndexFunc(h.peers, func(p *peer) bool { return strings.EqualFold(p.Name, name) })
	if i < 0 {
		return false
	}
	p := h.peers[i]
	if p.off.Swap(!on) == !on { // it is so already
		return true
	}
	h.Reconnect(name)
	if !on {
		p.clear() // it may take a moment to end
	}
	return true
}

// State is how a server is.
type State string

// The states.
const (
	Waiting  State = "not started"
	Off      State = "switched off"
	Starting State = "starting"
	Ready    State = "ready"
	Failed   State = "failed"
	Locked   State = "not logged in" // it wants to know who asks
	LeftOut  State = "skipped"       // it cannot be used as it is written
)

// Status is a server as it is now.
type Status struct {
	Server
	State   State
	Why     string // it failed
	Tools   []ToolStatus
	Refused []string // what of it is not used, and why
	Says    string   // what it calls itself
}

// ToolStatus is a tool as people see it.
type ToolStatus struct {
	Name, About string
	Loaded      bool // it is described to the model
	ReadOnly    bool // by the server's word, which is believed
}

// Status tells how the servers are, by name.
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

// oneLine is a stranger's text in a line.
func oneLine(s string) string { return sanitize.Line(s, 300) }

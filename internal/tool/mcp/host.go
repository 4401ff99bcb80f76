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
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"coder/internal/core/sanitize"
	"coder/internal/host/child"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// connectPatience is how long the first attempt to reach a server may take,
	// lastPatience the second, which asks in the older way.
	connectPatience = 12 * time.Second
	lastPatience    = 60 * time.Second
	listPatience    = 30 * time.Second
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
	Confine func(*exec.Cmd, Server) error
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
	// patience with servers: with the first request of the newest protocol, with
	// a connection in that way, and in the older one. Tests have less.
	probing, connecting, greeting time.Duration
}

// New makes a Host. Nothing is started.
func New(o Options) *Host {
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	h := &Host{o: o, probing: discoverPatience, connecting: connectPatience, greeting: lastPatience}
	h.life, h.end = context.WithCancel(context.Background())
	taken := make(map[string]string)
	for _, s := range o.Servers {
		name := Key(s.Name)
		if other, twice := taken[name]; twice {
			o.Warn(fmt.Sprintf("MCP server %s is left out: its name is too much like that of %s", oneLine(s.Name), oneLine(other)))
			continue
		}
		taken[name] = s.Name
		p := &peer{Server: s, host: h, again: make(chan struct{}, 1), settled: make(chan struct{}), surveyed: make(chan struct{})}
		if s.Disabled {
			p.state = Off
			close(p.settled)
			close(p.surveyed)
		}
		p.tokens.peer = p
		h.peers = append(h.peers, p)
	}
	slices.SortFunc(h.peers, func(a, b *peer) int { return cmp.Compare(a.Name, b.Name) })
	return h
}

// sleep waits, or returns ctx's error.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Start starts the servers, beside whatever is done. It does not wait.
func (h *Host) Start() {
	h.start.Do(func() {
		for _, p := range h.peers {
			if p.Disabled {
				continue
			}
			p.mu.Lock()
			p.state = Starting
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
		h.o.Warn(fmt.Sprintf("not waiting any longer for MCP servers: %s", strings.Join(late, ", ")))
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
	LeftOut  State = "left out"      // it cannot be used as it is written
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

// peer is one server.
type peer struct {
	Server
	host    *Host
	again   chan struct{} // it is to be started anew
	settled chan struct{} // closed once it came up or failed
	once    sync.Once
	// surveyed is closed once it is known which resources and prompts it has.
	surveyed chan struct{}
	listed   sync.Once
	calls    calls
	tokens   tokens
	locked   atomic.Bool  // it wants to know who asks
	status   atomic.Int32 // how it last answered, if it is on the web

	mu        sync.Mutex // guards the fields below
	state     State
	why       error
	told      string          // what the person was told last
	warned    map[string]bool // the kinds of things the person was told of
	relisted  int             // how often in a row it said that it has changed
	lastList  time.Time
	session   *sdk.ClientSession
	says      string
	tools     []*remote
	refused   []string
	stale     lists // what of it has changed
	listing   bool  // that is being read
	resources []Resource
	prompts   []Prompt
}

// live runs the server until ctx ends, and starts it again when it ends, later
// each time. One that cannot be started is left until the person says so.
func (p *peer) live(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		began := p.host.o.Now()
		err := p.serve(ctx)
		if ctx.Err() != nil {
			break
		}
		if err == nil { // the person said so
			failures = 0
			continue
		}
		if p.isReady() && p.host.o.Now().Sub(began) >= stable {
			failures = 0
		}
		failures++
		hopeless := errors.Is(err, exec.ErrNotFound) || errors.Is(err, errUnauthorised) || errors.Is(err, errNoRelay) || p.host.o.Trial || failures > attempts
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

// pause waits before the next attempt, or until the person wants it now.
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

func (p *peer) isReady() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state == Ready
}

// fail takes down why the server is not there, and tells the person once.
func (p *peer) fail(err error, hopeless bool) {
	why := p.plain(err)
	p.mu.Lock()
	p.state, p.why, p.session = Failed, why, nil
	if errors.Is(err, errUnauthorised) {
		p.state = Locked
	}
	text := fmt.Sprintf("MCP server %s failed: %s; it is started again", oneLine(p.Name), oneLine(why.Error()))
	tell := p.told != text
	p.told = text
	p.mu.Unlock()
	if tell || hopeless && !errors.Is(err, exec.ErrNotFound) && !errors.Is(err, errUnauthorised) {
		switch {
		case hopeless && p.host.o.Trial:
			text = fmt.Sprintf("MCP server %s failed: %s", oneLine(p.Name), oneLine(why.Error()))
		case hopeless && p.host.o.Attended:
			text = fmt.Sprintf("MCP server %s failed: %s; it is not started again (/mcp reconnect does)", oneLine(p.Name), oneLine(why.Error()))
		case hopeless:
			text = fmt.Sprintf("MCP server %s failed: %s; it is not started again (coder mcp test %s tries it)", oneLine(p.Name), oneLine(why.Error()), oneLine(p.Name))
		}
		p.host.o.Warn(text)
	}
	p.once.Do(func() { close(p.settled) })
}

// tellOnce tells the person of a kind of thing once: however often a server does it.
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

// serve starts the server, offers what it has, and returns when it has ended:
// with nil if the person wants it anew.
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
		return line.explain(fmt.Errorf("list its tools: %w", err))
	}
	p.mu.Lock()
	p.state, p.why, p.session = Ready, nil, line.session
	p.mu.Unlock()
	defer p.hangUp()
	p.host.advertised.changed()
	p.once.Do(func() { close(p.settled) })
	p.relist(line.session, resources|prompts)
	ended := make(chan error, 1)
	go func() { ended <- line.session.Wait() }() // ends with line
	select {
	case err := <-ended:
		return line.explain(cmp.Or(err, errors.New("it ended the connection")))
	case <-p.again:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// hangUp says that the server cannot be called for now.
func (p *peer) hangUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.session = nil
}

// line is a connection with a server.
type line struct {
	session *sdk.ClientSession
	process *child.Process // nil for one on the web
	pipe    *pipe          // to it
	cancel  context.CancelFunc
}

func (l *line) close() {
	if l.session != nil {
		_ = l.session.Close() // it may have ended
	}
	if l.process != nil {
		l.process.End(endGrace)
	}
	l.cancel()
}

// explain is why a connection ended: by the words of the program, if it did.
func (l *line) explain(err error) error {
	if l.process == nil || version.MatchString(err.Error()) {
		return err
	}
	select { // an end is told by the connection before it is seen
	case <-l.process.Ended():
		if errors.Is(l.pipe.why(), errFlood) {
			return errFlood
		}
		if said := lastLine(l.process.LastWords()); said != "" {
			return fmt.Errorf("it ended: %s", said)
		}
		return errors.New("it ended without a word")
	case <-time.After(endGrace):
		return err
	}
}

// lastLine is the last line of a text that says something.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return oneLine(lines[len(lines)-1])
}

// connect reaches the server, in the newest way or, if it ends or hangs at that,
// in the older one.
func (p *peer) connect(ctx context.Context) (*line, error) {
	if p.Type == Relay {
		return p.dial(ctx, older, p.host.greeting)
	}
	line, err := p.dial(ctx, "", p.host.connecting)
	if err == nil || ctx.Err() != nil || errors.Is(err, exec.ErrNotFound) || errors.Is(err, errUnauthorised) {
		return line, err
	}
	return p.dial(ctx, older, p.host.greeting)
}

// dial reaches the server by one version of the protocol; "" is the newest.
func (p *peer) dial(ctx context.Context, version string, patience time.Duration) (*line, error) {
	ctx, cancel := context.WithCancel(ctx)
	l := &line{cancel: cancel}
	late := time.AfterFunc(patience, cancel)
	t, err := p.transport(l)
	if err == nil {
		l.session, err = p.client().Connect(ctx, t, &sdk.ClientSessionOptions{ProtocolVersion: version})
	}
	switch {
	case !late.Stop() && err != nil:
		err = fmt.Errorf("it did not answer within %s", patience)
	case err == nil:
		return l, nil
	case p.locked.Load():
		err = p.locksOut()
	default:
		err = l.explain(err)
	}
	l.close()
	return nil, err
}

// transport is the way to the server. A program is started.
func (p *peer) transport(l *line) (sdk.Transport, error) {
	switch p.Type {
	case HTTP:
		return &sdk.StreamableClientTransport{Endpoint: p.URL, HTTPClient: p.web(), MaxRetries: 2, MaxEventSize: maxMessage}, nil
	case SSE:
		return &sdk.SSEClientTransport{Endpoint: p.URL, HTTPClient: p.web(), MaxEventSize: maxMessage}, nil
	case Relay:
		if p.host.o.Relay == nil {
			return nil, errNoRelay
		}
		return newRelay(p.Name, p.host.o.Relay), nil
	}
	env := slices.Clone(p.host.o.Env)
	for _, name := range slices.Sorted(maps.Keys(p.Env)) {
		env = append(env, name+"="+p.Env[name])
	}
	var err error
	l.process, err = child.Start(append([]string{p.Command}, p.Args...), p.host.o.Root, env, func(cmd *exec.Cmd) error {
		if p.host.o.Confine == nil {
			return nil
		}
		return p.host.o.Confine(cmd, p.Server)
	})
	if err != nil {
		return nil, err
	}
	l.pipe = newPipe(l.process, p.host.probing)
	return l.pipe, nil
}

// errUnauthorised reports a server that wants to know who asks.
var errUnauthorised = errors.New("it wants to know who asks")

// locksOut says what to do about that.
func (p *peer) locksOut() error {
	for name := range p.Headers {
		if strings.EqualFold(name, "Authorization") {
			return fmt.Errorf("%w, and does not take the header Authorization that it is given", errUnauthorised)
		}
	}
	return fmt.Errorf("%w: coder mcp login %s logs in", errUnauthorised, oneLine(p.Name))
}

// web is what speaks to a server on the web: with its headers and what a login
// gave, which no other host gets.
func (p *peer) web() *http.Client { return &http.Client{Transport: known{p}} }

type known struct{ *peer }

// RoundTrip says who asks where a request goes to the server itself. One that is
// refused is sent once more if a newer token can be had.
func (k known) RoundTrip(r *http.Request) (*http.Response, error) {
	own, err := url.Parse(k.URL)
	if err != nil {
		return nil, err
	}
	next := k.host.o.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	if r.URL.Host != own.Host || r.URL.Scheme != own.Scheme {
		return next.RoundTrip(r)
	}
	token := k.tokens.get(r.Context(), "")
	res, err := next.RoundTrip(k.signed(r, token))
	if err == nil && res.StatusCode == http.StatusUnauthorized && token != "" && (r.GetBody != nil || r.Body == nil) {
		if fresh := k.tokens.get(r.Context(), token); fresh != "" {
			again := k.signed(r, fresh)
			if r.GetBody != nil {
				if again.Body, err = r.GetBody(); err != nil {
					return res, nil
				}
			}
			_ = res.Body.Close() // it says no
			res, err = next.RoundTrip(again)
		}
	}
	if err == nil {
		k.status.Store(int32(res.StatusCode))
		k.locked.Store(res.StatusCode == http.StatusUnauthorized)
	}
	return res, err
}

// signed is r with the headers of the server, and a token if there is one.
func (k known) signed(r *http.Request, token string) *http.Request {
	r = r.Clone(r.Context())
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for name, value := range k.Headers {
		r.Header.Set(name, value)
	}
	return r
}

// oneLine is a stranger's text in a line.
func oneLine(s string) string { return sanitize.Line(s, 300) }

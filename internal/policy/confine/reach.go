package confine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"coder/internal/core/hosts"
	"coder/internal/core/uip"
	"coder/internal/host/egress"
	"coder/internal/host/sandbox"
	"coder/internal/policy"
	"coder/internal/tool/bash"
)

// maxAsked limits how many hosts one command may ask the user about.
const maxAsked = 20

// Reach decides which hosts the commands of a session can reach: those in the settings, and others once the
// user allows them. It asks the user about a host at most once, however many connections wait for the answer.
type Reach struct {
	Named  []hosts.Pattern
	Dialer egress.Dialer // its Allow may be nil
	// Upstream, which may be nil, returns the user's own proxy for a request.
	Upstream func(*http.Request) (*url.URL, error)
	// Remembered, which may be nil, reports whether a host was always allowed; Remember saves such an answer.
	Remembered func(host string) bool
	Remember   func(host string, s policy.Scope, why string) error

	mu     sync.Mutex               // guards the fields below
	said   map[string]bool          // the user's answer about a host for the session
	asking map[string]chan struct{} // closed once the user has answered, or cannot
}

// named reports whether the settings list a target.
func (r *Reach) named(to hosts.Target) bool {
	return slices.ContainsFunc(r.Named, func(p hosts.Pattern) bool { return p.Matches(to) })
}

// private reports whether a host may be reached at a non-public address:
// the settings list that very address, or the dialer allows it.
func (r *Reach) private(host, port string) bool {
	return r.Dialer.Allow != nil && r.Dialer.Allow(host, port) ||
		slices.ContainsFunc(r.Named, func(p hosts.Pattern) bool { return p.IsAddress() && p.Matches(hosts.Target{Host: host, Port: port}) })
}

// open opens the proxy for one command, whose call may ask the user under ctx.
func (r *Reach) open(ctx context.Context, command string) (bash.Way, error) {
	outlet, err := sandbox.NewOutlet()
	if err != nil {
		return bash.Way{}, fmt.Errorf("open network access: %w", err)
	}
	ctx, end := context.WithCancel(ctx)
	c := &reaching{Reach: r, ctx: ctx, command: command, own: make(map[string]error)}
	dialer := r.Dialer
	dialer.Allow = r.private
	gate := egress.Open(ctx, outlet, egress.Options{Admit: c.admit, Dialer: dialer, Upstream: r.Upstream})
	return bash.Way{Outlet: outlet.File, Env: proxyEnv, Close: func() string {
		end()
		_ = outlet.Close()
		refused := gate.Close()
		if len(refused) == 0 {
			return ""
		}
		return "not reached: " + strings.Join(refused, ", ") +
			" (commands reach allowed hosts only over HTTP and HTTPS, through the proxy in HTTPS_PROXY)"
	}}, nil
}

// proxyEnv points programs to the proxy. Servers that a command starts are reached directly.
var proxyEnv = func() (env []string) {
	const near = "localhost,127.0.0.1,::1"
	proxy := "http://" + sandbox.OutletAddress
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		env = append(env, name+"="+proxy, strings.ToLower(name)+"="+proxy)
	}
	return append(env, "NO_PROXY="+near, "no_proxy="+near, "npm_config_proxy="+proxy, "npm_config_https_proxy="+proxy,
		"npm_config_noproxy="+near, "YARN_HTTP_PROXY="+proxy, "YARN_HTTPS_PROXY="+proxy, "CARGO_HTTP_PROXY="+proxy,
		"PIP_PROXY="+proxy, "NODE_USE_ENV_PROXY=1")
}()

// reaching is one command that connects to hosts.
type reaching struct {
	*Reach
	ctx     context.Context // of the command's call
	command string
	own     map[string]error // decisions for this command only, by host; nil allows. Guarded by Reach.mu
	asked   int              // guarded by Reach.mu
}

// admit returns an error if the command may not reach a target.
func (c *reaching) admit(ctx context.Context, to hosts.Target) error {
	for host := to.String(); ; {
		if c.named(to) || c.Remembered != nil && c.Remembered(host) {
			return nil
		}
		c.mu.Lock()
		own, decided := c.own[host]
		allowed, said := c.said[host]
		wait, pending := c.asking[host]
		switch {
		case decided, said:
			c.mu.Unlock()
			if said && !allowed {
				own = fmt.Errorf("the user refused %s in this session", host)
			}
			return own
		case pending:
			c.mu.Unlock()
			select {
			case <-wait:
				continue
			case <-ctx.Done():
				return ctx.Err()
			}
		case c.asked >= maxAsked:
			c.mu.Unlock()
			return fmt.Errorf("%s is not in safety.network, and this command asked for too many hosts", host)
		}
		c.asked++
		if c.asking == nil {
			c.asking, c.said = make(map[string]chan struct{}), make(map[string]bool)
		}
		answered := make(chan struct{})
		c.asking[host] = answered
		c.mu.Unlock()

		err := c.ask(host)
		c.mu.Lock()
		delete(c.asking, host)
		if _, said := c.said[host]; !said {
			c.own[host] = err
		}
		c.mu.Unlock()
		close(answered)
		return err
	}
}

// ask asks the user about a host. The question belongs to the command's call, not to the connection:
// the answer applies to later connections, too.
func (c *reaching) ask(host string) error {
	q := uip.Request{
		Kind: uip.Confirm, Purpose: uip.ConfirmRiskyAction,
		Display: uip.Display{
			Title:       "Let this command connect to " + host + "?",
			Description: host + " is not in safety.network; data sent there is not inspected",
			Metadata:    map[string]string{uip.OwnTitle: "true"},
		},
		Options: []uip.Option{{ID: uip.Approve, Label: "approve", Style: uip.Primary}},
	}
	what := "commands reaching " + host
	scopes := []policy.Scope{policy.ThisSession}
	if c.Remember != nil {
		scopes = append(scopes, policy.ThisProject)
	}
	for _, s := range scopes {
		label := map[policy.Scope]string{policy.ThisSession: "always in this session: ", policy.ThisProject: "always in this project: "}[s]
		q.Options = append(q.Options, uip.Option{ID: string(s), Label: "yes, " + label + what})
		q.Remember(string(s), what, nil)
	}
	q.Options = append(q.Options, uip.Option{ID: uip.Reject, Label: "reject", Style: uip.Danger})
	a, err := uip.From(c.ctx).Ask(c.ctx, q)
	switch {
	case c.ctx.Err() != nil:
		return c.ctx.Err()
	case errors.Is(err, uip.ErrParked) || err == nil && a.Unanswered():
		return fmt.Errorf("%s is not in safety.network; add it there in ~/.coder/config.json", host)
	case err != nil:
		return err
	case len(a.Args) > 0:
		return fmt.Errorf("the user allowed something other than %s", host)
	}
	switch scope := policy.Scope(a.Option); scope {
	case policy.ThisSession, policy.ThisProject:
		if c.Remember == nil || c.Remember(host, scope, c.command) != nil || !c.Remembered(host) {
			c.decide(host, true) // without storage, it applies until coder ends
		}
		return nil
	}
	if a.Option == uip.Approve {
		return nil
	}
	c.decide(host, false)
	return fmt.Errorf("the user refused %s", host)
}

// decide saves the user's answer about a host for the session.
func (r *Reach) decide(host string, allowed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said[host] = allowed
}

package confine

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"coder/internal/core/hosts"
	"coder/internal/core/message"
	"coder/internal/core/uip"
	"coder/internal/host/egress"
	"coder/internal/host/sandbox"
	"coder/internal/policy"
	"coder/internal/tool/bash"
)

// maxQuestions limits how many hosts one command may ask the user about.
const maxQuestions = 20

// HostPolicy decides which hosts the commands of a session can reach: those in the settings, and others once the
// user allows them. It asks the user about a host at most once, however many connections wait for the answer.
type HostPolicy struct {
	Allowed []hosts.Pattern
	Dialer  egress.Dialer // its Allow may be nil
	// Upstream, which may be nil, returns the user's own proxy for a request.
	Upstream func(*http.Request) (*url.URL, error)
	// IsRemembered, which may be nil, reports whether a host was always allowed; Remember saves such an answer.
	IsRemembered func(host string) bool
	Remember     func(host string, s policy.Scope, why string) error

	mu            sync.Mutex               // guards the fields below
	answers       map[string]bool          // the user's answer about a host for the session
	openQuestions map[string]chan struct{} // closed once the user has answered, or cannot
}

// isListed reports whether the settings list a target.
func (r *HostPolicy) isListed(to hosts.Target) bool {
	return slices.ContainsFunc(r.Allowed, func(p hosts.Pattern) bool { return p.Matches(to) })
}

// allowsPrivate reports whether a host may be reached at a non-public address:
// the settings list that very address, or the dialer allows it.
func (r *HostPolicy) allowsPrivate(host, port string) bool {
	return r.Dialer.Allow != nil && r.Dialer.Allow(host, port) ||
		slices.ContainsFunc(r.Allowed, func(p hosts.Pattern) bool {
			return p.IsAddress() &&
				p.Matches(hosts.Target{Host: host, Port: port})
		})
}

// openProxy opens the proxy for one command, whose call may ask the user under ctx.
func (r *HostPolicy) openProxy(ctx context.Context, command string) (bash.NetworkAccess, error) {
	outlet, err := sandbox.NewOutlet()
	if err != nil {
		return bash.NetworkAccess{}, message.Errorf("open network access: %w", err)
	}
	ctx, end := context.WithCancel(ctx)
	c := &commandHosts{HostPolicy: r, ctx: ctx, command: command, decisions: make(map[string]error)}
	dialer := r.Dialer
	dialer.Allow = r.allowsPrivate
	gate := egress.Open(ctx, outlet, egress.Options{Admit: c.admit, Dialer: dialer, Upstream: r.Upstream})
	return bash.NetworkAccess{Outlet: outlet.File, Env: proxyEnv, Close: func() string {
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

// commandHosts is one command that connects to hosts.
type commandHosts struct {
	*HostPolicy
	ctx       context.Context // of the command's call
	command   string
	decisions map[string]error // decisions for this command only, by host; nil allows. Guarded by Reach.mu
	asked     int              // guarded by Reach.mu
}

// admit returns an error if the command may not reach a target.
func (c *commandHosts) admit(ctx context.Context, to hosts.Target) error {
	for host := to.String(); ; {
		if c.isListed(to) || c.IsRemembered != nil && c.IsRemembered(host) {
			return nil
		}
		c.mu.Lock()
		own, decided := c.decisions[host]
		allowed, said := c.answers[host]
		wait, pending := c.openQuestions[host]
		switch {
		case decided, said:
			c.mu.Unlock()
			if said && !allowed {
				own = message.Errorf("the user refused %s in this session", host)
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
		case c.asked >= maxQuestions:
			c.mu.Unlock()
			return message.Errorf("%s is not in safety.network, and this command asked for too many hosts", host)
		}
		c.asked++
		if c.openQuestions == nil {
			c.openQuestions, c.answers = make(map[string]chan struct{}), make(map[string]bool)
		}
		answered := make(chan struct{})
		c.openQuestions[host] = answered
		c.mu.Unlock()

		err := c.ask(host)
		c.mu.Lock()
		delete(c.openQuestions, host)
		if _, said := c.answers[host]; !said {
			c.decisions[host] = err
		}
		c.mu.Unlock()
		close(answered)
		return err
	}
}

// ask asks the user about a host. The question belongs to the command's call, not to the connection:
// the answer applies to later connections, too.
func (c *commandHosts) ask(host string) error {
	q := uip.Request{
		Kind: uip.KindConfirm, Purpose: uip.PurposeConfirmRiskyAction,
		Display: uip.Display{
			Title:       "Let this command connect to " + host + "?",
			Description: host + " is not in safety.network; data sent there is not inspected",
			Metadata:    map[string]string{uip.MetaOwnTitle: "true"},
		},
		Options: []uip.Option{{ID: uip.OptionApprove, Label: "approve", Style: uip.StylePrimary}},
	}
	what := "commands reaching " + host
	scopes := []policy.Scope{policy.ThisSession}
	if c.Remember != nil {
		scopes = append(scopes, policy.ThisProject)
	}
	for _, s := range scopes {
		label := map[policy.Scope]string{policy.ThisSession: "always in this session: ",
			policy.ThisProject: "always in this project: "}[s]
		q.Options = append(q.Options, uip.Option{ID: string(s), Label: "yes, " + label + what})
		q.SetRemembered(string(s), what, nil)
	}
	q.Options = append(q.Options, uip.Option{ID: uip.OptionReject, Label: "reject", Style: uip.StyleDanger})
	a, err := uip.InteractorFrom(c.ctx).Ask(c.ctx, q)
	switch {
	case c.ctx.Err() != nil:
		return c.ctx.Err()
	case errors.Is(err, uip.ErrAnswerPending) || err == nil && a.IsUnanswered():
		return message.Errorf("%s is not in safety.network; add it there in ~/.coder/config.json", host)
	case err != nil:
		return err
	case len(a.Args) > 0:
		return message.Errorf("the user allowed something other than %s", host)
	}
	switch scope := policy.Scope(a.Option); scope {
	case policy.ThisSession, policy.ThisProject:
		if c.Remember == nil || c.Remember(host, scope, c.command) != nil || !c.IsRemembered(host) {
			c.saveAnswer(host, true) // without storage, it applies until coder ends
		}
		return nil
	}
	if a.Option == uip.OptionApprove {
		return nil
	}
	c.saveAnswer(host, false)
	return message.Errorf("the user refused %s", host)
}

// saveAnswer saves the user's answer about a host for the session.
func (r *HostPolicy) saveAnswer(host string, allowed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers[host] = allowed
}

package mcp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"coder/internal/core/message"
	"coder/internal/host/child"
	"coder/internal/host/program"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// connection is a connection to a server.
type connection struct {
	session *sdk.ClientSession
	pipe    *pipe // nil for a web server
	cancel  context.CancelFunc
}

func (l *connection) close() {
	if l.session != nil {
		_ = l.session.Close() // it may have ended
	}
	if l.pipe != nil {
		_ = l.pipe.Close()
	}
	l.cancel()
}

// explainError returns why a connection ended: the program's own message, if it exited.
func (l *connection) explainError(err error) error {
	if l.pipe == nil || versionPattern().MatchString(err.Error()) {
		return err
	}
	select { // the connection reports the end before the process does
	case <-l.pipe.ended:
		if errors.Is(l.pipe.readErr, errMessageTooLong) {
			return errMessageTooLong
		}
	case <-time.After(endGrace):
		return err
	}
	select {
	case <-l.pipe.Done():
		lines := strings.Split(strings.TrimSpace(l.pipe.ExitReport()), "\n")
		if said := oneLine(lines[len(lines)-1]); said != "" {
			return message.Errorf("the program exited: %s", said)
		}
		return errors.New("the program exited without a message")
	case <-time.After(endGrace):
		return err
	}
}

// noAnswerError is the error of a server that does not answer.
type noAnswerError struct{ timeout time.Duration }

func (e noAnswerError) Error() string { return fmt.Sprintf("no answer within %s", e.timeout) }

// connect greets the server and, if the server rejects that,
// tries the newest protocol, which has no greeting.
func (p *peer) connect(ctx context.Context) (*connection, error) {
	line, err := p.dial(ctx, greetingVersion)
	hopeless := errors.Is(err, program.ErrNotFound) || errors.Is(err, errUnauthorised) ||
		errors.As(err, new(noAnswerError))
	if err == nil || ctx.Err() != nil || p.Type == Relay || hopeless {
		return line, err
	}
	return p.dial(ctx, "")
}

// dial connects to the server with one version of the protocol; "" is the newest.
func (p *peer) dial(ctx context.Context, version string) (*connection, error) {
	ctx, cancel := context.WithCancel(ctx)
	l := &connection{cancel: cancel}
	late := time.AfterFunc(p.host.greetTimeout, cancel)
	t, err := p.transport(l)
	if err == nil {
		l.session, err = p.newClient().Connect(ctx, t, &sdk.ClientSessionOptions{ProtocolVersion: version})
	}
	switch {
	case !late.Stop() && err != nil:
		err = noAnswerError{p.host.greetTimeout}
	case err == nil:
		return l, nil
	case p.needsLogin.Load():
		err = p.loginError()
	default:
		err = l.explainError(err)
	}
	l.close()
	return nil, err
}

// transport returns the transport to the server. It starts a program.
func (p *peer) transport(l *connection) (sdk.Transport, error) {
	switch p.Type {
	case HTTP:
		return &sdk.StreamableClientTransport{Endpoint: p.URL, HTTPClient: p.webClient(), MaxRetries: 2,
			MaxEventSize: maxMessage}, nil
	case SSE:
		return &sdk.SSEClientTransport{Endpoint: p.URL, HTTPClient: p.webClient(), MaxEventSize: maxMessage}, nil
	case Relay:
		if p.host.options.Relay == nil {
			return nil, errNoRelay
		}
		r := &relayTransport{server: p.Name, send: p.host.options.Relay, messages: make(chan jsonrpc.Message)}
		r.ctx, r.cancel = context.WithCancel(context.Background())
		return r, nil
	}
	env := slices.Clone(p.host.options.Env)
	for _, name := range slices.Sorted(maps.Keys(p.Env)) {
		env = append(env, name+"="+p.Env[name])
	}
	process, err := child.Start(append([]string{p.Command}, p.Args...), p.host.options.Root, env,
		func(cmd *program.Cmd) error {
			if p.host.options.Confine == nil {
				return nil
			}
			return p.host.options.Confine(cmd, p.Server)
		})
	if err != nil {
		return nil, err
	}
	l.pipe = newPipe(process)
	return l.pipe.transport(), nil
}

// errUnauthorised is the error of a server that requires a login.
var errUnauthorised = errors.New("login required")

// loginError returns the error with a hint how to log in.
func (p *peer) loginError() error {
	for name := range p.Headers {
		if strings.EqualFold(name, "Authorization") {
			return message.Errorf("%w, and rejects the given Authorization header", errUnauthorised)
		}
	}
	return message.Errorf("%w: run coder mcp login %s", errUnauthorised, oneLine(p.Name))
}

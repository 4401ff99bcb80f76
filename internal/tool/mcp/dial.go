package mcp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"coder/internal/host/child"
	"coder/internal/host/program"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// line is a connection to a server.
type line struct {
	session *sdk.ClientSession
	pipe    *pipe // nil for a web server
	cancel  context.CancelFunc
}

func (l *line) close() {
	if l.session != nil {
		_ = l.session.Close() // it may have ended
	}
	if l.pipe != nil {
		_ = l.pipe.Close()
	}
	l.cancel()
}

// explain returns why a connection ended: the program's own message, if it exited.
func (l *line) explain(err error) error {
	if l.pipe == nil || version().MatchString(err.Error()) {
		return err
	}
	select { // the connection reports the end before the process does
	case <-l.pipe.ended:
		if errors.Is(l.pipe.broken, errFlood) {
			return errFlood
		}
	case <-time.After(endGrace):
		return err
	}
	select {
	case <-l.pipe.Ended():
		lines := strings.Split(strings.TrimSpace(l.pipe.LastWords()), "\n")
		if said := oneLine(lines[len(lines)-1]); said != "" {
			return fmt.Errorf("the program exited: %s", said)
		}
		return errors.New("the program exited without a message")
	case <-time.After(endGrace):
		return err
	}
}

// muteError is the error of a server that does not answer.
type muteError struct{ patience time.Duration }

func (e muteError) Error() string { return fmt.Sprintf("no answer within %s", e.patience) }

// connect greets the server and, if the server rejects that,
// tries the newest protocol, which has no greeting.
func (p *peer) connect(ctx context.Context) (*line, error) {
	line, err := p.dial(ctx, older)
	hopeless := errors.Is(err, program.ErrNotFound) || errors.Is(err, errUnauthorised) || errors.As(err, new(muteError))
	if err == nil || ctx.Err() != nil || p.Type == Relay || hopeless {
		return line, err
	}
	return p.dial(ctx, "")
}

// dial connects to the server with one version of the protocol; "" is the newest.
func (p *peer) dial(ctx context.Context, version string) (*line, error) {
	ctx, cancel := context.WithCancel(ctx)
	l := &line{cancel: cancel}
	late := time.AfterFunc(p.host.greeting, cancel)
	t, err := p.transport(l)
	if err == nil {
		l.session, err = p.client().Connect(ctx, t, &sdk.ClientSessionOptions{ProtocolVersion: version})
	}
	switch {
	case !late.Stop() && err != nil:
		err = muteError{p.host.greeting}
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

// transport returns the transport to the server. It starts a program.
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
		r := &relay{server: p.Name, pass: p.host.o.Relay, messages: make(chan jsonrpc.Message)}
		r.life, r.end = context.WithCancel(context.Background())
		return r, nil
	}
	env := slices.Clone(p.host.o.Env)
	for _, name := range slices.Sorted(maps.Keys(p.Env)) {
		env = append(env, name+"="+p.Env[name])
	}
	process, err := child.Start(append([]string{p.Command}, p.Args...), p.host.o.Root, env, func(cmd *program.Cmd) error {
		if p.host.o.Confine == nil {
			return nil
		}
		return p.host.o.Confine(cmd, p.Server)
	})
	if err != nil {
		return nil, err
	}
	l.pipe = newPipe(process)
	return l.pipe.transport(), nil
}

// errUnauthorised is the error of a server that requires a login.
var errUnauthorised = errors.New("login required")

// locksOut returns the error with a hint how to log in.
func (p *peer) locksOut() error {
	for name := range p.Headers {
		if strings.EqualFold(name, "Authorization") {
			return fmt.Errorf("%w, and rejects the given Authorization header", errUnauthorised)
		}
	}
	return fmt.Errorf("%w: run coder mcp login %s", errUnauthorised, oneLine(p.Name))
}

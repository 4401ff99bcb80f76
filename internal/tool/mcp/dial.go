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
	if l.process == nil || version().MatchString(err.Error()) {
		return err
	}
	select {
	case <-l.pipe.ended:
		if errors.Is(l.pipe.broken, errTwoVersions) {
			return errTwoVersions
		}
	default:
	}
	select { // an end is told by the connection before it is seen
	case <-l.process.Ended():
		<-l.pipe.ended
		if errors.Is(l.pipe.broken, errFlood) {
			return errFlood
		}
		lines := strings.Split(strings.TrimSpace(l.process.LastWords()), "\n")
		if said := oneLine(lines[len(lines)-1]); said != "" {
			return fmt.Errorf("it ended: %s", said)
		}
		return errors.New("it ended without a word")
	case <-time.After(endGrace):
		return err
	}
}

// connect reaches the server, in the newest way or, if it ends or hangs at that,
// in the older one.
func (p *peer) connect(ctx context.Context) (*line, error) {
	if p.Type == Relay || p.slow.Load() {
		return p.dial(ctx, older, p.host.greeting)
	}
	line, err := p.dial(ctx, "", p.host.connecting)
	if err == nil || ctx.Err() != nil || errors.Is(err, program.ErrNotFound) || errors.Is(err, errUnauthorised) {
		return line, err
	}
	p.slow.Store(errors.Is(err, errTwoVersions))
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
		r := &relay{server: p.Name, pass: p.host.o.Relay, messages: make(chan jsonrpc.Message)}
		r.life, r.end = context.WithCancel(context.Background())
		return r, nil
	}
	env := slices.Clone(p.host.o.Env)
	for _, name := range slices.Sorted(maps.Keys(p.Env)) {
		env = append(env, name+"="+p.Env[name])
	}
	var err error
	l.process, err = child.Start(append([]string{p.Command}, p.Args...), p.host.o.Root, env, func(cmd *program.Cmd) error {
		if p.host.o.Confine == nil {
			return nil
		}
		return p.host.o.Confine(cmd, p.Server)
	})
	if err != nil {
		return nil, err
	}
	l.pipe = newPipe(l.process, p.host.probing, p.host.acking)
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

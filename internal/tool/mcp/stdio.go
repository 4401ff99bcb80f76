package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"coder/internal/host/child"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// maxMessage bounds one message of a server.
	maxMessage = 16 << 20
	// endGrace is how long a server has to end once it is told to, and again
	// once it is asked to.
	endGrace = 500 * time.Millisecond
	// discoverPatience is how long a server has to answer the first request of
	// the newest protocol before it is taken not to know it.
	discoverPatience = 2500 * time.Millisecond

	// ackPatience is how long a server has to say that it tells of changes from
	// now on. Until it does nothing else is asked of it: what changed in between
	// nobody would hear of. If it says so later, everything is listed again.
	ackPatience = 5 * time.Second

	discover     = "server/discover"
	listen       = "subscriptions/listen"
	acknowledged = "notifications/subscriptions/acknowledged"
)

// errFlood reports a server that sends a message without end.
var errFlood = fmt.Errorf("it sent a message of more than %d MB", maxMessage>>20)

// errTwoVersions reports a server that has answered in the newest protocol too late: it
// was greeted in the older one, speaks from now on as in the newest, and would tell of
// changes only if it were asked to as there.
var errTwoVersions = errors.New("it answered in two versions of the protocol")

// pipe is the connection with a program over its standard streams. What the
// program writes beside messages is passed over.
type pipe struct {
	process  *child.Process
	messages chan jsonrpc.Message
	closed   chan struct{}
	end      sync.Once
	patience time.Duration // with the first request of the newest protocol
	acking   time.Duration // and with the word that changes are told
	broken   error         // why messages ended; valid once ended is closed
	ended    chan struct{} // there are no more messages

	mu      sync.Mutex // guards writing and the fields below
	probe   jsonrpc.ID // of the first request of the newest protocol
	probing bool       // it is not answered yet
	given   *time.Timer
	listen  jsonrpc.ID    // of the request to be told of changes
	heard   chan struct{} // closed once that was answered for; nil before it was sent
	missed  bool          // it was not in time: there may be changes that were not told
}

func newPipe(process *child.Process, patience, acking time.Duration) *pipe {
	p := &pipe{process: process, patience: patience, acking: acking, messages: make(chan jsonrpc.Message), closed: make(chan struct{}), ended: make(chan struct{})}
	go p.receive()
	return p
}

// Connect makes pipe a [sdk.Transport]: the program runs already.
func (p *pipe) Connect(context.Context) (sdk.Connection, error) { return p, nil }

// receive reads messages until there are no more. It ends with the program.
func (p *pipe) receive() {
	defer close(p.ended)
	in := bufio.NewReaderSize(p.process, 64<<10)
	for {
		line, err := readLine(in, false)
		if err != nil {
			p.broken = err
			return
		}
		messages, err := p.decode(line)
		for _, m := range messages {
			select {
			case p.messages <- m:
			case <-p.closed:
				return
			}
		}
		if err != nil {
			p.broken = err
			return
		}
	}
}

// readLine reads a line of at most maxMessage bytes. One that is longer is an
// error, at once or at its end.
func readLine(in *bufio.Reader, toEnd bool) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := in.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxMessage; !long {
			line = append(line, part...)
		}
		switch more := errors.Is(err, bufio.ErrBufferFull); {
		case long && !(more && toEnd):
			return nil, errFlood
		case !more:
			return line, err
		}
	}
}

// decode is the messages in a line: none if it is not meant as one, several if it
// is a batch. A late answer to what was given up is none; one by which the server
// knows the newest protocol after all ends the connection.
func (p *pipe) decode(line []byte) (all []jsonrpc.Message, err error) {
	line = bytes.TrimSpace(line)
	raw := []json.RawMessage{line}
	if bytes.HasPrefix(line, []byte("[")) && json.Unmarshal(line, &raw) != nil {
		return nil, nil
	}
	for _, r := range raw {
		m, unreadable := jsonrpc.DecodeMessage(r)
		if unreadable != nil {
			continue
		}
		switch m := m.(type) {
		case *jsonrpc.Response:
			if p.isLate(m.ID) {
				if m.Error == nil {
					err = errTwoVersions
				}
				continue
			}
			p.answerListening(m.ID == p.listening())
		case *jsonrpc.Request:
			if m.Method == acknowledged && p.answerListening(true) {
				all = append(all, changed...)
			}
		}
		all = append(all, m)
	}
	return all, err
}

// isLate reports whether an answer is to a probe that was given up. One that was
// not is answered now.
func (p *pipe) isLate(id jsonrpc.ID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.probe.IsValid() || id != p.probe {
		return false
	}
	late := !p.probing
	p.probing = false
	return late
}

// listening is the id of the request to be told of changes.
func (p *pipe) listening() jsonrpc.ID {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.listen
}

// changed is what a server says when anything may be other than it was.
var changed = []jsonrpc.Message{
	&jsonrpc.Request{Method: "notifications/tools/list_changed"},
	&jsonrpc.Request{Method: "notifications/resources/list_changed"},
	&jsonrpc.Request{Method: "notifications/prompts/list_changed"},
}

// answerListening lets other requests pass if the server tells of changes now,
// or says that it does not, and reports whether that comes too late.
func (p *pipe) answerListening(answered bool) (late bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if answered && p.heard != nil {
		select {
		case <-p.heard:
		default:
			close(p.heard)
		}
		late, p.missed = p.missed, false
	}
	return late
}

// awaitListening waits until the server was heard to tell of changes, if it was
// asked to.
func (p *pipe) awaitListening(ctx context.Context) {
	p.mu.Lock()
	heard := p.heard
	p.mu.Unlock()
	if heard == nil {
		return
	}
	late := time.NewTimer(p.acking)
	defer late.Stop()
	select {
	case <-heard:
	case <-late.C:
		p.answerListening(true) // it is not waited for again
		p.mu.Lock()
		p.missed = true
		p.mu.Unlock()
	case <-p.closed:
	case <-p.ended:
	case <-ctx.Done():
	}
}

// giveUp answers the probe in the place of a server that does not.
func (p *pipe) giveUp() {
	p.mu.Lock()
	was := p.probing
	p.probing = false
	p.mu.Unlock()
	if !was {
		return
	}
	select {
	case p.messages <- &jsonrpc.Response{ID: p.probe, Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "not answered"}}:
	case <-p.closed:
	}
}

// Read is the next message.
func (p *pipe) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-p.messages:
		return m, nil
	case <-p.ended:
		return nil, p.broken
	case <-p.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write sends a message.
func (p *pipe) Write(ctx context.Context, m jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	p.awaitListening(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if r, ok := m.(*jsonrpc.Request); ok {
		switch r.Method {
		case discover:
			p.probe, p.probing = r.ID, true
			p.given = time.AfterFunc(p.patience, p.giveUp)
		case listen:
			p.listen, p.heard = r.ID, make(chan struct{})
		}
	}
	_, err = p.process.Write(append(text, '\n'))
	return err
}

// Close ends the program and waits for its end.
func (p *pipe) Close() error {
	p.end.Do(func() {
		close(p.closed)
		p.process.End(endGrace)
		<-p.ended
		if p.given != nil {
			p.given.Stop()
		}
	})
	return nil
}

// SessionID is that of HTTP; here there is none.
func (p *pipe) SessionID() string { return "" }

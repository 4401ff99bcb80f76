package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// errNoRelay reports a server that nobody passes messages on to.
var errNoRelay = errors.New("it belongs to a program that does not drive this session")

// relay is the connection with a server that is a part of the program which
// drives the session. Every message is passed on, and answered, by itself.
type relay struct {
	server   string
	pass     func(ctx context.Context, server string, message json.RawMessage) (json.RawMessage, error)
	messages chan jsonrpc.Message
	life     context.Context
	end      context.CancelFunc
	passing  sync.WaitGroup
}

// Connect makes relay a [sdk.Transport].
func (r *relay) Connect(context.Context) (sdk.Connection, error) { return r, nil }

// Read is the next message of the server.
func (r *relay) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-r.messages:
		return m, nil
	case <-r.life.Done():
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write passes a message on. Its answer is read when it comes.
func (r *relay) Write(ctx context.Context, m jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	if r.life.Err() != nil {
		return io.ErrClosedPipe
	}
	r.passing.Go(func() {
		request, _ := m.(*jsonrpc.Request)
		answer, err := r.pass(r.life, r.server, text)
		if request == nil || !request.IsCall() {
			return // nobody waits for an answer
		}
		back, decodeErr := jsonrpc.DecodeMessage(answer)
		if err != nil || decodeErr != nil {
			back = &jsonrpc.Response{ID: request.ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: errors.Join(err, decodeErr).Error()}}
		}
		select {
		case r.messages <- back:
		case <-r.life.Done():
		}
	})
	return ctx.Err()
}

// Close ends it.
func (r *relay) Close() error {
	r.end()
	r.passing.Wait()
	return nil
}

// SessionID is that of HTTP; here there is none.
func (r *relay) SessionID() string { return "" }

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"coder/internal/core/message"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// errNoRelay is the error of an SDK server without a relay.
var errNoRelay = errors.New("the server is part of a program that does not drive this session")

// relayTransport is the connection to a server inside the program that drives
// the session. Each message is sent and answered separately.
type relayTransport struct {
	server   string
	send     func(ctx context.Context, server string, message json.RawMessage) (json.RawMessage, error)
	messages chan jsonrpc.Message
	ctx      context.Context
	cancel   context.CancelFunc
	wg       sync.WaitGroup
}

// Connect makes relay an [sdk.Transport].
func (r *relayTransport) Connect(context.Context) (sdk.Connection, error) { return r, nil }

// Read returns the server's next message.
func (r *relayTransport) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-r.messages:
		return m, nil
	case <-r.ctx.Done():
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write sends a message. Read returns its answer when it comes.
func (r *relayTransport) Write(ctx context.Context, m jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return message.Errorf("encode a message: %w", err)
	}
	if r.ctx.Err() != nil {
		return io.ErrClosedPipe
	}
	r.wg.Go(func() {
		request, _ := m.(*jsonrpc.Request)
		answer, err := r.send(r.ctx, r.server, text)
		if request == nil || !request.IsCall() {
			return // nobody waits for an answer
		}
		back, decodeErr := jsonrpc.DecodeMessage(answer)
		if err != nil || decodeErr != nil {
			back = &jsonrpc.Response{ID: request.ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeInternalError,
				Message: errors.Join(err, decodeErr).Error()}}
		}
		select {
		case r.messages <- back:
		case <-r.ctx.Done():
		}
	})
	return ctx.Err()
}

// Close closes the connection.
func (r *relayTransport) Close() error {
	r.cancel()
	r.wg.Wait()
	return nil
}

// SessionID returns "": only HTTP has session ids.
func (r *relayTransport) SessionID() string { return "" }

package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"coder/internal/core/message"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// agentConn is the connection to an agent that uses coder's tools: one message per line. An invalid line only
// gets an error answer: running calls continue. At the end of input, earlier requests are answered first.
type agentConn struct {
	out       io.Writer
	messages  chan jsonrpc.Message
	closed    chan struct{}
	closeOnce sync.Once

	mu           sync.Mutex          // guards writing and the fields below
	requests     map[jsonrpc.ID]bool // the agent's requests; true if canceled
	sentRequests map[jsonrpc.ID]bool // requests to the agent
	inputEnded   bool                // the input has ended
	allAnswered  chan struct{}       // closed once the input has ended and all is answered
	answeredOnce sync.Once
}

func newAgentConn(in io.Reader, out io.Writer) *agentConn {
	s := &agentConn{out: out, messages: make(chan jsonrpc.Message), closed: make(chan struct{}),
		allAnswered: make(chan struct{}), requests: make(map[jsonrpc.ID]bool), sentRequests: make(map[jsonrpc.ID]bool)}
	go s.receive(bufio.NewReaderSize(in, 64<<10)) // ends with in, or with its next line
	return s
}

// Connect makes served an [sdk.Transport].
func (s *agentConn) Connect(context.Context) (sdk.Connection, error) { return s, nil }

// receive reads lines until the input ends.
func (s *agentConn) receive(in *bufio.Reader) {
	for {
		line, err := readLine(in, true)
		if errors.Is(err, errMessageTooLong) {
			s.rejectLine(nil, jsonrpc.CodeParseError, fmt.Sprintf("this line has more than %d MB", maxMessage>>20))
			continue
		}
		for _, m := range s.decode(line) {
			select {
			case s.messages <- m:
			case <-s.closed:
				return
			}
		}
		if err != nil {
			// The input has ended: requests to the agent stay unanswered.
			s.mu.Lock()
			s.inputEnded = true
			asked := slices.Collect(maps.Keys(s.sentRequests))
			s.finishIfAnswered()
			s.mu.Unlock()
			for _, id := range asked {
				s.answerForAgent(id)
			}
			return
		}
	}
}

// decode returns the messages in a line. It answers invalid ones with an error.
func (s *agentConn) decode(line []byte) (all []jsonrpc.Message) {
	if line = bytes.TrimSpace(line); len(line) == 0 {
		return nil
	}
	raw := []json.RawMessage{line}
	if !json.Valid(line) || line[0] == '[' && json.Unmarshal(line, &raw) != nil {
		s.rejectLine(nil, jsonrpc.CodeParseError, "this line is not JSON")
		return nil
	}
	for _, r := range raw {
		m, err := jsonrpc.DecodeMessage(r)
		if err != nil {
			var of struct{ ID json.RawMessage }
			_ = json.Unmarshal(r, &of) // without an id, the answer has id null
			s.rejectLine(of.ID, jsonrpc.CodeInvalidRequest, "not a message of the protocol")
			continue
		}
		s.recordMessage(m)
		all = append(all, m)
	}
	return all
}

// recordMessage records what must be answered.
func (s *agentConn) recordMessage(m jsonrpc.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch m := m.(type) {
	case *jsonrpc.Response:
		delete(s.sentRequests, m.ID)
	case *jsonrpc.Request:
		if m.IsCall() {
			s.requests[m.ID] = false
			return
		}
		var of struct{ RequestID any }
		if m.Method != "notifications/cancelled" || json.Unmarshal(m.Params, &of) != nil {
			return
		}
		if id, err := jsonrpc.MakeID(of.RequestID); err == nil {
			if _, is := s.requests[id]; is {
				s.requests[id] = true
			}
		}
	}
}

// rejectLine answers an invalid line.
func (s *agentConn) rejectLine(id json.RawMessage, code int, why string) {
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// a write error does not matter
	_, _ = fmt.Fprintf(s.out, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`+"\n", id, code, why)
}

// answerForAgent answers for an agent whose input has ended.
func (s *agentConn) answerForAgent(id jsonrpc.ID) {
	select {
	case s.messages <- &jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: jsonrpc.CodeInternalError,
		Message: "the connection is closed"}}:
	case <-s.closed:
	}
}

// finishIfAnswered ends reading once everything is answered. The caller holds s.mu.
func (s *agentConn) finishIfAnswered() {
	if s.inputEnded && len(s.requests) == 0 {
		s.answeredOnce.Do(func() { close(s.allAnswered) })
	}
}

// Read returns the next message.
func (s *agentConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-s.messages:
		return m, nil
	case <-s.allAnswered:
	case <-s.closed:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return nil, io.EOF
}

// Write sends a message. It does not answer canceled requests.
func (s *agentConn) Write(ctx context.Context, m jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return message.Errorf("encode a message: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch m := m.(type) {
	case *jsonrpc.Response:
		back := s.requests[m.ID]
		delete(s.requests, m.ID)
		defer s.finishIfAnswered()
		if back {
			return nil
		}
	case *jsonrpc.Request:
		if !m.IsCall() {
			break
		}
		if s.inputEnded {
			go s.answerForAgent(m.ID) // ends when that is read, or with the connection
			return nil
		}
		s.sentRequests[m.ID] = true
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	_, err = s.out.Write(append(text, '\n'))
	return err
}

// Close closes the connection.
func (s *agentConn) Close() error {
	s.closeOnce.Do(func() { close(s.closed) })
	return nil
}

// SessionID returns "": only HTTP has session ids.
func (s *agentConn) SessionID() string { return "" }

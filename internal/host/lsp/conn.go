package lsp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"coder/internal/core/clip"
	"coder/internal/core/message"
)

const (
	maxOutbox    = 2 * maxFrame     // bytes
	writeTimeout = 20 * time.Second // limit for a write to the server
)

// A transport is a connection to a server. Reads end when the server ends or the line is closed.
type transport interface {
	io.Reader
	io.Writer
	// Close kills the server and ends reads and writes. It may be called repeatedly and at any time, and
	// does not wait.
	Close() error
	// Wait waits until the whole server has ended.
	Wait()
	// ExitReport returns the server's last error output, if any.
	ExitReport() string
}

// conn speaks JSON-RPC over a line. Sending never blocks: messages wait in an outbox until the server
// reads them.
type conn struct {
	transport      transport
	onRequest      func(method string, params json.RawMessage) (any, error) // answers the server's requests
	onNotification func(method string, params json.RawMessage)              // handles its notifications
	received       atomic.Int64                                             // messages received
	wake           chan struct{}                                            // signals that the outbox is not empty
	done           chan struct{}                                            // closed when the connection ends
	outboxLimit    int                                                      // maximum size of the outbox in bytes

	mu          sync.Mutex // guards the fields below
	nextID      int64
	pending     map[int64]chan rpcMessage // calls that wait for an answer
	outbox      [][]byte
	outboxBytes int   // bytes in the outbox
	err         error // why the connection ended
}

// message is any JSON-RPC message: a request has a method and an id, a notification only a method, an
// answer only an id.
type rpcMessage struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *replyError     `json:"error,omitempty"`
}

// replyError is an error response, from the server or from coder.
type replyError struct {
	Code    int64  `json:"code"`
	Message string `json:"message"`
}

func (e *replyError) Error() string { return clip.Truncate(e.Message, maxMessage) }

// Is makes every replyError match [ErrRefused].
func (e *replyError) Is(target error) bool { return target == ErrRefused }

// Error codes that coder sends or handles.
const (
	methodNotFound  = -32601
	internalError   = -32603
	contentModified = -32801
	serverCancelled = -32802
)

// run transfers messages until the connection ends, then closes the line.
func (c *conn) run() {
	var writer sync.WaitGroup
	writer.Go(c.writeLoop)
	c.closeWith(c.readLoop())
	writer.Wait()
	c.transport.Wait()
}

// closeWith closes the connection. Only the first reason is kept.
func (c *conn) closeWith(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = why
	close(c.done)
	c.transport.Close()
}

// endError returns the error for calls on an ended connection.
func (c *conn) endError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == io.EOF {
		return errServerExited
	}
	return message.Errorf("%w: %w", errServerExited, c.err)
}

// readLoop handles the server's messages until it stops or sends invalid data.
func (c *conn) readLoop() error {
	r := bufio.NewReaderSize(c.transport, 64<<10)
	for {
		body, err := readFrame(r)
		if err != nil {
			return err
		}
		var m rpcMessage
		if err := json.Unmarshal(body, &m); err != nil {
			return message.Errorf("read a message: %w", err)
		}
		c.received.Add(1)
		switch {
		case m.Method == "":
			var id int64
			if json.Unmarshal(m.ID, &id) != nil {
				continue
			}
			c.mu.Lock()
			if answer, ok := c.pending[id]; ok { // the call is still waiting
				delete(c.pending, id)
				answer <- m // buffered
			}
			c.mu.Unlock()
		case len(m.ID) == 0:
			c.onNotification(m.Method, m.Params)
		default:
			answer := rpcMessage{ID: m.ID}
			result, err := c.onRequest(m.Method, m.Params)
			if err == nil {
				answer.Result, err = json.Marshal(result)
			}
			if err != nil && !errors.As(err, &answer.Error) {
				answer.Error = &replyError{internalError, err.Error()}
			}
			_ = c.send(answer) // fails only if the connection has ended
		}
	}
}

// call sends a request and decodes the answer into result. When ctx ends, call cancels the request and
// returns ctx.Err().
func (c *conn) call(ctx context.Context, method string, params, result any) error {
	answer := make(chan rpcMessage, 1)
	c.mu.Lock()
	c.nextID++
	id := c.nextID
	c.pending[id] = answer
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.pending, id)
		c.mu.Unlock()
	}()
	if err := c.sendMessage(rpcMessage{ID: json.RawMessage(fmt.Sprint(id)), Method: method}, params); err != nil {
		return err
	}
	select {
	case m := <-answer:
		return m.decode(result)
	case <-ctx.Done():
		_ = c.notify("$/cancelRequest", map[string]int64{"id": id})
		return ctx.Err()
	case <-c.done:
	}
	select {
	case m := <-answer: // arrived just before the end
		return m.decode(result)
	default:
		return c.endError()
	}
}

func (m rpcMessage) decode(result any) error {
	if m.Error != nil {
		return m.Error
	}
	if result == nil || len(m.Result) == 0 {
		return nil
	}
	if err := json.Unmarshal(m.Result, result); err != nil {
		return message.Errorf("read the answer: %w", err)
	}
	return nil
}

func (c *conn) notify(method string, params any) error {
	return c.sendMessage(rpcMessage{Method: method}, params)
}

func (c *conn) sendMessage(m rpcMessage, params any) (err error) {
	if params != nil {
		if m.Params, err = json.Marshal(params); err != nil {
			return message.Errorf("write %s: %w", m.Method, err)
		}
	}
	return c.send(m)
}

func (c *conn) send(m rpcMessage) error {
	m.Version = "2.0"
	body, err := json.Marshal(m)
	if err != nil {
		return message.Errorf("write a message: %w", err)
	}
	b := encodeFrame(body)
	c.mu.Lock()
	switch {
	case c.err != nil:
		c.mu.Unlock()
		return c.endError()
	case c.outboxBytes+len(b) > c.outboxLimit:
		c.mu.Unlock()
		c.closeWith(errors.New("does not read input"))
		return c.endError()
	}
	c.outbox, c.outboxBytes = append(c.outbox, b), c.outboxBytes+len(b)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return nil
}

// writeLoop sends the outbox until the connection ends. It gives up on a server that does not read in time.
func (c *conn) writeLoop() {
	for {
		select {
		case <-c.wake:
		case <-c.done:
			return
		}
		for b := c.takeOutbox(); b != nil; b = c.takeOutbox() {
			late := time.AfterFunc(writeTimeout, func() { c.closeWith(errors.New("does not read input")) })
			_, err := c.transport.Write(b)
			late.Stop()
			if err != nil {
				c.closeWith(message.Errorf("write to it: %w", err))
				return
			}
		}
	}
}

func (c *conn) takeOutbox() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.outbox) == 0 {
		return nil
	}
	b := c.outbox[0]
	c.outbox, c.outboxBytes = c.outbox[1:], c.outboxBytes-len(b)
	return b
}

const (
	maxFrame        = 64 << 20 // bytes per message
	maxHeader       = 4 << 10  // bytes per header line
	maxLines        = 16       // header lines per message
	maxShownGarbage = 80       // bytes of garbage shown in an error
)

var errTooLarge = errors.New("message is too large")

// readFrame reads the next message: header lines, an empty line, and the body. It returns io.EOF only
// between messages. It allocates memory as data arrives, not by the announced length.
func readFrame(r *bufio.Reader) ([]byte, error) {
	size := int64(-1)
	for n := 0; ; n++ {
		if n == maxLines {
			return nil, message.Errorf("header of more than %d lines", maxLines)
		}
		line, err := readLine(r)
		if err == io.EOF && n == 0 && line == "" {
			return nil, io.EOF
		}
		if err != nil {
			return nil, message.Errorf("read a header: %w", asUnexpectedEOF(err))
		}
		if line == "" {
			break
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, message.Errorf("not a header line: %.*q", maxShownGarbage, line)
		}
		if !strings.EqualFold(strings.TrimSpace(name), "Content-Length") {
			continue
		}
		announced, err := strconv.ParseUint(strings.TrimSpace(value), 10, 63)
		switch {
		case err != nil:
			return nil, message.Errorf("not a length: %.*q", maxShownGarbage, line)
		case size >= 0:
			return nil, errors.New("header with two lengths")
		case announced > maxFrame:
			return nil, message.Errorf("%w: %d bytes", errTooLarge, announced)
		}
		size = int64(announced)
	}
	if size < 0 {
		return nil, errors.New("header without a Content-Length")
	}
	var body bytes.Buffer
	if _, err := io.CopyN(&body, r, size); err != nil {
		return nil, message.Errorf("read a message of %d bytes: %w", size, asUnexpectedEOF(err))
	}
	return body.Bytes(), nil
}

func readLine(r *bufio.Reader) (string, error) {
	var line []byte
	for {
		b, err := r.ReadByte()
		if err != nil {
			return string(line), err
		}
		if b == '\n' {
			return string(bytes.TrimSuffix(line, []byte("\r"))), nil
		}
		if line = append(line, b); len(line) > maxHeader {
			return "", message.Errorf("header line is too long: %.*q", maxShownGarbage, line)
		}
	}
}

// asUnexpectedEOF turns an EOF within a message into io.ErrUnexpectedEOF.
func asUnexpectedEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

func encodeFrame(body []byte) []byte {
	return fmt.Appendf(nil, "Content-Length: %d\r\n\r\n%s", len(body), body)
}

// Package acp is the face for editors that speak the Agent Client Protocol: JSON-RPC over lines. The
// editor opens sessions and sends prompts. It receives text, thoughts, plans and calls as they happen,
// and requests for approval.
package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"coder/internal/core/jsonx"
	"coder/internal/core/message"
	"coder/internal/ui/drive"
)

// Version is the protocol version.
const Version = 1

// Error codes.
const (
	CodeInvalidRequest = -32600 // neither a request nor a response
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
	CodeAuthRequired   = -32000
	CodeNotFound       = -32002 // unknown session or resource
)

// Error is a JSON-RPC error.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

func (e *Error) Error() string { return e.Message }

// Message is a line from either side.
type Message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *Error          `json:"error,omitempty"`
}

// IsRequest reports whether the message expects a response.
func (m Message) IsRequest() bool { return m.Method != "" && len(m.ID) > 0 && string(m.ID) != "null" }

// DecodeParams decodes the request's parameters into params. A request may have none.
func (m Message) DecodeParams(params any) error {
	if len(m.Params) == 0 {
		return nil
	}
	err := json.Unmarshal(m.Params, params)
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind) && kind.Field != "":
		return &Error{Code: CodeInvalidParams,
			Message: fmt.Sprintf("the parameters cannot be read: %s is a %s, and must not be", kind.Field, kind.Value)}
	case err != nil:
		return &Error{Code: CodeInvalidParams, Message: "the parameters cannot be read: they must be an object"}
	}
	return nil
}

// Conn is the connection to the editor. Its methods are safe for concurrent use.
type Conn struct {
	requests drive.Requests

	mu sync.Mutex // guards writing
	w  io.Writer
}

// NewConn returns a Conn that writes to w.
func NewConn(w io.Writer) *Conn { return &Conn{w: w} }

func (c *Conn) write(m Message) error {
	m.Version = "2.0"
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.w.Write(append(jsonx.MustMarshal(m), '\n')); err != nil {
		return message.Errorf("write to the editor: %w", err)
	}
	return nil
}

// Notify sends the editor a notification.
func (c *Conn) Notify(method string, params any) error {
	return c.write(Message{Method: method, Params: jsonx.MustMarshal(params)})
}

// Call sends the editor a request and decodes the response into into.
func (c *Conn) Call(ctx context.Context, method string, params, into any) error {
	text, err := c.requests.Do(ctx,
		func(id string) error {
			return c.write(Message{ID: json.RawMessage(id), Method: method, Params: jsonx.MustMarshal(params)})
		},
		func(string) error { return nil }) // an editor that cancels a turn voids its questions itself
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return message.Errorf("read the editor's answer to %s: %w", method, err)
	}
	return nil
}

// readTimeout is the timeout for reading a file from the editor.
const readTimeout = 5 * time.Second

// ReadFile returns the text of a file as it is in the editor. It reports false if the editor does not
// answer.
func (c *Conn) ReadFile(ctx context.Context, session, path string) (text string, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var file struct {
		Content *string `json:"content"`
	}
	err := c.Call(ctx, "fs/read_text_file", map[string]string{"sessionId": session, "path": path}, &file)
	if err != nil || file.Content == nil {
		return "", false
	}
	return *file.Content, true
}

// Reply responds to a request from the editor.
func (c *Conn) Reply(id json.RawMessage, result any, err error) error {
	if err == nil {
		if result == nil {
			result = struct{}{}
		}
		return c.write(Message{ID: id, Result: jsonx.MustMarshal(result)})
	}
	var known *Error
	if !errors.As(err, &known) {
		known = &Error{Code: CodeInternal, Message: err.Error()}
	}
	return c.write(Message{ID: id, Error: known})
}

// HandleResponse delivers a response from the editor.
func (c *Conn) HandleResponse(m Message) {
	var err error
	if m.Error != nil {
		err = m.Error
	}
	c.requests.Deliver(string(bytes.TrimSpace(m.ID)), m.Result, err)
}

// Close means that the editor sends no more messages.
func (c *Conn) Close() { c.requests.Close() }

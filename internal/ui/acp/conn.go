// Package acp is the face for editors that speak the Agent Client Protocol:
// JSON-RPC over lines, in which the editor opens sessions and sends prompts, and
// is told of text, thoughts, plans and calls as they happen and asked about what
// needs a yes.
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
	"coder/internal/ui/drive"
)

// Version is that of the protocol.
const Version = 1

// The codes of errors.
const (
	CodeInvalid  = -32600 // a message that is neither a request nor an answer
	CodeNoMethod = -32601
	CodeParams   = -32602
	CodeInternal = -32603
	CodeAuth     = -32000
	CodeUnknown  = -32002 // session or resource
)

// Error is an answer that says what went wrong.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

func (e *Error) Error() string { return e.Message }

// Message is a line of either side.
type Message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *Error          `json:"error,omitempty"`
}

// IsRequest reports whether the message wants an answer.
func (m Message) IsRequest() bool { return m.Method != "" && len(m.ID) > 0 && string(m.ID) != "null" }

// Into reads the parameters of a request, which may have none.
func (m Message) Into(params any) error {
	if len(m.Params) == 0 {
		return nil
	}
	err := json.Unmarshal(m.Params, params)
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind) && kind.Field != "":
		return &Error{Code: CodeParams, Message: fmt.Sprintf("the parameters cannot be read: %s is a %s, and must not be", kind.Field, kind.Value)}
	case err != nil:
		return &Error{Code: CodeParams, Message: "the parameters cannot be read: they must be an object"}
	}
	return nil
}

// Conn is the way to the editor. Its methods may be called by several
// goroutines.
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
	if _, err := c.w.Write(append(jsonx.Must(m), '\n')); err != nil {
		return fmt.Errorf("write to the editor: %w", err)
	}
	return nil
}

// Notify tells the editor something.
func (c *Conn) Notify(method string, params any) error {
	return c.write(Message{Method: method, Params: jsonx.Must(params)})
}

// Call asks the editor for something and reads its answer.
func (c *Conn) Call(ctx context.Context, method string, params, into any) error {
	text, err := c.requests.Do(ctx,
		func(id string) error {
			return c.write(Message{ID: json.RawMessage(id), Method: method, Params: jsonx.Must(params)})
		},
		func(string) error { return nil }) // an editor that cancels a turn knows that its questions are void
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("read the editor's answer to %s: %w", method, err)
	}
	return nil
}

// bufferPatience is how long an editor may take to say what a file holds.
const bufferPatience = 5 * time.Second

// ReadFile is the text of a file as it stands in the editor. It reports false
// where the editor does not say.
func (c *Conn) ReadFile(ctx context.Context, session, path string) (text string, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, bufferPatience)
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

// Reply answers a request of the editor.
func (c *Conn) Reply(id json.RawMessage, result any, err error) error {
	if err == nil {
		if result == nil {
			result = struct{}{}
		}
		return c.write(Message{ID: id, Result: jsonx.Must(result)})
	}
	var known *Error
	if !errors.As(err, &known) {
		known = &Error{Code: CodeInternal, Message: err.Error()}
	}
	return c.write(Message{ID: id, Error: known})
}

// Answer takes an answer of the editor.
func (c *Conn) Answer(m Message) {
	var err error
	if m.Error != nil {
		err = m.Error
	}
	c.requests.Answer(string(bytes.TrimSpace(m.ID)), m.Result, err)
}

// Close says that the editor sends no more.
func (c *Conn) Close() { c.requests.Close() }

// Package control is the protocol by which programs written for another agent drive a session over JSON
// lines: requests and responses in both directions, beside the messages of
// [coder/internal/ui/streamjson].
package control

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"coder/internal/agent/orchestrator"
	"coder/internal/core/chat"
	"coder/internal/core/message"
	"coder/internal/tool/bash"
	"coder/internal/ui/drive"
	"coder/internal/ui/streamjson"
)

// Line is a line from the program.
type Line struct {
	Type           string          `json:"type"`
	RequestID      json.RawMessage `json:"request_id"`
	Request        json.RawMessage `json:"request"`
	Response       json.RawMessage `json:"response"`
	Message        json.RawMessage `json:"message"`
	UUID           string          `json:"uuid"`
	ClientComposed bool            `json:"client_composed"`
	ShouldQuery    *bool           `json:"shouldQuery"`
	Priority       string          `json:"priority"`
}

// Request is a control request from the program.
type Request struct {
	Subtype string `json:"subtype"`

	// for interrupt
	CancelQueued bool `json:"cancel_queued"`
	// for set_permission_mode and set_model
	Mode  string  `json:"mode"`
	Model *string `json:"model"`
	// for mcp_reconnect and mcp_toggle
	Server  string `json:"serverName"`
	Enabled bool   `json:"enabled"`
	// for rewind_files
	MessageID string `json:"user_message_id"`
	DryRun    bool   `json:"dry_run"`
	// for mcp_set_servers and reload_plugins
	Servers map[string]json.RawMessage `json:"servers"`
	Plugins []struct {
		Path string `json:"path"`
	} `json:"add_plugins"`
	// for stop_task
	Task string `json:"task_id"`
	// for set_max_thinking_tokens; nil means the settings' value
	Thinking *int `json:"max_thinking_tokens"`
}

// PluginDirs returns the folders of plugins to add.
func (r Request) PluginDirs() (dirs []string) {
	for _, p := range r.Plugins {
		dirs = append(dirs, p.Path)
	}
	return dirs
}

// ToMessage returns the text and images of the line's message. Text names content that a model cannot
// receive.
func (l Line) ToMessage() (drive.Message, error) {
	m := drive.Message{Input: orchestrator.Input{Verbatim: l.ClientComposed}, ID: l.UUID,
		MidTurn: l.Priority == "now" || l.Priority == "next"}
	var message struct {
		Content json.RawMessage `json:"content"`
	}
	_ = json.Unmarshal(l.Message, &message) // a message that is not an object has no content
	whose := chat.OriginTyped
	if l.ClientComposed {
		whose = chat.OriginComposed
	}
	var plain string
	if json.Unmarshal(message.Content, &plain) == nil {
		m.UserText = chat.NewUserText(whose, plain)
		return m, nil
	}
	var blocks []struct {
		Type    string          `json:"type"`
		Text    string          `json:"text"`
		Content json.RawMessage `json:"content"`
		Source  struct {
			Type  string `json:"type"`
			Media string `json:"media_type"`
			Data  string `json:"data"`
			URL   string `json:"url"`
		} `json:"source"`
	}
	if json.Unmarshal(message.Content, &blocks) != nil {
		return m, errors.New("message.content must be a string or a list of blocks")
	}
	add := func(from chat.Origin, text string) {
		if len(m.UserText) > 0 {
			text = "\n" + text
		}
		m.UserText = append(m.UserText, chat.TextPiece{Origin: from, Text: text})
	}
	for _, b := range blocks {
		switch {
		case b.Type == "text":
			add(whose, b.Text)
		case b.Type == "image" && b.Source.Type == "base64":
			data, err := base64.StdEncoding.DecodeString(b.Source.Data)
			if err != nil {
				return m, errors.New("the data of an image is not base64")
			}
			m.Pictures = append(m.Pictures, chat.Image{MediaType: b.Source.Media, Data: data})
		case b.Type == "document" && b.Source.Type == "text":
			add(chat.OriginAttached, b.Source.Data)
		case b.Type == "tool_result":
			add(chat.OriginAttached, string(b.Content))
		default:
			add(chat.OriginAttached, fmt.Sprintf("[a block of type %s was omitted]", b.Type))
		}
	}
	return m, nil
}

// Channel sends messages to the program.
type Channel struct {
	WriteLine func(line any) error // writes a line between the others
	Root      string               // the workspace, to make paths absolute
	// DecidesCalls is set if the program wants to decide about calls.
	DecidesCalls atomic.Bool
	// ApplyUpdate applies a permission change that the program makes along with its answer.
	ApplyUpdate func(Update)

	requests drive.Requests
}

type answerLine struct {
	Type     string     `json:"type"`
	Response answerBody `json:"response"`
}

type answerBody struct {
	Subtype   string          `json:"subtype"`
	RequestID json.RawMessage `json:"request_id"`
	Response  any             `json:"response,omitempty"`
	Error     string          `json:"error,omitempty"`
}

// Reply responds to the program's request with a payload or an error. A response to a line that is not a
// request has no id.
func (c *Channel) Reply(id json.RawMessage, payload any, err error) error {
	if len(id) == 0 {
		id = json.RawMessage(`""`)
	}
	if err != nil {
		return c.WriteLine(answerLine{"control_response", answerBody{Subtype: "error", RequestID: id, Error: err.Error()}})
	}
	if payload == nil {
		payload = struct{}{}
	}
	return c.WriteLine(answerLine{"control_response", answerBody{Subtype: "success", RequestID: id, Response: payload}})
}

// HandleResponse delivers a response from the program.
func (c *Channel) HandleResponse(l Line) error {
	var r struct {
		Subtype   string          `json:"subtype"`
		RequestID string          `json:"request_id"`
		Error     string          `json:"error"`
		Response  json.RawMessage `json:"response"`
	}
	if json.Unmarshal(l.Response, &r) != nil {
		return errors.New("the answer cannot be read: response must be an object with subtype, request_id and response")
	}
	var err error
	if r.Subtype == "error" {
		err = message.Errorf("%w: %s", errRefused, r.Error)
	}
	if !c.requests.Deliver(r.RequestID, r.Response, err) {
		return message.Errorf("no request %q to answer", r.RequestID)
	}
	return nil
}

// errRefused is an error response without a message.
var errRefused = errors.New("the program answered with an error")

// Close means that the program sends no more messages.
func (c *Channel) Close() { c.requests.Close() }

// sendRequest sends the program a request and decodes the response.
func (c *Channel) sendRequest(ctx context.Context, request, into any) error {
	type line struct {
		Type    string `json:"type"`
		ID      string `json:"request_id"`
		Request any    `json:"request,omitempty"`
	}
	text, err := c.requests.Do(ctx,
		func(id string) error { return c.WriteLine(line{"control_request", id, request}) },
		func(id string) error { return c.WriteLine(line{"control_cancel_request", id, nil}) })
	if err == nil && len(text) > 0 {
		err = json.Unmarshal(text, into)
	}
	return err
}

// RunHook asks the program to run one of its hook functions for an event.
func (c *Channel) RunHook(ctx context.Context, id string, input json.RawMessage) (output json.RawMessage, err error) {
	var about struct {
		Call  string `json:"tool_use_id"`
		Event string `json:"hook_event_name"`
	}
	_ = json.Unmarshal(input, &about) // an event without a call has no id
	request := struct {
		Subtype string          `json:"subtype"`
		ID      string          `json:"callback_id"`
		Input   json.RawMessage `json:"input"`
		Call    *string         `json:"tool_use_id"`
	}{"hook_callback", id, input, nil}
	if about.Call != "" {
		request.Call = &about.Call
	}
	switch err = c.sendRequest(ctx, request, &output); {
	case errors.Is(err, streamjson.ErrTooLong):
		return nil, bash.ErrTooLarge
	case errors.Is(err, drive.ErrGone) && about.Event == "SessionEnd":
		return json.RawMessage("{}"), nil // a program that ended the session need not run the hook
	}
	return output, err
}

// Relay forwards a message to an MCP server inside the program.
func (c *Channel) Relay(ctx context.Context, server string, message json.RawMessage) (json.RawMessage, error) {
	request := struct {
		Subtype string          `json:"subtype"`
		Server  string          `json:"server_name"`
		Message json.RawMessage `json:"message"`
	}{"mcp_message", server, message}
	var answer struct {
		Response json.RawMessage `json:"mcp_response"`
	}
	err := c.sendRequest(ctx, request, &answer)
	return answer.Response, err
}

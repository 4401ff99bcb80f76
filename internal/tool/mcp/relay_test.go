package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

// inProcess answers as a server that is a part of another program.
func inProcess(_ context.Context, server string, message json.RawMessage) (json.RawMessage, error) {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ Name string }
	}
	if err := json.Unmarshal(message, &m); err != nil {
		return nil, err
	}
	if m.ID == nil {
		return json.RawMessage(`{"jsonrpc":"2.0","result":{}}`), nil // as programs acknowledge what wants no answer
	}
	result := map[string]string{
		"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"calc","version":"1"}}`,
		"tools/list": `{"tools":[{"name":"add","description":"adds","inputSchema":{"type":"object"}},{"name":"hang","inputSchema":{"type":"object"}}]}`,
		"tools/call": `{"content":[{"type":"text","text":"three, of ` + server + `"}]}`,
	}[m.Method]
	if m.Params.Name == "hang" {
		return nil, errors.New("the program is gone")
	}
	return json.RawMessage(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":` + result + `}`), nil
}

func TestAServerInTheProgramThatDrivesIsReachedByMessages(t *testing.T) {
	w := &world{}
	w.Host = New(Options{Servers: []Server{{Name: "calc", Type: Relay}}, Root: t.TempDir(), Now: time.Now, Warn: func(string) {}, Relay: inProcess})
	defer w.Close()
	w.up(t)
	if _, text, err := w.call(t, t.Context(), "mcp__calc__add", `{}`); err != nil || !strings.Contains(text, "three, of calc") {
		t.Errorf("%s, %v", text, err)
	}
	if _, text, err := w.call(t, t.Context(), "mcp__calc__hang", `{}`); err == nil || !strings.Contains(err.Error(), "the program is gone") {
		t.Errorf("%s, %v", text, err)
	}
}

func TestWithoutThatProgramThereIsNoSuchServer(t *testing.T) {
	var told []string
	h := New(Options{Servers: []Server{{Name: "calc", Type: Relay}}, Root: t.TempDir(), Now: time.Now, Warn: func(s string) { told = append(told, s) }})
	h.Settle(t.Context(), time.Minute)
	if err := h.Close(); err != nil || len(told) != 1 || !strings.Contains(told[0], "does not drive this session") {
		t.Errorf("%v, told %q", err, told)
	}
}

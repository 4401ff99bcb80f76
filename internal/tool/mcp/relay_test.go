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
	h.WaitReady(t.Context(), time.Minute)
	if err := h.Close(); err != nil || len(told) != 1 || !strings.Contains(told[0], "does not drive this session") {
		t.Errorf("%v, told %q", err, told)
	}
}

func TestAServerIsSwitchedOffAndOn(t *testing.T) {
	w := &world{}
	w.Host = New(Options{Servers: []Server{{Name: "calc", Type: Relay}, {Name: "later", Type: Relay, Disabled: true}}, Root: t.TempDir(), Now: time.Now, Warn: func(string) {}, Relay: inProcess})
	defer w.Close()
	w.up(t)
	state := func(i int, want State) {
		t.Helper()
		for w.Status()[i].State != want { // the test's own time limit ends this
			time.Sleep(time.Millisecond)
		}
	}
	there := func() int { all, _ := w.Tools(); return len(all) }
	had := there()
	for range 2 { // the second time it is so already
		if !w.SetEnabled("Calc", false) || w.Status()[0].State != Disabled || len(w.Status()[0].Tools) != 0 || there() != 0 {
			t.Errorf("off: %+v, %d tools", w.Status()[0], there())
		}
	}
	w.Reconnect("calc") // does not switch it on
	state(0, Disabled)
	if w.SetEnabled("calc", true); had == 0 {
		t.Error("it had no tools")
	}
	if state(0, Ready); there() != had {
		t.Errorf("on: %d tools, had %d", there(), had)
	}
	if _, text, err := w.call(t, t.Context(), "mcp__calc__add", `{}`); err != nil || !strings.Contains(text, "three") {
		t.Errorf("%s, %v", text, err)
	}
	state(1, Disabled)
	w.SetEnabled("later", true)
	state(1, Ready)
	if w.SetEnabled("unheard of", true) {
		t.Error("one that is not there was switched on")
	}
}

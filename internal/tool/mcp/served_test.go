package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"coder/internal/core/uip"
)

// A line that is no message is answered and ends nothing; what was asked before
// the end is answered; what was taken back is not.
func TestServingGoesOnAfterALineThatIsNoMessage(t *testing.T) {
	in, lines := io.Pipe()
	replies, out := io.Pipe()
	running, finish := make(chan string, 3), make(chan struct{})
	offer := OfferedTool{Name: "wait", Doc: "waits", Schema: json.RawMessage(`{"type":"object"}`), Run: func(ctx context.Context, args json.RawMessage, _ func(string)) (OfferedResult, error) {
		running <- string(args)
		if strings.Contains(string(args), "ask") {
			<-finish
			a, err := ClientInteractor.Ask(ctx, uip.Request{ID: "q", Purpose: uip.PurposeRequestInfo})
			if err != nil || !a.IsUnanswered() {
				t.Errorf("a question after the end is answered by %+v, %v", a, err)
			}
			return OfferedResult{Text: "done"}, nil
		}
		select {
		case <-finish:
		case <-ctx.Done():
		}
		return OfferedResult{Text: "done"}, nil
	}}
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(t.Context(), in, out, "1", []OfferedTool{offer})
		_ = out.Close()
	}()
	got := bufio.NewReader(replies)
	say := func(text string) {
		t.Helper()
		if _, err := io.WriteString(lines, text+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	hear := func(parts ...string) {
		t.Helper()
		line, err := got.ReadString('\n')
		for _, part := range parts {
			if err != nil || !strings.Contains(line, part) {
				t.Fatalf("heard %.300s, %v; want %s", line, err, part)
			}
		}
	}
	say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`)
	hear(`"id":1`)
	say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait","arguments":{}}}`)
	<-running
	for _, bad := range []string{"hello", "{", "[1,2", strings.Repeat("x", maxMessage+100)} {
		say(bad)
		hear(`"id":null`, `"code":-32700`)
	}
	say(`{"jsonrpc":"1.0","id":7,"method":"ping"}`)
	hear(`"id":7`, `"code":-32600`)
	say(`[]`)
	say(`{"jsonrpc":"2.0","id":"x","method":"ping"}`)
	hear(`"id":"x","result"`)
	say(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"wait","arguments":{}}}`)
	<-running
	say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
	say(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"wait","arguments":{"ask":true}}}`)
	<-running
	if err := lines.Close(); err != nil {
		t.Fatal(err)
	}
	close(finish)
	rest, err := io.ReadAll(got)
	text := string(rest)
	if err != nil || !strings.Contains(text, `"id":2,"result"`) || !strings.Contains(text, `"id":4,"result"`) || strings.Contains(text, `"id":3`) {
		t.Errorf("in the end there is\n%s%v", text, err)
	}
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}

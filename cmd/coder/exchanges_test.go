package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/testkit/providertest"
)

// TestExchangesWithProviders plays what providers send to the whole program and
// wants the answer and the calls that a correct client makes of it.
func TestExchangesWithProviders(t *testing.T) {
	for wire, kind := range map[string]string{"chat": "openai", "responses": "responses", "messages": "anthropic", "gemini": "gemini"} {
		for _, x := range providertest.Exchanges(t, wire) {
			t.Run(kind+"/"+x.Name, func(t *testing.T) {
				t.Parallel()
				play(t, kind, x)
			})
		}
	}
}

func play(t *testing.T, kind string, r providertest.Exchange) {
	p := newProgram(t)
	p.file("conf.json", fmt.Sprintf(`{"provider": {"kind": %q, "max_retries": %d}}`, kind, max(r.Errors, 1)))
	p.env = append(p.env, "CODER_BASE_URL="+r.Serve(t, 0)+"/v1", "CODER_API_KEY=k", "CODER_MODEL=m", "CODER_TEST_FAST=1")
	out, stderr, code := p.run("-p", "--auto-approve", "--session-id", "s1", "--config", "conf.json", "go")
	if r.Failure != nil {
		if code == 0 || !strings.Contains(stderr, r.Failure.Message) {
			t.Errorf("code %d, want the words %q\n%s", code, r.Failure.Message, stderr)
		}
		return
	}
	if !r.EndsOpen && (code != 0 || strings.TrimSpace(out) != strings.TrimSpace(r.FinalText)) {
		t.Errorf("answer %q, code %d, want %q\n%s", out, code, r.FinalText, stderr)
	}
	recs, err := readSession(p.ws, "s1")
	if err != nil {
		t.Fatal(err)
	}
	var calls []chat.ToolCall
	for _, rec := range recs {
		if m, ok := rec.Event.(event.MessageAdded); ok {
			calls = append(calls, m.Message.Calls()...)
		}
	}
	if len(calls) != len(r.Calls) {
		t.Fatalf("%d calls, want %d", len(calls), len(r.Calls))
	}
	for i, c := range calls {
		var args any
		if err := json.Unmarshal(c.Args, &args); err != nil || c.Name != r.Calls[i].Name || !reflect.DeepEqual(args, r.Calls[i].Arguments) {
			t.Errorf("call %d is %s %s, want %s %v", i, c.Name, c.Args, r.Calls[i].Name, r.Calls[i].Arguments)
		}
	}
}

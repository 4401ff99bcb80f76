package seal_test

import (
	"encoding/json"
	"testing"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/host/authkey"
	"coder/internal/record/seal"
)

// A step of a turn: a reply with a call, the call, its completion.
func BenchmarkStep(b *testing.B) {
	n := seal.New(authkey.NewTemporary(), "/w", "s")
	args := json.RawMessage(`{"path":"internal/x/y.go","old_string":"one","new_string":"two"}`)
	for b.Loop() {
		for i, e := range []event.Event{
			event.MessageAdded{Message: chat.Message{Role: chat.Assistant, Parts: []chat.Part{chat.Text("now"), chat.ToolCall{ID: "c", Name: "edit", Args: args}}}},
			event.ToolCallRequested{CallID: "c", Tool: "edit", Input: args, Effects: []event.Effect{{Kind: event.EffectWrite, Target: "internal/x/y.go"}}},
			event.ToolCallCompleted{CallID: "c", Tool: "edit"},
		} {
			r := event.Record{Seq: uint64(i + 1), Task: "t", Actor: "main", Event: e}
			n.Seal(&r)
		}
	}
}

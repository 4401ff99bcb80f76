package seal_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/core/uip"
	"coder/internal/host/authkey"
	"coder/internal/record/seal"
	"coder/testkit/eventtest"
)

// kept is r as it is read again.
func kept(t *testing.T, r event.Record) event.Record {
	t.Helper()
	read := reflect.New(reflect.TypeOf(r.Event))
	if err := json.Unmarshal(jsonx.MustMarshal(r.Event), read.Interface()); err != nil {
		t.Fatal(err)
	}
	r.Event = read.Elem().Interface().(event.Event)
	return r
}

// bears lists the events that something may later be done because of.
func bears(e event.Event) bool {
	switch e := e.(type) {
	case event.TaskCreated, event.InteractionResponded, event.ToolCallRequested, event.ToolCallCompleted, event.ModeChanged:
		return true
	case event.MessageAdded:
		return len(e.Message.Calls()) > 0 && e.Message.Role == chat.Assistant
	}
	return false
}

func TestWhatWasSealedIsVouchedForWhenItIsReadAgain(t *testing.T) {
	key := authkey.NewTemporary()
	odd := "a\xff\ufffd<b>\u2028"
	events := append(eventtest.Samples(),
		event.ToolCallRequested{CallID: odd, Tool: "write", Input: json.RawMessage("{ \"path\" :\n\"x\u2028\" }"), Effects: []event.Effect{{Kind: event.EffectWrite, Target: ""}}},
		event.TaskCreated{TaskID: "t", Intent: odd},
		event.MessageAdded{Message: chat.Message{Role: chat.Assistant, Parts: []chat.Part{chat.Text("done")}}},
		event.MessageAdded{Message: chat.Message{Role: chat.User, Parts: []chat.Part{chat.ToolCall{ID: "u", Name: "write"}}}},
		event.InteractionRequested{Request: uip.Request{ID: "u", Display: uip.Display{Title: odd}}},
		event.InteractionResponded{Response: uip.Response{ID: "u", Input: odd}},
		event.MessageAdded{Message: chat.Message{Role: chat.Assistant, Parts: []chat.Part{chat.Text("hm"), chat.ToolCall{ID: odd, Name: "write", Args: json.RawMessage("{ \"a\":\t\"" + "\u2028" + "\" }")}}}},
	)
	writer, reader := seal.New(key, "/w", "s"), seal.New(key, "/w", "s")
	for i, e := range events {
		if _, foreign := e.(event.Unknown); foreign || event.LogOf(e) == event.LogNone {
			continue
		}
		r := event.Record{Seq: uint64(i + 1), Session: "s", Task: "t", Actor: "user", Event: e}
		writer.Seal(&r)
		if got := reader.HasValidSeal(kept(t, r)); got != bears(e) || got != (r.Seal != "") {
			t.Errorf("%T: vouched %v, seal %q", e, got, r.Seal)
		}
	}
}

func TestASealHoldsForOneRecordInOnePlace(t *testing.T) {
	key := authkey.NewTemporary()
	question := event.Record{Seq: 6, Task: "t", Event: event.InteractionRequested{Request: uip.Request{ID: "u", Display: uip.Display{Title: "bash rm x"}}}}
	answer := event.Record{Seq: 7, Task: "t", Actor: "user", Event: event.InteractionResponded{Response: uip.Response{ID: "u", Option: uip.OptionApprove}}}
	n := seal.New(key, "/w", "s")
	n.Seal(&question)
	n.Seal(&answer)
	edited := question
	edited.Event = event.InteractionRequested{Request: uip.Request{ID: "u", Display: uip.Display{Title: "bash go test"}}}
	change := func(do func(*event.Record)) event.Record { r := answer; do(&r); return r }
	for _, tt := range []struct {
		name     string
		n        *seal.Sealer
		question event.Record
		answer   event.Record
		want     bool
	}{
		{"not changed", seal.New(key, "/w", "s"), question, answer, true},
		{"another key", seal.New(authkey.NewTemporary(), "/w", "s"), question, answer, false},
		{"no key", seal.New(nil, "/w", "s"), question, answer, false},
		{"another folder", seal.New(key, "/v", "s"), question, answer, false},
		{"another session", seal.New(key, "/w", "r"), question, answer, false},
		{"another place", seal.New(key, "/w", "s"), question, change(func(r *event.Record) { r.Seq = 8 }), false},
		{"another task", seal.New(key, "/w", "s"), question, change(func(r *event.Record) { r.Task = "v" }), false},
		{"another actor", seal.New(key, "/w", "s"), question, change(func(r *event.Record) { r.Actor = "main" }), false},
		{"no seal", seal.New(key, "/w", "s"), question, change(func(r *event.Record) { r.Seal = "" }), false},
		{"another question", seal.New(key, "/w", "s"), edited, answer, false},
		{"another answer", seal.New(key, "/w", "s"), question, change(func(r *event.Record) {
			r.Event = event.InteractionResponded{Response: uip.Response{ID: "u", Option: uip.OptionAlways}}
		}), false},
	} {
		tt.n.HasValidSeal(tt.question)
		if got := tt.n.HasValidSeal(tt.answer); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

// What is taken from a snapshot was heard from no model.
func TestWhatIsBroughtBackFromASnapshotIsNotSealed(t *testing.T) {
	n := seal.New(authkey.NewTemporary(), "/w", "s")
	r := event.Record{Seq: 1, Actor: event.ActorRecovery, Event: event.MessageAdded{Message: chat.Message{
		Role: chat.Assistant, Parts: []chat.Part{chat.ToolCall{ID: "c", Name: "bash", Args: json.RawMessage(`{}`)}},
	}}}
	if n.Seal(&r); r.Seal != "" {
		t.Error("it was sealed")
	}
}

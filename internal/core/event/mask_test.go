package event_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/secret"
	"coder/internal/core/uip"
)

const (
	key     = "known-0123456789"
	another = "ghp_0123456789abcdefghijklmnop"
)

// Every text of every kind of event is masked, also of those that are added later.
func TestEveryFieldIsMasked(t *testing.T) {
	c := secret.NewConcealer([]string{key})
	for _, e := range []event.Event{
		event.TaskCreated{}, event.TaskStarted{}, event.TaskCompleted{}, event.TaskFailed{}, event.TaskCanceled{}, event.InteractionRequested{}, event.InteractionResponded{},
		event.ToolCallRequested{}, event.ToolCallCompleted{}, event.MessageAdded{}, event.LocalAdded{}, event.Spent{}, event.TodosChanged{}, event.ModeChanged{},
		event.ContextReplaced{}, event.Unknown{}, event.SessionOpened{}, event.TextDelta{}, event.ReasoningDelta{}, event.Retrying{}, event.ToolStarted{}, event.ToolOutput{}, event.ToolProgress{},
		event.ToolFinished{}, event.Interrupted{}, event.Notice{},
	} {
		v := reflect.New(reflect.TypeOf(e)).Elem()
		fill(v, 0)
		full := v.Interface().(event.Event)
		before, _ := json.Marshal(full)
		got, err := json.Marshal(event.Mask(full, c))
		if err != nil || strings.Contains(string(got), key) || strings.Contains(string(got), "ghp_0123456789") || !secret.HasMask(got) {
			t.Errorf("%T: %v: %s", e, err, got)
		}
		if after, _ := json.Marshal(full); string(after) != string(before) {
			t.Errorf("%T: what was given was changed", e)
		}
		plain := reflect.New(reflect.TypeOf(e)).Elem().Interface().(event.Event)
		if !reflect.DeepEqual(event.Mask(plain, c), plain) {
			t.Errorf("%T without a key became another", e)
		}
	}
}

// fill puts keys into whatever holds text, but for the state of files.
func fill(v reflect.Value, depth int) {
	text := "a " + key + " and " + another
	switch {
	case depth > 6 || v.Type() == reflect.TypeFor[event.FileState]():
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		v.SetBytes([]byte(`{"x":["` + text + `"]}`))
	case v.Type() == reflect.TypeFor[event.Effect]():
		v.Set(reflect.ValueOf(event.Effect{Kind: event.EffectExec, Target: text}))
	case v.Type() == reflect.TypeFor[display.Block]():
		v.Set(reflect.ValueOf(display.Shell{Command: text, Stdout: text}))
	case v.Type() == reflect.TypeFor[chat.Part]():
		v.Set(reflect.ValueOf(chat.ToolResult{Text: `{"out":"` + text + `"}`}))
	case v.Kind() == reflect.String:
		v.SetString(text)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i), depth+1)
			}
		}
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), depth+1)
		fill(v.Index(1), depth+1)
	case v.Kind() == reflect.Map:
		one := reflect.New(v.Type().Elem()).Elem()
		fill(one, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("name").Convert(v.Type().Key()), one)
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1)
	}
}

// What a provider signed comes back as it was, or not at all.
func TestSignedThinking(t *testing.T) {
	c := secret.NewConcealer([]string{key})
	signed := json.RawMessage(`[{"type":"thinking","length":5,"signature":"x-sk-0123456789abcdef0123456789=="}]`)
	for name, p := range map[string]struct{ was, want chat.Part }{
		"nothing in it":           {chat.Reasoning{Text: "think", Field: "anthropic", Details: signed}, chat.Reasoning{Text: "think", Field: "anthropic", Details: signed}},
		"a key in the words":      {chat.Reasoning{Text: "use " + key, Field: "anthropic", Details: signed}, chat.Reasoning{Text: "use " + secret.KeyMask, Field: "anthropic"}},
		"a key beside the words":  {chat.Reasoning{Field: "r", Details: json.RawMessage(`[{"text":"` + key + `"}]`)}, chat.Reasoning{Field: "r"}},
		"what belongs to a call":  {chat.ToolCall{ID: "1", Args: json.RawMessage(`{}`), Extra: signed}, chat.ToolCall{ID: "1", Args: json.RawMessage(`{}`), Extra: signed}},
		"a key in the arguments":  {chat.ToolCall{ID: "1", Args: json.RawMessage(`{"a":"` + key + `"}`), Extra: signed}, chat.ToolCall{ID: "1", Args: json.RawMessage(`{"a":"` + secret.KeyMask + `"}`), Extra: signed}},
		"a picture":               {chat.Image{MediaType: "image/png", Data: []byte(key)}, chat.Image{MediaType: "image/png", Data: []byte(key)}},
		"arguments that are none": {chat.ToolCall{Args: json.RawMessage(`{}`), Broken: `{"a":"` + another}, chat.ToolCall{Args: json.RawMessage(`{}`), Broken: `{"a":"ghp_01…[masked]`}},
	} {
		was := event.MessageAdded{Message: chat.Message{Role: chat.Assistant, Parts: []chat.Part{p.was}}}
		if got := event.Mask(was, c).(event.MessageAdded).Message.Parts[0]; !reflect.DeepEqual(got, p.want) {
			t.Errorf("%s: %+v, want %+v", name, got, p.want)
		}
	}
}

func TestAMessageWithoutAKeyIsTheSameMessage(t *testing.T) {
	m := chat.Message{Role: chat.Assistant, Parts: []chat.Part{chat.Text("a"), chat.ToolCall{ID: "1", Args: json.RawMessage(`{"x":1}`)}}}
	got := event.Mask(event.MessageAdded{Message: m}, secret.ShapeConcealer()).(event.MessageAdded).Message
	if !chat.IsSame(got, m) {
		t.Error("it is another")
	}
}

func TestTheStateOfFilesStaysTrue(t *testing.T) {
	e := event.ToolCallCompleted{Changes: []event.FileChange{{After: event.FileState{Path: "a/" + another, Hash: "h"}}}}
	if !reflect.DeepEqual(event.Mask(e, secret.ShapeConcealer()), e) {
		t.Error("it was changed")
	}
	var q event.Event = event.InteractionRequested{Request: uip.Request{Display: uip.Display{Content: display.Diff{Unified: "+" + another}}}}
	if d := event.Mask(q, secret.ShapeConcealer()).(event.InteractionRequested).Display.Content.(display.Diff); d.Unified != "+ghp_01…[masked]" {
		t.Errorf("%+v", d)
	}
}

func BenchmarkMasked(b *testing.B) {
	c := secret.NewConcealer([]string{key})
	e := event.MessageAdded{Message: chat.ToolMessage(chat.ToolResult{CallID: "c", Name: "bash", Text: `{"stdout":"` + strings.Repeat("ok  coder/internal/x 0.01s\\n", 150) + `"}`})}
	b.ReportAllocs()
	for b.Loop() {
		event.Mask(e, c)
	}
}

package event_test

import (
	"encoding/json"
	"testing"

	"coder/internal/core/event"
	"coder/internal/core/jsonx"
)

// TestEffectsOnRecordStayAsTheyWere: what an earlier version wrote is read, and
// written again byte by byte, kinds that nobody knows included.
func TestEffectsOnRecordStayAsTheyWere(t *testing.T) {
	for text, want := range map[string]event.Effect{
		`"read a <b> & c"`:        {Kind: event.EffectRead, Target: "a <b> & c"},
		`"exec printf 'x  y'"`:    {Kind: event.EffectExec, Target: "printf 'x  y'"},
		`"write "`:                {Kind: event.EffectWrite},
		`"net https://x.org/\\n"`: {Kind: event.EffectNet, Target: `https://x.org/\n`},
		`"note todo list"`:        {Kind: event.EffectNote, Target: "todo list"},
		`"unknown "`:              {},
		`"teleport to x"`:         {Target: "to x"},
		`"read"`:                  {},
		`"READ x"`:                {Target: "x"},
	} {
		var got event.Effect
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		if got.Kind != want.Kind || got.Target != want.Target {
			t.Errorf("%s is read as %v of %q", text, got.Kind, got.Target)
		}
		if again := jsonx.MustMarshal(got); string(again) != text {
			t.Errorf("%s is written again as %s", text, again)
		}
	}
}

// TestWhatACallTouchesIsToldInWords: kinds and the program's own notes are told in the
// reader's language; what people named is not.
func TestWhatACallTouchesIsToldInWords(t *testing.T) {
	say := func(s string) string { return "<" + s + ">" }
	var other event.Effect
	if err := json.Unmarshal([]byte(`"teleport to x"`), &other); err != nil {
		t.Fatal(err)
	}
	call := event.ToolCallRequested{Tool: "x", Effects: []event.Effect{
		{Kind: event.EffectRead, Target: "plan"}, {Kind: event.EffectNote, Target: "plan"}, other,
	}}
	if got, want := call.DescribeEffects(say), "<reads> plan; <notes> <the plan>; teleport to x"; got != want {
		t.Errorf("told as %q, want %q", got, want)
	}
	call = event.ToolCallRequested{Tool: "skill", Effects: []event.Effect{{Kind: event.EffectNote, Target: "plan"}}}
	if got, want := call.DescribeEffects(say), "<notes> plan"; got != want {
		t.Errorf("told as %q, want %q", got, want)
	}
}

package event_test

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"coder/internal/core/event"
)

// A name comes back from the record byte for byte, and what is on record is text.
func TestNamesOfFilesAreBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytes := rapid.SliceOf(rapid.ByteRange(1, 255))
		s := event.FileState{Path: string(bytes.Draw(t, "path")), Link: string(bytes.Draw(t, "link")), Hash: "h", Mode: 0o644, Size: 3}
		data, err := json.Marshal(event.FileChange{Before: s, After: event.FileState{Path: s.Path}, Doubt: event.DoubtOther})
		if err != nil || !utf8.Valid(data) {
			t.Fatalf("%q: %v", data, err)
		}
		var back event.FileChange
		if err := json.Unmarshal(data, &back); err != nil || back.Before != s || back.After.Path != s.Path || back.Doubt != event.DoubtOther {
			t.Fatalf("%q came back as %+v: %v", data, back, err)
		}
		if !utf8.ValidString(event.DisplayName(s.Path)) {
			t.Fatalf("shown as %q", event.DisplayName(s.Path))
		}
	})
	if got := event.DisplayName("a\xff b\xfeü\nc\x1b"); got != `a\xff b\xfeü\x0ac\x1b` {
		t.Errorf("shown as %q", got)
	}
}

package term_test

import (
	"bytes"
	"strings"
	"testing"

	"coder/internal/event"
	"coder/internal/render/term"
)

// A line that is whole is ended at once, so that what stands below the stream
// can be seen, and the stream is the same as if it had come in one piece.
func TestWholeLinesAreEndedAtOnce(t *testing.T) {
	running := []event.Record{
		{Event: event.ToolCallRequested{CallID: "c", Tool: "bash"}},
		{Event: event.ToolStarted{CallID: "c", Tool: "bash"}},
	}
	tests := []struct {
		name   string
		before []event.Record
		piece  func(text string) event.Event
	}{
		{"answer", nil, func(s string) event.Event { return event.TextDelta{Text: s} }},
		{"thinking", nil, func(s string) event.Event { return event.ReasoningDelta{Text: s} }},
		{"output", running, func(s string) event.Event { return event.ToolOutput{CallID: "c", Text: s} }},
	}
	pieces := []string{"one\n", "two", " and\n\n", "three\n", "four"}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			told := func(pieces ...string) string {
				var b bytes.Buffer
				r := term.New(term.Options{Out: &b})
				emit := func(rec event.Record) {
					if err := r.Emit(t.Context(), rec); err != nil {
						t.Fatal(err)
					}
				}
				for _, rec := range tt.before {
					emit(rec)
				}
				for _, p := range pieces {
					emit(event.Record{Event: tt.piece(p)})
					if strings.HasSuffix(p, "\n") != strings.HasSuffix(b.String(), "\n") {
						t.Errorf("after %q the stream ends %q", p, b.String())
					}
				}
				return b.String()
			}
			whole := strings.Join(pieces, "")
			if got, want := told(pieces...), told(whole); got != want || !strings.Contains(got, "one\ntwo and\n\nthree\nfour") {
				t.Errorf("in pieces %q, in one %q", got, want)
			}
		})
	}
}

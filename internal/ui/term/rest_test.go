package term_test

import (
	"bytes"
	"strings"
	"testing"

	"coder/internal/core/event"
	"coder/internal/ui/term"
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
		held   bool // until a line is whole
	}{
		{"answer", nil, func(s string) event.Event { return event.TextDelta{Text: s} }, false},
		{"thinking", nil, func(s string) event.Event { return event.ReasoningDelta{Text: s} }, false},
		{"output", running, func(s string) event.Event { return event.ToolOutput{CallID: "c", Text: s} }, true},
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
					if ends := strings.HasSuffix(b.String(), "\n"); ends != (tt.held || strings.HasSuffix(p, "\n")) {
						t.Errorf("after %q the stream ends %q", p, b.String())
					}
				}
				return b.String()
			}
			whole := strings.Join(pieces, "")
			if got, want := told(pieces...), told(whole); got != want || !strings.Contains(got, "one\ntwo and\n\nthree\n") || strings.Contains(got, "four") == tt.held {
				t.Errorf("in pieces %q, in one %q", got, want)
			}
		})
	}
}

func TestAKeyInTheOutputOfACommandIsMaskedHoweverItArrives(t *testing.T) {
	text := "API_KEY=abcdefghijklmnop123\nnext\n"
	for cut := range len(text) {
		var b bytes.Buffer
		r := term.New(term.Options{Out: &b})
		for _, e := range []event.Event{
			event.ToolCallRequested{CallID: "c", Tool: "bash"}, event.ToolStarted{CallID: "c", Tool: "bash"},
			event.ToolOutput{CallID: "c", Text: text[:cut]}, event.ToolOutput{CallID: "c", Text: text[cut:]},
		} {
			if err := r.Emit(t.Context(), event.Record{Event: e}); err != nil {
				t.Fatal(err)
			}
		}
		if got := b.String(); strings.Contains(got, "abcdefghij") || !strings.Contains(got, "API_KEY=…[masked]\nnext") {
			t.Fatalf("cut at %d: %q", cut, got)
		}
	}
}

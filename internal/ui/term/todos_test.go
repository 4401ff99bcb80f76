package term_test

import (
	"slices"
	"testing"

	"coder/internal/core/display"
	"coder/internal/ui/term"
)

func TestALongListShowsTheItemsAtWork(t *testing.T) {
	done, now, open := display.StateCompleted, display.StateInProgress, display.StatePending
	d := term.Activity{Todos: display.Checklist{{State: done, Text: "a"}, {State: done, Text: "b"}, {State: now, Text: "a long item"}, {State: open, Text: "d"}, {State: open, Text: "e"}}}
	o := term.Options{Translator: term.English{}}
	for most, want := range map[int][]string{
		1: nil,
		3: {"☑ b", "◐ a long…", "2 more todos"},
		4: {"☑ b", "◐ a long…", "☐ d", "☐ e"},
		5: {"☑ a", "☑ b", "◐ a long…", "☐ d", "☐ e"},
	} {
		if got := d.TodoRows(11, most, o); !slices.Equal(got, want) {
			t.Errorf("%d rows: %q, want %q", most, got, want)
		}
	}
}

package term_test

import (
	"strings"
	"testing"
	"time"

	"coder/internal/core/event"
	"coder/internal/ui/term"
	"coder/internal/ui/term/ink"
)

// What comes while a paragraph or a block of code is arriving does not tear it: it is
// seen at once, and is put when that has ended.
func TestNothingTearsAParagraph(t *testing.T) {
	cost := event.LocalAdded{Input: "/cost", Output: "it cost nothing"}
	said := func(text string) event.Event { return event.TextDelta{Text: text} }
	thought := func(text string) event.Event { return event.ReasoningDelta{Text: text} }
	for _, tt := range []struct {
		name   string
		events []event.Event // nil: the command is answered here
		want   string
	}{
		{"before the first word has ended", []event.Event{said("Todo"), nil, said(" set.\n")}, "[ANSWER]\nTodo set.\n\n> /cost\n\nit cost nothing\n"},
		{"in a line that is broken", []event.Event{said("the quick brown fox jumps over "), nil, said("the lazy dog\n\nand more")}, "[ANSWER]\nthe quick brown fox\njumps over the lazy\ndog\n\n> /cost\n\nit cost nothing\n\nand more\n"},
		{"in a block of code", []event.Event{said("```\na\n"), nil, said("b\n```\n  - c")}, "[ANSWER]\n```\na\nb\n```\n\n> /cost\n\nit cost nothing\n\n  - c\n"},
		{"in a thought", []event.Event{thought("it is "), nil, thought("so\n"), said("yes")}, "[THINKING]\nit is so\n\n> /cost\n\nit cost nothing\n\n[ANSWER]\nyes\n"},
		{"twice", []event.Event{said("half a "), nil, nil, said("line")}, "[ANSWER]\nhalf a line\n\n> /cost\n\nit cost nothing\n\n> /cost\n\nit cost nothing\n"},
		{"between paragraphs", []event.Event{said("one\n\n"), nil, said("two\n")}, "[ANSWER]\none\n\n> /cost\n\nit cost nothing\n\ntwo\n"},
		{"a notice", []event.Event{said("half a "), event.Notice{Level: event.LevelWarn, Text: "careful"}, said("line\n")}, "[ANSWER]\nhalf a line\n\ncareful\n"},
		{"cut off", []event.Event{said("half a "), nil, event.Interrupted{}}, "[ANSWER]\nhalf a\n[interrupted]\n\n> /cost\n\nit cost nothing\n\nCancelled by ESC\n"},
	} {
		var text, aside string
		r := term.New(term.Options{Width: func() int { return 20 }, Stream: func(more string, a term.PendingOutput) error {
			text, aside = text+more, a.Waiting
			return nil
		}})
		for _, e := range tt.events {
			if e != nil {
				emit(t, r, e)
				continue
			}
			if err := r.WriteAnswer("> /cost", cost); err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(strings.TrimSpace(text+aside), "> /cost\n\nit cost nothing") {
				t.Errorf("%s: what is asked is not seen: %q, %q", tt.name, text, aside)
			}
		}
		if err := r.EndReply(); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(text, tt.want) || aside != "" {
			t.Errorf("%s: got %q, want %q; %q is still beside it", tt.name, text, tt.want, aside)
		}
	}
}

// What the program itself has to say meanwhile waits as well.
func TestARemarkTearsNoParagraph(t *testing.T) {
	var text string
	r := term.New(term.Options{Width: func() int { return 40 }, Stream: func(more string, _ term.PendingOutput) error {
		text += more
		return nil
	}})
	emit(t, r, event.TextDelta{Text: "half a "})
	if err := r.PrintLines([]ink.Span{{Text: "a server has ended"}}); err != nil {
		t.Fatal(err)
	}
	emit(t, r, event.TextDelta{Text: "line\n\nand more\n"})
	if want := "[ANSWER]\nhalf a line\n\na server has ended\n\nand more\n"; text != want {
		t.Errorf("got %q, want %q", text, want)
	}
}

// A line that something long comes into goes on below it in a whole row, set in as before.
func TestALineGoesOnBelowALongAnswer(t *testing.T) {
	var text string
	r := term.New(term.Options{Width: func() int { return 24 }, Room: func() int { return 1 }, Stream: func(more string, _ term.PendingOutput) error {
		text += more
		return nil
	}})
	emit(t, r, event.TextDelta{Text: "- an item with a few "})
	if err := r.WriteAnswer("> /cost", event.LocalAdded{Input: "/cost", Output: "it cost\nnothing"}); err != nil {
		t.Fatal(err)
	}
	emit(t, r, event.TextDelta{Text: "words that go on and on\n"})
	if err := r.EndReply(); err != nil {
		t.Fatal(err)
	}
	if want := "[ANSWER]\n- an item with a few\n\n> /cost\n\nit cost\nnothing\n\n  words that go on and\n  on\n"; text != want {
		t.Errorf("got %q, want %q", text, want)
	}
}

// What is longer than there is room for beside a paragraph is put whole, and the paragraph
// goes on below it: at once, or where there is a clock after a moment in which the line may
// end.
func TestALongAnswerBreaksAParagraph(t *testing.T) {
	const torn, whole = "[ANSWER]\nhalf a\n\n> /cost\n\nit cost\nnothing\n\nline and more\n", "[ANSWER]\nhalf a line and more\n\n> /cost\n\nit cost\nnothing\n"
	now := time.Unix(0, 0)
	clock := func() time.Time { return now }
	for name, tt := range map[string]struct {
		room   int
		clock  func() time.Time
		passes time.Duration
		want   string
	}{
		"no room":                     {2, nil, 0, torn},
		"room":                        {5, nil, 0, whole},
		"the line ends at once":       {2, clock, 0, whole},
		"it ends in time":             {2, clock, time.Second, whole},
		"it does not end in a moment": {2, clock, 2 * time.Second, torn},
	} {
		var text, aside string
		r := term.New(term.Options{Width: func() int { return 80 }, Room: func() int { return tt.room }, Now: tt.clock, Stream: func(more string, a term.PendingOutput) error {
			text, aside = text+more, a.Waiting
			return nil
		}})
		emit(t, r, event.TextDelta{Text: "half a "})
		if err := r.WriteAnswer("> /cost", event.LocalAdded{Input: "/cost", Output: "it cost\nnothing"}); err != nil {
			t.Fatal(err)
		}
		if seen := text + aside; !strings.HasSuffix(strings.TrimSpace(seen), "it cost\nnothing") {
			t.Errorf("%s: what is asked is not seen: %q", name, seen)
		}
		now = now.Add(tt.passes)
		if err := r.FlushOverdue(); err != nil {
			t.Fatal(err)
		}
		emit(t, r, event.TextDelta{Text: "line and more\n"})
		if err := r.EndReply(); err != nil {
			t.Fatal(err)
		}
		if text != tt.want {
			t.Errorf("%s: got %q, want %q", name, text, tt.want)
		}
	}
}

package term_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/ui/term"
	"coder/internal/ui/term/ink"
	"coder/testkit/rendertest"
)

// narrow plays records on a terminal whose width may change meanwhile.
func narrow(t *testing.T, width *int, play func(*term.Renderer)) string {
	t.Helper()
	w := &checked{t: t}
	play(term.New(term.Options{Out: w, Width: func() int { return *width }}))
	return w.String()
}

func emit(t *testing.T, r *term.Renderer, events ...event.Event) {
	t.Helper()
	for _, e := range events {
		rendertest.Play(t, r, []event.Record{{Task: "t", Event: e}})
	}
}

func command(id string) event.ToolCallRequested {
	return event.ToolCallRequested{CallID: id, Effects: []event.Effect{{Kind: event.EffectExec}}}
}

// Of commands that run side by side, whatever one prints stands below its own name.
func TestOutputStandsBelowItsName(t *testing.T) {
	started := func(id string) event.ToolStarted {
		return event.ToolStarted{CallID: id, Tool: "bash", Title: "run " + id}
	}
	ended := func(id string) event.ToolFinished {
		return event.ToolFinished{CallID: id, Tool: "bash", Title: "run " + id, Summary: "exit 0", Duration: time.Second}
	}
	width := 80
	got := narrow(t, &width, func(r *term.Renderer) {
		emit(t, r, command("a"), command("b"), started("a"), started("b"),
			event.ToolOutput{CallID: "b", Text: "from b\n"}, ended("b"),
			event.ToolOutput{CallID: "a", Text: "from a\n"},
			event.LocalAdded{Input: "/cost", Output: "it cost nothing"},
			event.ToolOutput{CallID: "a", Text: "more of a\n"}, ended("a"))
	})
	const want = "[bash] run a\n[bash] run b\nfrom b\n  ✓ exit 0 · 1 s\n[bash] run a\nfrom a\n\nit cost nothing\n\n[bash] run a\nmore of a\n  ✓ exit 0 · 1 s\n"
	if got = strings.ReplaceAll(got, "\u00a0", " "); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// What is said in words is broken between them: how a call ended, what another agent
// answers, what is wrong with a command, a table that is turned into lists.
func TestWordsOfAllKindsAreKeptWhole(t *testing.T) {
	const words = "this answer is somewhat longer than the terminal is wide and must be broken twice"
	width := 30
	for name, events := range map[string][]event.Event{
		"task":    {event.ToolStarted{CallID: "c", Tool: "task", Title: "x"}, event.ToolFinished{CallID: "c", Tool: "task", Title: "x", Summary: "done", Content: display.Text(words)}},
		"outcome": {event.ToolStarted{CallID: "c", Tool: "edit", Title: "x"}, event.ToolFinished{CallID: "c", Tool: "edit", Title: "x", Failed: true, Summary: words}},
		"command": {event.LocalAdded{Input: "/x", Output: words, Failed: true}},
		"table":   {event.TextDelta{Text: "| name | this head is long | and so is this |\n|---|---|---|\n| a | " + words + " | " + words + " |\n\n"}},
	} {
		got := narrow(t, &width, func(r *term.Renderer) { emit(t, r, events...) })
		for line := range strings.SplitSeq(got, "\n") {
			if ink.Width(line) > width {
				t.Errorf("%s: a line is too wide: %q", name, line)
			}
		}
		if strings.Join(strings.Fields(got), " ") == "" || !strings.Contains(strings.Join(strings.Fields(got), " "), words) {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

// What goes wrong may take several lines to tell: they stay lines.
func TestAReasonOfSeveralLinesStaysThat(t *testing.T) {
	width := 80
	got := narrow(t, &width, func(r *term.Renderer) {
		emit(t, r, event.ToolStarted{CallID: "c", Tool: "edit", Title: "a.go"},
			event.ToolFinished{CallID: "c", Tool: "edit", Title: "a.go", Failed: true, Summary: "a.go changed on disk\n--- a/a.go\n+++ b/a.go\n-x\n+y"})
	})
	if !strings.Contains(got, "  ✗ a.go changed on disk\n    --- a/a.go\n    +++ b/a.go\n    -x\n    +y\n") {
		t.Errorf("got %q", got)
	}
}

// A paragraph that is arriving is broken for the width the terminal has by then.
func TestALineGoesOnAtAnotherWidth(t *testing.T) {
	for _, delta := range []func(string) event.Event{
		func(s string) event.Event { return event.TextDelta{Text: s} },
		func(s string) event.Event { return event.ReasoningDelta{Text: s} },
	} {
		width := 80
		got := narrow(t, &width, func(r *term.Renderer) {
			emit(t, r, delta("a word "))
			width = 20
			for range 12 {
				emit(t, r, delta("and another "))
			}
			emit(t, r, delta("end\n"), event.StateChanged{})
			if err := r.EndReply(); err != nil {
				t.Fatal(err)
			}
		})
		for line := range strings.SplitSeq(got, "\n") {
			if ink.Width(line) > width {
				t.Errorf("a line is too wide: %q in %q", line, got)
			}
		}
	}
}

// One row that is too wide goes on below itself, and stays in the columns of the others.
func TestATableKeepsItsColumnsBesideAWideRow(t *testing.T) {
	table := display.Table{Header: display.TextCells("setting", "value", "from")}
	for i := range 4 {
		table.Rows = append(table.Rows, display.DataCells(fmt.Sprintf("some.key%d", i), "1", "default"))
	}
	table.Rows = append(table.Rows, display.DataCells("wide", strings.Repeat("x", 70), "default"), display.DataCells("last", "2", "default"))
	width := 60
	got := narrow(t, &width, func(r *term.Renderer) {
		emit(t, r, event.LocalAdded{Input: "/config", Blocks: display.Blocks{table}})
	})
	blank := func(n int) string { return strings.Repeat(" ", n) }
	for _, want := range []string{
		"setting    value" + blank(37) + "from\nsome.key0  1" + blank(41) + "default\n",
		"wide       " + strings.Repeat("x", 40) + "  default\n" + blank(11) + strings.Repeat("x", 30) + "\nlast       2" + blank(41) + "default\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got:\n%s\nwithout:\n%s", got, want)
		}
	}
}

// What is held until its line is whole is seen meanwhile, in one line, the end of it; a table as far as it
// has come.
func TestWhatIsHeldBackIsSeen(t *testing.T) {
	for _, tt := range []struct{ text, want, table string }{
		{text: "a word", want: "word"},
		{text: "```go\n\tfunc main() { // it goes on and on", want: "… main() { // it goes on and on"},
		{text: "| a | b |\n", want: "| a | b |"},
		{text: "| a | b |\n|--", table: "| a | b |\n|--"},
		{text: "| a | b |\n|---|---|\n| one | tw", table: "a  b\n─  ─\n| one | tw"},
		{text: "| 一 | 二 |\n|---|---|\n| 很长很长很长很长很长很长的一行 |", table: "一  二\n──  ──\n…长很长很长很长很长很长的一行 |"},
		{text: "| a | b |\n|---|---|\n| one | two |\n", table: "a    b\n───  ───\none  two"},
		{text: "| a | b |\n|---|---|\n| one | two |\n| three |", table: "a    b\n───  ───\none  two\n| three |"},
		{text: "| a |\n|---|\n| b |\n\n| c |\n|---|\n| b |\n", table: "\nc\n─\nb"},
		{text: "##"},
	} {
		var begun, table string
		r := term.New(term.Options{Width: func() int { return 32 }, Stream: func(_ string, a term.PendingOutput) error { begun, table = a.Word, a.Table; return nil }})
		for _, line := range strings.SplitAfter(tt.text, "\n") {
			emit(t, r, event.TextDelta{Text: line})
		}
		if table != tt.table {
			t.Errorf("%q: the table %q is seen, want %q", tt.text, table, tt.table)
		}
		if got := strings.TrimSpace(begun); got != strings.TrimSpace(tt.want) || ink.Width(begun) >= 32 {
			t.Errorf("%q: %q is seen, want %q", tt.text, begun, tt.want)
		}
	}
}

// Where lines are only printed, a table that no terminal would hold is a list: it can be
// listened to. One that fits stays in columns.
func TestAWideTableIsAListWhereLinesArePrinted(t *testing.T) {
	width := 0
	for _, tt := range []struct{ cell, want string }{
		{strings.Repeat("word ", 20), "name: a\nwhat: " + strings.Repeat("word ", 19) + "word\n\nname: b\nwhat: x\n"},
		{"short", "name  what\n────  ─────\na     short\nb     x\n"},
	} {
		got := narrow(t, &width, func(r *term.Renderer) {
			emit(t, r, event.TextDelta{Text: "| name | what |\n|---|---|\n| a | " + tt.cell + " |\n| b | x |\n\n"})
			if err := r.EndReply(); err != nil {
				t.Fatal(err)
			}
		})
		if !strings.Contains(got, tt.want) {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

// What a model wrote is read, wherever it stands; source is shown as it is.
func TestProseIsReadAndSourceIsNot(t *testing.T) {
	colour := term.Options{Palette: term.Palette{Level: term.Basic}}
	const text = "a **b** c d\n\n- e f g h i j k l m\n"
	prose := term.RenderText(display.Blocks{display.Code{Lang: display.LangMarkdown, Source: text}}, 14, colour)
	if strings.Contains(prose, "**") || !strings.Contains(prose, "\n  ") {
		t.Errorf("prose: %q", prose)
	}
	if source := term.RenderText(display.Blocks{display.Code{Source: text}}, 14, colour); source != text {
		t.Errorf("source: %q", source)
	}
	var b strings.Builder
	r := term.New(term.Options{Out: &b, Width: func() int { return 14 }, Palette: colour.Palette})
	emit(t, r, event.ToolStarted{CallID: "c", Tool: "task"}, event.ToolFinished{CallID: "c", Tool: "task", Content: display.Code{Lang: display.LangMarkdown, Source: text}})
	if strings.Contains(b.String(), "**") || !strings.Contains(b.String(), "\n  ") {
		t.Errorf("of a subtask: %q", b.String())
	}
}

package term_test

import (
	"strings"
	"testing"

	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/ui/term"
	"coder/internal/ui/term/ink"
)

// Words wider than a narrow line are broken, go on set in and lose nothing.
func TestWordsWiderThanANarrowLine(t *testing.T) {
	width := 40
	const path = "/home/anna/project/.coder/log/sess_1794846541_c3f19ad9/events.jsonl"
	got := narrow(t, &width, func(r *term.Renderer) {
		_ = r.PrintLines([]ink.Span{{Style: ink.Style{Role: ink.Good}, Text: "> "}, {Text: "please look at it, at " + path}})
		_ = r.Insert(r.Cards().Draw(approval("read "+path, "path: "+path, nil, false)))
		emit(t, r, event.ToolStarted{CallID: "1", Tool: "read", Title: path}, event.ToolFinished{CallID: "1", Tool: "read", Title: path, Summary: "not found: " + path},
			event.TodosChanged{Todos: []event.Todo{{Content: "look for the log in " + path, Status: "pending"}, {Content: "then mend what is wrong with it, and test it", Status: "pending"}}},
			event.LocalAdded{Blocks: display.Blocks{display.Table{Rows: [][]display.Cell{display.DataCells("log", path)}}}},
			event.TextDelta{Text: "- see " + path + "\n"})
	})
	for line := range strings.Lines(got) {
		if w := ink.Width(strings.TrimSuffix(line, "\n")); w > width {
			t.Errorf("a line of %d columns: %s", w, line)
		}
	}
	for _, want := range []string{
		"> please look at it, at\n  /home/anna/project/.coder/log/\n  sess_1794846541_c3f19ad9/events.jsonl\n",
		"[APPROVAL] read /home/anna/project/\n    .coder/log/sess_1794846541_c3f19ad9/\n    events.jsonl\n  • path: /home/anna/project/.coder/log/\n    sess_1794846541_c3f19ad9/\n    events.jsonl\n",
		"[tool] read  /home/anna/project/.coder/\n    log/sess_1794846541_c3f19ad9/\n    events.jsonl\n",
		"  ✓ not found: /home/anna/project/\n  .coder/log/sess_1794846541_c3f19ad9/\n  events.jsonl · 0 ms\n",
		"☐ look for the log in\n  /home/anna/project/.coder/log/\n  sess_1794846541_c3f19ad9/events.jsonl\n☐ then mend what is wrong with it, and\n  test it\n",
		"log\n    /home/anna/project/.coder/log/\n    sess_1794846541_c3f19ad9/\n    events.jsonl\n",
		"- see /home/anna/project/.coder/log/\n  sess_1794846541_c3f19ad9/events.jsonl\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}

// A command that is too long for a card goes on to the letter, below a sign that none of
// its own lines can begin with, and never where the card's own lines begin.
func TestACommandGoesOnToTheLetter(t *testing.T) {
	command := "rm -rf /very/long/path/of/a/build/tree /\n  ↳ no sign of ours\ncurl https://example.com/" + strings.Repeat("x", 40) + "  -o y"
	for _, c := range []struct {
		ascii bool
		want  string
	}{
		{false, "\n    rm -rf\n  ↳ /very/long/path/of/a/build/tree /\n      <U+21B3> no sign of ours\n    curl https://example.com/\n  ↳" + strings.Repeat("x", 36) + "\n  ↳xxxx  -o y\n"},
		{true, "\n    rm -rf\n  + /very/long/path/of/a/build/tree /\n"},
	} {
		got := term.Cards{Width: func() int { return 40 }, ASCII: c.ascii}.Draw(approval("bash", "", display.Code{Lang: "sh", Source: command}, false))
		if !strings.Contains(got, c.want) {
			t.Errorf("%q is not in\n%s", c.want, got)
		}
	}
}

// What a question asks stands in it, and not once more in the lines about its call.
func TestAQuestionIsSaidOnce(t *testing.T) {
	width := 80
	for target, title := range map[string]string{"question": "Which colour?", "plan": "# The plan"} {
		got := narrow(t, &width, func(r *term.Renderer) {
			emit(t, r, event.ToolCallRequested{CallID: "1", Effects: []event.Effect{{Kind: event.EffectNote, Target: target}}},
				event.ToolStarted{CallID: "1", Tool: "asks", Title: title})
			_ = r.Insert(title)
			emit(t, r, event.ToolFinished{CallID: "1", Tool: "asks", Title: title, Summary: "blue"})
		})
		if strings.Count(got, title) != 1 || !strings.HasPrefix(got, "[tool] asks\n") || !strings.Contains(got, "✓ asks: blue") {
			t.Errorf("%s is said more than once:\n%s", title, got)
		}
		got = narrow(t, &width, func(r *term.Renderer) {
			emit(t, r, event.ToolCallRequested{CallID: "1", Effects: []event.Effect{{Kind: event.EffectNote, Target: target}}},
				event.ToolFinished{CallID: "1", Tool: "asks", Title: title, Denied: true, Summary: "no"})
		})
		if !strings.HasPrefix(got, "[tool] asks  "+title+"\n") {
			t.Errorf("what was not asked is not named:\n%s", got)
		}
	}
}

// plainWords has the sentences of the face in ASCII, as its translator has.
type plainWords struct{ term.English }

func (plainWords) T(format string, args ...any) string {
	return term.English{}.T(strings.ReplaceAll(format, "…", "..."), args...)
}

// On a terminal that shows only ASCII no sign of ours is anything else.
func TestSignsOfOursAreASCII(t *testing.T) {
	var b strings.Builder
	r := term.New(term.Options{Out: &b, Width: func() int { return 60 }, ASCII: true, Translator: plainWords{}})
	long := strings.Repeat("word ", 100)
	emit(t, r, event.ToolCallRequested{CallID: "1", Effects: []event.Effect{{Kind: event.EffectExec}}}, event.ToolStarted{CallID: "1", Tool: "bash", Title: long},
		event.ToolOutput{CallID: "1", Text: strings.Repeat("x", 3000) + "\n" + strings.Repeat("y\n", 40)}, event.ToolFinished{CallID: "1", Tool: "bash", Title: long, Summary: long},
		event.ToolFinished{CallID: "2", Tool: "read", Title: "x", Content: display.Table{Header: display.DataCells("a"), Rows: [][]display.Cell{display.DataCells("cut…")}}},
		event.TodosChanged{Todos: []event.Todo{{Content: "one…", Status: "pending"}, {Content: "two", Status: "completed"}}},
		event.LocalAdded{Blocks: display.Blocks{display.Table{Header: display.TextCells("task", "spent"), Rows: [][]display.Cell{{{Text: "a title that was cut…"}, {Text: "≥$0.10, like touch …", Words: true}}}}}})
	_ = r.Insert(r.Cards().Draw(approval(long, "risk: "+strings.Repeat(long, 3), nil, true)))
	for _, c := range b.String() {
		if c > 0x7f {
			t.Fatalf("%q is in\n%s", c, b.String())
		}
	}
	if !strings.Contains(b.String(), "a title that was cut...") || !strings.Contains(b.String(), ">=$0.10, like touch ...") {
		t.Errorf("got\n%s", b.String())
	}
}

package term_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/uip"
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

// Where nothing can be drawn anew, what a command of the person prints is put line by
// line, once, with how it ended below it.
func TestOutputOfACommandFlows(t *testing.T) {
	var b bytes.Buffer
	r := term.New(term.Options{Out: &b, ShowImmediately: true})
	said := func(role chat.Role, text string, blocks ...display.Block) event.Event {
		return event.MessageAdded{Message: chat.TextMessage(role, text), Blocks: blocks}
	}
	for _, step := range []struct {
		e    event.Event
		want string
	}{
		{said(chat.User, "!make all"), ""},
		{event.ToolStarted{CallID: "c", Tool: "bash"}, "[COMMAND]\n$ make all\n"},
		{event.ToolOutput{CallID: "c", Text: "one\ntw"}, "one\n"},
		{event.ToolProgress{CallID: "c", Line: "10%"}, ""},
		{event.ToolOutput{CallID: "c", Text: "o\nAPI_KEY=abcdefgh"}, "two\n"},
		{event.ToolOutput{CallID: "c", Text: "ijklmnop123"}, ""},
		{event.ToolFinished{CallID: "c", Tool: "bash"}, "API_KEY=…[masked]\n"},
		{said(chat.Assistant, "", display.Shell{Command: "make all", HasRun: true, ExitCode: 2, DurationMs: 7, Stdout: "one\ntwo\n", Error: "late"}), "exit=2 duration=7ms\nlate\n"},
		{event.TaskCompleted{}, ""},
		{said(chat.User, "!!true"), ""},
		{event.ToolStarted{CallID: "d", Tool: "bash"}, "\n[COMMAND]\n$ true\n"},
		{event.ToolFinished{CallID: "d", Tool: "bash"}, ""},
		{said(chat.Assistant, "", display.Shell{Command: "true", HasRun: true}), "exit=0 duration=0ms\n(no output)\n"},
	} {
		b.Reset()
		emit(t, r, step.e)
		if got := b.String(); got != step.want {
			t.Errorf("%T: put %q, want %q", step.e, got, step.want)
		}
	}
}

// A line that is drawn over and over is seen as it is now, until there is more.
func TestALineThatIsDrawnOver(t *testing.T) {
	for _, prompt := range []string{"!make all", "make it"} {
		var now term.Activity
		r := term.New(term.Options{Out: io.Discard, OnActivity: func(d term.Activity) { now = d }})
		emit(t, r, event.MessageAdded{Message: chat.TextMessage(chat.User, prompt)})
		emit(t, r, event.ToolStarted{CallID: "c", Tool: "bash"})
		for _, step := range []struct {
			e    event.Event
			want string
		}{
			{event.ToolProgress{CallID: "c", Line: "10%"}, "10%"},
			{event.ToolProgress{CallID: "c", Line: "20% \x1b[31m"}, "20% ^[[31m"},
			{event.ToolOutput{CallID: "c", Text: "done\n"}, ""},
		} {
			emit(t, r, step.e)
			tail := now.Calls[0].Tail
			if now.Calls[0].Incomplete != (step.want != "") {
				t.Errorf("%s, %v: open is %t", prompt, step.e, now.Calls[0].Incomplete)
			}
			if step.want == "" && len(tail) > 0 && tail[len(tail)-1] == "done" {
				continue
			}
			if strings.Join(tail, "") != step.want {
				t.Errorf("%s, %v: seen is %q", prompt, step.e, tail)
			}
		}
	}
}

// A line that a call is printing is seen before it ends, and then stands in the stream.
func TestALineThatHasNotEndedIsSeen(t *testing.T) {
	var now term.Activity
	r := term.New(term.Options{Out: io.Discard, OnActivity: func(d term.Activity) { now = d }})
	emit(t, r, event.ToolStarted{CallID: "c", Tool: "bash"})
	for _, step := range []struct{ text, want string }{{"..", ".."}, {"..", "...."}, {"\n", ""}} {
		emit(t, r, event.ToolOutput{CallID: "c", Text: step.text})
		if got := strings.Join(now.Calls[0].Tail, "|"); got != step.want || now.Calls[0].Incomplete != (step.want != "") {
			t.Errorf("after %q: seen is %q, want %q", step.text, got, step.want)
		}
	}
}

// Of a command that prints more than is passed on the count goes on, and the last lines are
// those it ended with.
func TestOutputThatIsNotPassedOn(t *testing.T) {
	var text string
	var now term.Activity
	r := term.New(term.Options{OnActivity: func(d term.Activity) { now = d }, Stream: func(more string, _ term.PendingOutput) error {
		text += more
		return nil
	}})
	emit(t, r, event.ToolStarted{CallID: "c", Tool: "bash"})
	emit(t, r, event.ToolOutput{CallID: "c", Text: strings.Repeat("first\n", 30)})
	emit(t, r, event.ToolProgress{CallID: "c", Line: "newest", Lines: 1000})
	if c := now.Calls[0]; c.Count != "1030 lines" || strings.Join(c.Tail, "") != "newest" {
		t.Errorf("seen is %+v", c)
	}
	emit(t, r, event.ToolProgress{CallID: "c", Lines: 2000})
	emit(t, r, event.ToolOutput{CallID: "c", Text: strings.Repeat("last\n", 10)})
	emit(t, r, event.ToolFinished{CallID: "c", Tool: "bash"})
	if want := "first\n… 2015 lines omitted · Ctrl+O: all of it\n" + strings.Repeat("last\n", 5); !strings.Contains(text, want) {
		t.Errorf("got %q", text)
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

// A long diff that was only looked at is shortened like other output; one that was made is
// shown much longer.
func TestALongDiffIsShownInPart(t *testing.T) {
	diff := "--- a/x\n+++ b/x\n@@ -0,0 +1,300 @@\n" + strings.Repeat("+line\n", 300)
	for kind, want := range map[event.EffectKind]int{event.EffectRead: 79, event.EffectWrite: 303} {
		text := ""
		r := term.New(term.Options{Stream: func(more string, _ term.PendingOutput) error {
			text += more
			return nil
		}})
		emit(t, r, event.ToolCallRequested{CallID: "c", Tool: "t", Effects: []event.Effect{{Kind: kind, Target: "x"}}})
		emit(t, r, event.ToolStarted{CallID: "c", Tool: "t"})
		emit(t, r, event.ToolFinished{CallID: "c", Tool: "t", Content: display.NewDiff(diff)})
		left := strings.Contains(text, "… 223 lines omitted\n")
		if got := strings.Count(text, "line\n") + 2; left != (kind == event.EffectRead) || got < want-2 || got > want+2 {
			t.Errorf("kind %v: %d lines shown (left out is said: %t), want about %d", kind, got, left, want)
		}
	}
}

// What a call prints after the lines that stay is seen while it runs, the newest of it.
func TestTheNewestOutputIsSeen(t *testing.T) {
	var now term.Activity
	for i, want := range map[int]string{20: "", 21: "line 21", 30: "line 28|line 29|line 30"} {
		r := term.New(term.Options{Out: io.Discard, OnActivity: func(d term.Activity) { now = d }})
		emit(t, r, event.ToolStarted{CallID: "c", Tool: "bash"})
		for n := range i {
			emit(t, r, event.ToolOutput{CallID: "c", Text: fmt.Sprintf("line %d\n", n+1)})
		}
		if got := strings.Join(now.Calls[0].Tail, "|"); got != want || now.Calls[0].Incomplete {
			t.Errorf("after %d lines: %q, want %q", i, got, want)
		}
	}
}

// A diff that was approved is not shown again, also where the result has only its beginning.
func TestAnApprovedDiffIsNotShownAgain(t *testing.T) {
	whole := "--- a/x\n+++ b/x\n@@ -0,0 +1,700 @@\n" + strings.Repeat("+line\n", 700)
	for name, result := range map[string]display.Diff{
		"whole": display.NewDiff(whole), "its beginning": {Unified: strings.Join(strings.SplitAfter(whole, "\n")[:403], ""), OmittedLines: 300},
	} {
		text := ""
		r := term.New(term.Options{Stream: func(more string, _ term.PendingOutput) error {
			text += more
			return nil
		}})
		r.MarkSeen(uip.Request{TaskID: "t", Display: uip.Display{Content: display.NewDiff(whole), Metadata: map[string]string{"toolCallId": "c"}}})
		emit(t, r, event.ToolCallRequested{CallID: "c", Tool: "write", Effects: []event.Effect{{Kind: event.EffectWrite, Target: "x"}}})
		emit(t, r, event.ToolStarted{CallID: "c", Tool: "write"})
		emit(t, r, event.ToolFinished{CallID: "c", Tool: "write", Summary: "created", Content: result})
		if strings.Contains(text, "+line") || !strings.Contains(text, "created") {
			t.Errorf("%s: %.200s", name, text)
		}
	}
}

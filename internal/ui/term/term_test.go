package term_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/ui/term"
	"coder/testkit/rendertest"
)

var basicCodes = term.Palette{Level: term.Basic}

var sgr = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// checked checks that each Write is finished: no look stays on, and nothing but
// looks, tabs and line ends controls the terminal.
type checked struct {
	t   testing.TB
	buf bytes.Buffer // not embedded: its WriteString would go unchecked
}

func (w *checked) String() string { return w.buf.String() }

func (w *checked) Write(p []byte) (int, error) {
	all := sgr.FindAllString(string(p), -1)
	if len(all) > 0 && all[len(all)-1] != "\x1b[0m" {
		w.t.Errorf("a look stays on after %q", p)
	}
	rest := sgr.ReplaceAllString(string(p), "")
	if at := strings.IndexFunc(rest, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 }); at >= 0 {
		w.t.Errorf("%q lets %q through", p, rest[at:])
	}
	if !utf8.Valid(p) {
		w.t.Errorf("%q is not UTF-8", p)
	}
	return w.buf.Write(p)
}

func play(t testing.TB, p term.Palette, rs []event.Record) string {
	t.Helper()
	w := &checked{t: t}
	rendertest.Play(t, term.New(term.Options{Out: w, Width: func() int { return 60 }, Palette: p}), rs)
	return w.String()
}

// painted is text as runs of one look each, however often it was turned off
// and on again in between.
func painted(text string) string {
	var b strings.Builder
	look, last := "", ""
	for text != "" {
		at := sgr.FindStringIndex(text)
		plain := text
		if at != nil {
			plain = text[:at[0]]
		}
		for _, line := range strings.SplitAfter(plain, "\n") {
			if line != "" && line != "\n" && look != last {
				b.WriteString("{" + look + "}")
				last = look
			}
			b.WriteString(line)
		}
		if at == nil {
			break
		}
		if look = text[at[0]+2 : at[1]-1]; look == "0" {
			look = ""
		}
		text = text[at[1]:]
	}
	return b.String()
}

// pieceCleaner cuts the texts that arrive in pieces into pieces of n bytes.
func pieceCleaner(rs []event.Record, n int) []event.Record {
	var cut []event.Record
	for _, r := range rs {
		text, with := growing(r.Event)
		for from := 0; from < len(text); from += n {
			r.Event = with(text[from:min(from+n, len(text))])
			cut = append(cut, r)
		}
		if text == "" {
			cut = append(cut, r)
		}
	}
	return cut
}

func growing(e event.Event) (string, func(string) event.Event) {
	switch e := e.(type) {
	case event.TextDelta:
		return e.Text, func(s string) event.Event { return event.TextDelta{Text: s} }
	case event.ReasoningDelta:
		return e.Text, func(s string) event.Event { return event.ReasoningDelta{Text: s} }
	case event.ToolOutput:
		return e.Text, func(s string) event.Event { return event.ToolOutput{CallID: e.CallID, Text: s} }
	}
	return "", nil
}

// joined puts what was cut together again, so that all of it comes at once.
func joined(rs []event.Record) []event.Record {
	var all []event.Record
	for _, r := range rs {
		if n := len(all); n > 0 && all[n-1].Task == r.Task {
			a, with := growing(all[n-1].Event)
			b, _ := growing(r.Event)
			if a != "" && b != "" && with(b) == r.Event { // pieces of one text
				all[n-1].Event = with(a + b)
				continue
			}
		}
		all = append(all, r)
	}
	return all
}

func TestAnyCutLooksTheSame(t *testing.T) {
	for _, s := range scenes() {
		for _, p := range []term.Palette{{}, basicCodes} {
			want := painted(play(t, p, s.records))
			if got := painted(play(t, p, joined(s.records))); got != want {
				t.Errorf("%s at once:\n got %q\nwant %q", s.name, got, want)
			}
			for _, n := range []int{1, 2, 3, 7, 64} {
				if got := painted(play(t, p, pieceCleaner(s.records, n))); got != want {
					t.Errorf("%s in pieces of %d:\n got %q\nwant %q", s.name, n, got, want)
				}
			}
		}
	}
}

func TestCutAtEveryByte(t *testing.T) {
	whole := painted(play(t, basicCodes, told(event.TextDelta{Text: markdownText}, said(markdownText))))
	for i := range markdownText {
		got := painted(play(t, basicCodes, told(event.TextDelta{Text: markdownText[:i]}, event.TextDelta{Text: markdownText[i:]}, said(markdownText))))
		if got != whole {
			t.Fatalf("cut at %d:\n got %q\nwant %q", i, got, whole)
		}
	}
}

func FuzzRender(f *testing.F) {
	for _, s := range []string{markdownText, diffText, "\xe4\xb8", "a\r\nb\r", "```\n\x1b]0;x\a\n", "| a |\n|-|\n| \x9b31m |", "\u202e*x*"} {
		f.Add(s, 3, uint8(0))
		f.Add(s, 1, uint8(3))
	}
	f.Fuzz(func(t *testing.T, text string, n int, level uint8) {
		p := term.Palette{Level: term.Level(level % 4), Light: level > 100}
		n = 1 + max(0, n)%9
		rs := told(
			event.ReasoningDelta{Text: text}, event.TextDelta{Text: text}, said(text),
			event.ToolStarted{CallID: text, Tool: text, Title: text}, event.ToolOutput{CallID: text, Text: text},
			event.ToolFinished{CallID: text, Tool: text, Title: text, Summary: text, Content: display.Diff{Unified: text}, Failed: len(text)%2 == 0},
			event.TodosChanged{Todos: []event.Todo{{Content: text}}}, event.LocalAdded{Output: text}, event.LocalAdded{Blocks: blocksOf(text)}, event.Notice{Text: text},
			event.ToolFinished{CallID: "x", Tool: text, Content: display.Table{Header: display.DataCells(text), Rows: [][]display.Cell{display.DataCells(text, text)}}},
			event.TaskFailed{Reason: text},
		)
		want := painted(play(t, p, rs))
		if got := painted(play(t, p, pieceCleaner(rs, n))); got != want {
			t.Fatalf("%q in pieces of %d:\n got %q\nwant %q", text, n, got, want)
		}
		expectClean(t, text, p)
	})
}

// blocksOf are blocks as a record that somebody forged may hold them.
func blocksOf(text string) display.Blocks {
	cells := []display.Cell{{Text: text}, {Text: text, Words: true}}
	return display.Blocks{
		display.Text(text), display.Diff{Unified: text}, display.Table{Header: cells, Rows: [][]display.Cell{cells, cells[:1], nil}},
		display.Table{Header: cells, Rows: [][]display.Cell{cells, cells[:1], nil}, FirstWidth: 1 << 40}, display.Checklist{{State: display.State(text), Text: text}},
		display.Shell{Command: text, HasRun: len(text)%2 == 0, ExitCode: -1, Stdout: text, Stderr: text, Error: text},
	}
}

// expectClean draws cards about text.
func expectClean(t *testing.T, text string, p term.Palette) {
	t.Helper()
	w := &checked{t: t}
	for _, content := range []display.Block{display.Code{Lang: "sh", Source: text}, display.Text(text), display.Diff{Unified: text}} {
		q := approval(text, text, content, true)
		for _, whole := range []bool{false, true} {
			_, _ = io.WriteString(w, term.Cards{Palette: p, NoFold: whole}.Draw(q))
		}
	}
	_, _ = io.WriteString(w, term.Cards{Palette: p}.DrawQuestion(question(text, text, text), 1, 2))
}

func TestNothingIsHeldBackInAnAnswer(t *testing.T) {
	w := &checked{t: t}
	r := term.New(term.Options{Out: w, Palette: basicCodes})
	rendertest.Play(t, r, told(event.TextDelta{Text: "Hello, wor"}))
	if got := w.String(); got != "[ANSWER]\nHello, wor" {
		t.Errorf("%q", got)
	}
}

func TestABrokenReplyIsMarked(t *testing.T) {
	for _, e := range []event.Event{event.Interrupted{}, event.TaskFailed{TaskID: "t"}} {
		if got := play(t, term.Palette{}, told(event.TextDelta{Text: "half"}, e)); !strings.HasPrefix(got, "[ANSWER]\nhalf\n[interrupted]\n") {
			t.Errorf("%T: %q", e, got)
		}
	}
}

func TestThinkingIsWhole(t *testing.T) {
	var lines []string
	for i := range 200 {
		lines = append(lines, fmt.Sprintf("thought %d", i))
	}
	got := play(t, term.Palette{}, told(event.ReasoningDelta{Text: strings.Join(lines, "\n")}, said("")))
	if got != "[THINKING]\n"+strings.Join(lines, "\n")+"\n" {
		t.Errorf("%q", got)
	}
}

func TestNothingToSay(t *testing.T) {
	for _, rs := range [][]event.Record{
		told(event.TextDelta{Text: "\n \n"}, said("\n \n")),
		told(event.ReasoningDelta{Text: " \n"}, said("")),
		told(event.TextDelta{}, event.StateChanged{}, event.SessionOpened{}, event.ContextUsed{}, event.Unknown{}),
	} {
		if got := play(t, basicCodes, rs); got != "" {
			t.Errorf("%v gives %q", rs, got)
		}
	}
}

func TestSubtaskShowsWhatItDoes(t *testing.T) {
	child := func(e event.Event) event.Record { return event.Record{Task: "c", Event: e} }
	rs := append(told(event.ToolStarted{CallID: "1", Tool: "task", Title: "look"}),
		child(event.TaskCreated{TaskID: "c", AgentID: "explore", ParentID: "t"}),
		child(event.TextDelta{Text: "unseen"}), child(event.ReasoningDelta{Text: "unseen"}), child(said("unseen")),
		child(event.ToolStarted{CallID: "2", Tool: "read", Title: "x"}), child(event.ToolOutput{CallID: "2", Text: "out"}),
		child(finished("2", "read", "x", "1 line")),
		child(event.ToolCallRequested{CallID: "3", Tool: "bash", Effects: []event.Effect{{Kind: event.EffectExec, Target: "ls"}}}),
		child(event.ToolStarted{CallID: "3", Tool: "bash", Title: "ls"}), child(finished("3", "bash", "ls", "exit 0")), child(event.TodosChanged{}), child(event.TaskFailed{Reason: "unseen"}))
	rs = append(rs, event.Record{Task: "t", Event: finished("1", "task", "look", "found")})
	want := "[tool] task  look\n[tool] explore > read  x\nout\n  ✓ 1 line · 3 ms\n[tool] explore > bash  ls\n  ✓ exit 0 · 3 ms\n  ✓ task look: found · 3 ms\n"
	if got := play(t, term.Palette{}, rs); got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// TestAnotherAgentIsOneEntry where the screen shows what runs: its calls are counted and kept, its changes are shown.
func TestAnotherAgentIsOneEntry(t *testing.T) {
	var out strings.Builder
	r := term.New(term.Options{Out: &out, OnActivity: func(term.Activity) {}})
	child := func(e event.Event) event.Record { return event.Record{Task: "c", Event: e} }
	rs := append(told(event.ToolStarted{CallID: "1", Tool: "task", Title: "explore: look"}),
		child(event.TaskCreated{TaskID: "c", AgentID: "explore", ParentID: "t", CallID: "1"}),
		child(event.ToolStarted{CallID: "2", Tool: "read", Title: "x"}), child(event.ToolOutput{CallID: "2", Text: "out"}),
		child(finished("2", "read", "x", "1 line")),
		child(event.ToolFinished{CallID: "3", Tool: "bash", Title: "ls", Denied: true, Summary: "denied: no"}),
		child(event.ToolCallRequested{CallID: "4", Tool: "edit", Effects: []event.Effect{{Kind: event.EffectWrite, Target: "y"}}}),
		child(event.ToolStarted{CallID: "4", Tool: "edit", Title: "y"}), child(finished("4", "edit", "y", "+1 -0")))
	end := finished("1", "task", "explore: look", "9 tokens")
	end.Content = display.Text("found it")
	for _, rec := range append(rs, event.Record{Task: "t", Event: end}) {
		if err := r.Emit(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	const want = "[tool] task  explore: look\n[tool] explore > edit  y\n  ✓ +1 -0 · 3 ms\n" +
		"  ✓ task explore: look: 9 tokens · 3 ms · 2 tool calls (Ctrl+O)\n"
	if got := out.String(); got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
	const whole = "explore: look\n  ✓ explore > read x: 1 line · 3 ms\n  ✗ explore > bash ls: refused: no\nfound it"
	if got := r.Omitted(); got != whole {
		t.Errorf("got %q\nwant %q", got, whole)
	}
}

func TestSubtasksSideBySideAreToldApart(t *testing.T) {
	on := func(task string, e event.Event) event.Record { return event.Record{Task: task, Event: e} }
	var rs []event.Record
	for _, c := range []string{"c", "d"} {
		rs = append(rs, on(c, event.TaskCreated{TaskID: c, AgentID: "look", ParentID: "t"}))
	}
	rs = append(rs, on("c", event.ToolStarted{CallID: "1", Tool: "read", Title: "x"}), on("d", event.ToolStarted{CallID: "1", Tool: "read", Title: "x"}),
		on("c", finished("1", "read", "x", "1 line")), on("d", finished("1", "read", "x", "2 lines")))
	want := "[tool] look > read  x\n[tool] look 2 > read  x\n  ✓ look > read x: 1 line · 3 ms\n  ✓ look 2 > read x: 2 lines · 3 ms\n"
	if got := play(t, term.Palette{}, rs); got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// The numbers of agents follow the calls that they do the work of, in whatever order they begin.
func TestAgentsAreNumberedAsTheirCalls(t *testing.T) {
	rs := told(event.ToolStarted{CallID: "1", Tool: "task", Title: "explore: a"}, event.ToolStarted{CallID: "2", Tool: "task", Title: "explore: b"}, event.ToolStarted{CallID: "3", Tool: "task", Title: "explore: c"})
	for _, n := range []string{"3", "1", "2"} {
		rs = append(rs, event.Record{Task: "c" + n, Event: event.TaskCreated{TaskID: "c" + n, AgentID: "explore", ParentID: "t", CallID: n}},
			event.Record{Task: "c" + n, Event: event.ToolStarted{CallID: "x", Tool: "read", Title: "of " + n}})
	}
	got := play(t, term.Palette{}, rs)
	if want := "[tool] explore 3 > read  of 3\n[tool] explore > read  of 1\n[tool] explore 2 > read  of 2\n"; !strings.HasSuffix(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestLive(t *testing.T) {
	var shown []string
	live := func(d term.Activity) {
		said := d.Text
		for _, c := range d.Calls {
			if said = c.Name; c.Count != "" {
				said += " · " + c.Count
			}
		}
		shown = append(shown, said)
	}
	r := term.New(term.Options{Out: io.Discard, OnActivity: live, Now: func() time.Time { return time.Unix(0, 0) }})
	rendertest.Play(t, r, told(
		event.StateChanged{Busy: true}, event.ReasoningDelta{Text: "a"}, event.ReasoningDelta{Text: "b"}, event.TextDelta{Text: "c"}, said("c"),
		event.ToolStarted{CallID: "1", Tool: "bash", Title: "make\x07"}, event.ToolOutput{CallID: "1", Text: "x\n"}, event.ToolOutput{CallID: "1", Text: "x\n"}))
	rendertest.Play(t, r, told(
		event.ToolOutput{CallID: "1", Text: "x\n"}, event.ToolFinished{CallID: "1", Tool: "bash"}, event.InteractionRequested{},
		event.Retrying{Attempt: 2, MaxAttempts: 3, Wait: time.Second, Reason: "busy"},
		event.Waiting{Reason: event.WaitReply, Waited: 1}, event.Waiting{Reason: event.WaitReply, Waited: 2, ReadTokens: 20, TotalTokens: 70}, event.Waiting{Reason: event.WaitLoading}, event.Waiting{Reason: event.WaitSummary},
		event.Waiting{Reason: event.WaitLimit, Until: time.Date(2026, 11, 16, 15, 4, 5, 0, time.Local)}, event.StateChanged{})[2:])
	want := []string{"working", "thinking", "writing", "working", "bash make^G", "bash make^G · 1 line", "bash make^G · 2 lines", "bash make^G · 3 lines", "working", "", "busy; retrying in 1 s (attempt 2 of 3)",
		"waiting for the model", "the model reads: 20 of 70 tokens", "the server is loading the model", "summarizing the conversation", "waiting until 2026-11-16 15:04:05, when the provider's limit resets", ""}
	if !slices.Equal(shown, want) {
		t.Errorf("told %q\nwant %q", shown, want)
	}
}

type upper struct{ term.English }

func (upper) T(format string, args ...any) string {
	return strings.ToUpper(fmt.Sprintf(format, args...))
}
func (upper) TranslateText(text string) string { return "<" + text + ">" }

func TestWords(t *testing.T) {
	var b bytes.Buffer
	r := term.New(term.Options{Out: &b, Translator: upper{}})
	rendertest.Play(t, r, told(
		event.Notice{Text: "note"}, event.TaskFailed{Reason: "why"}, event.Retrying{Attempt: 1, MaxAttempts: 2, Reason: "busy"}, event.Interrupted{},
		event.ToolFinished{CallID: "1", Tool: "x", Summary: "12 lines"}, event.ToolFinished{CallID: "2", Tool: "x"}))
	for _, want := range []string{"<note>\n", "ERROR: <WHY>\n", "<BUSY>; RETRYING (ATTEMPT 1 OF 2)\n", "CANCELLED BY ESC\n", "✓ <12 lines>", "✓ DONE"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
}

// Of what a command of the person's own came to, only the program's own words
// are translated.
func TestWordsOfCommands(t *testing.T) {
	for _, tt := range []struct {
		block display.Block
		want  string
	}{
		{display.Text("command mode denied"), "<command mode denied>"},
		{display.Shell{Command: "a\nthinking", Error: "denied: no"}, "$ a\nthinking\n<denied: no>"},
		{display.Shell{Command: "a", HasRun: true, ExitCode: 1, Stdout: "no"}, "$ a\nexit=1 duration=0ms\nstdout:\nno"},
		{display.Shell{Command: "a", HasRun: true, ExitCode: 124, Stdout: "no", Error: "timed out after 1s"}, "$ a\nexit=124 duration=0ms\nstdout:\nno\n<timed out after 1s>"},
		{display.Shell{Command: "a", HasRun: true, ExitCode: 124, Stdout: "stderr:\nexit=0\ntimed out after 1s"}, "$ a\nexit=124 duration=0ms\nstdout:\nstderr:\nexit=0\ntimed out after 1s"},
		{display.Shell{Command: "a", HasRun: true, Stdout: "1\n2\n3"}.Truncate(2), "$ a\nexit=0 duration=0ms\nstdout:\n1\n2\n...[output truncated for display]\nTHE LAST OF 3 LINES:\n3"},
	} {
		var b bytes.Buffer
		r := term.New(term.Options{Out: &b, Translator: upper{}})
		ask := event.MessageAdded{Message: chat.TextMessage(chat.User, "!a")}
		rendertest.Play(t, r, []event.Record{{Task: "t", Event: event.TaskCreated{TaskID: "t"}}, {Task: "t", Event: ask}, {Task: "t", Event: event.MessageAdded{Message: chat.TextMessage(chat.Assistant, "x"), Blocks: display.Blocks{tt.block}}}})
		if got := b.String(); got != "[COMMAND]\n"+tt.want+"\n" {
			t.Errorf("%q is shown as %q", tt.block, got)
		}
	}
}

// Of a table, only the cells that are words are translated, and the columns
// are as wide as what stands in them then.
func TestWordsOfTables(t *testing.T) {
	var b bytes.Buffer
	r := term.New(term.Options{Out: &b, Translator: upper{}})
	table := display.Table{Header: display.TextCells("name", "state"), Rows: [][]display.Cell{{{Text: "done"}, {Text: "done", Words: true}}, display.DataCells("a  b\x1b", "x")}}
	rendertest.Play(t, r, []event.Record{{Event: event.LocalAdded{Input: "/x", Output: "?", Blocks: display.Blocks{table}}}})
	if want := "<name>  <state>\ndone    <done>\na b^[   x\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

var errFull = errors.New("full")

type badWriter struct{ after int }

func (w *badWriter) Write(p []byte) (int, error) {
	if w.after--; w.after < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestErrorsOfTheTerminalEndTheTurn(t *testing.T) {
	for after := range 5 {
		r := term.New(term.Options{Out: &badWriter{after: after}})
		var err error
		for _, rec := range rendertest.Story() {
			if err = r.Emit(context.Background(), rec); err != nil {
				break
			}
		}
		if !errors.Is(err, errFull) || !errors.Is(r.EndReply(), errFull) {
			t.Errorf("after %d writes: %v", after, err)
		}
	}
}

func TestManyAtOnce(t *testing.T) {
	w := &checked{t: t}
	r := term.New(term.Options{Out: w, Palette: basicCodes, OnActivity: func(term.Activity) {}})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { rendertest.Play(t, r, rendertest.Story()) })
		wg.Go(func() { _ = r.Insert(r.Cards().Draw(approvals()[0])) })
	}
	wg.Wait()
}

func TestInsertAndBreak(t *testing.T) {
	w := &checked{t: t}
	r := term.New(term.Options{Out: w})
	rendertest.Play(t, r, told(event.TextDelta{Text: "a"}))
	_ = r.Insert("card\nyes?")
	rendertest.Play(t, r, told(event.TextDelta{Text: "b"})[2:])
	_, _ = r.EndReply(), r.EndReply()
	if want := "[ANSWER]\na\n\ncard\nyes?\n\nb\n"; w.String() != want {
		t.Errorf("got %q\nwant %q", w.String(), want)
	}
}

func TestMessagesThatNeverCameInPieces(t *testing.T) {
	m := chat.Message{Role: chat.Assistant, Parts: []chat.Part{chat.Reasoning{Text: "hm"}, chat.Text("so")}}
	got := play(t, term.Palette{}, told(event.MessageAdded{Message: m}, event.MessageAdded{Message: m}))
	want := "[THINKING]\nhm\n\n[ANSWER]\nso\n"
	if got != want+"\n"+want {
		t.Errorf("got %q", got)
	}
}

func BenchmarkDeltas(b *testing.B) {
	for name, e := range map[string]event.Event{
		"text": event.TextDelta{Text: "word, "}, "markdown": event.TextDelta{Text: "**a** `b`\n- c"}, "code": event.TextDelta{Text: "```go\nx := 1\n"},
		"thinking": event.ReasoningDelta{Text: "word, "}, "output": event.ToolOutput{CallID: "1", Text: "line\n"},
	} {
		rs := []event.Record{{Task: "t", Event: event.ToolStarted{CallID: "1", Tool: "bash"}}}
		for range 20000 {
			rs = append(rs, event.Record{Task: "t", Event: e})
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				rendertest.Play(b, term.New(term.Options{Out: io.Discard, Palette: basicCodes}), rs)
			}
		})
	}
}

// The line that names a call, and the one that tells how it ended, name what passes
// for something else, as its card does.
func TestACallNamesWhatPassesForSomethingElse(t *testing.T) {
	for _, effect := range []event.EffectKind{event.EffectExec, event.EffectWrite} {
		var out strings.Builder
		r := term.New(term.Options{Out: &out})
		for _, e := range []event.Event{
			event.ToolCallRequested{CallID: "a", Tool: "t", Effects: []event.Effect{{Kind: effect, Target: "x"}}},
			event.ToolCallRequested{CallID: "b", Tool: "t"},
			event.ToolStarted{CallID: "a", Tool: "t", Title: "t\u043euch x"},
			event.ToolStarted{CallID: "b", Tool: "t", Title: strings.Repeat("long ", 100)},
			event.ToolFinished{CallID: "a", Tool: "t", Title: "t\u043euch x", Summary: "done"},
		} {
			if err := r.Emit(t.Context(), event.Record{Task: "1", Event: e}); err != nil {
				t.Fatal(err)
			}
		}
		if got := out.String(); strings.Count(got, "t<U+043E>uch x") != 2 || strings.Contains(got, "\u043e") || !strings.Contains(got, "…\n") {
			t.Errorf("%s:\n%s", effect, got)
		}
	}
}

package plain_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/ui/plain"
	"coder/testkit/rendertest"
)

func render(t testing.TB, o plain.Options, rs ...event.Record) string {
	t.Helper()
	var out bytes.Buffer
	rendertest.Play(t, plain.New(&out, o), rs)
	return out.String()
}

func TestGolden(t *testing.T) {
	for name, o := range map[string]plain.Options{"plain": {}, "verbose": {Verbose: true}} {
		t.Run(name, func(t *testing.T) {
			rendertest.Golden(t, name, []byte(render(t, o, rendertest.Story()...)))
		})
	}
}

// shouting is a language.
type shouting struct{}

func (shouting) T(format string, args ...any) string {
	return strings.ToUpper(fmt.Sprintf(format, args...))
}
func (shouting) TranslateText(text string) string { return strings.ToUpper(text) }

func TestLinesAreInThePersonsLanguage(t *testing.T) {
	got := render(t, plain.Options{Translator: shouting{}},
		event.Record{Event: event.ToolFinished{Tool: "read", Title: "a", Summary: "no such file", Failed: true}},
		event.Record{Event: event.ToolFinished{Tool: "write", Title: "b", Summary: "denied: by rule", Denied: true}},
		event.Record{Event: event.ToolFinished{Tool: "write", Title: "c", Failed: true}},
		event.Record{Event: event.Retrying{Attempt: 2, MaxAttempts: 3}},
		event.Record{Event: event.Notice{Text: "cut off"}},
		event.Record{Event: event.Interrupted{}})
	want := "[tool] read a — NO SUCH FILE (0 ms)\n[tool] write b — REFUSED: BY RULE\n[tool] write c — FAILED (0 ms)\n" +
		"coder: NO REPLY; RETRYING (ATTEMPT 2 OF 3)\ncoder: CUT OFF\ncoder: INTERRUPTED\n"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestLines(t *testing.T) {
	failed := func(text string) chat.ToolResult { return chat.ToolResult{Text: text, Failed: true} }
	for _, tc := range []struct {
		e    event.Event
		want string
	}{
		{event.ToolFinished{Tool: "read", Title: "main.go", Summary: "12 lines", Duration: 3 * time.Millisecond}, "[tool] read main.go — 12 lines (3 ms)"},
		{event.ToolFinished{Tool: "bash", Title: "go test", Summary: "exit 1", Failed: true, Duration: 1234 * time.Millisecond}, "[tool] bash go test — exit 1 (1.2 s)"},
		{event.ToolFinished{Tool: "bash", Title: "t\u043euch x", Summary: "exit 0"}, "[tool] bash t<U+043E>uch x — exit 0 (0 ms)"},
		{event.ToolFinished{Tool: "todoread"}, "[tool] todoread (0 ms)"},
		{event.ToolFinished{Tool: "edit", Title: "a.go", Failed: true, Result: failed(`{"ok":false,"error":"text not found"}`)}, "[tool] edit a.go — failed: text not found (0 ms)"},
		{event.ToolFinished{Tool: "edit", Failed: true, Result: failed("boom\nbang")}, "[tool] edit — failed: boom bang (0 ms)"},
		{event.ToolFinished{Tool: "edit", Failed: true}, "[tool] edit — failed (0 ms)"},
		{event.ToolFinished{Tool: "write", Title: "a.txt", Denied: true, Failed: true, Result: failed(`{"ok":false,"error":"nobody to ask"}`), Duration: time.Hour}, "[tool] write a.txt — refused: nobody to ask"},
		{event.ToolFinished{Tool: "write", Title: "a.txt", Denied: true, Summary: "refused: read-only mode"}, "[tool] write a.txt — refused: read-only mode"},
		{event.ToolFinished{Tool: "write", Title: "a.txt", Denied: true, Summary: "denied"}, "[tool] write a.txt — refused"},
		{event.ToolFinished{Tool: "write", Denied: true, Summary: "denied: rule: no writes"}, "[tool] write — refused: rule: no writes"},
		{event.ToolFinished{Tool: "write", Denied: true, Summary: "refused by the person"}, "[tool] write — refused by the person"},
		{event.ToolFinished{Tool: "write", Denied: true}, "[tool] write — refused"},
		{event.ToolFinished{Tool: "bash", Title: "echo '\x1b[2J'\nrm x", Summary: "exit 0"}, "[tool] bash echo '^[[2J' rm x — exit 0 (0 ms)"},
		{event.ToolFinished{Tool: "bash", Title: strings.Repeat("x", 200)}, "[tool] bash " + strings.Repeat("x", 79) + "… (0 ms)"},
		{event.Notice{Level: event.LevelWarn, Text: "log is\nread-only"}, "coder: log is read-only"},
		{event.Retrying{Attempt: 2, MaxAttempts: 5, Wait: 2 * time.Second, Reason: "rate limited"}, "coder: rate limited; retrying in 2 s (attempt 2 of 5)"},
		{event.Retrying{Attempt: 3, MaxAttempts: 5, Wait: 300 * time.Millisecond}, "coder: no reply; retrying in 300 ms (attempt 3 of 5)"},
		{event.Retrying{Attempt: 2, MaxAttempts: 2, Reason: "x"}, "coder: x; retrying (attempt 2 of 2)"},
		{event.Waiting{Reason: event.WaitReply, Waited: 9 * time.Second}, ""},
		{event.Waiting{Reason: event.WaitReply, Waited: 10 * time.Second}, "coder: still waiting for the model (10 s)"},
		{event.Waiting{Reason: event.WaitReply, Waited: 40 * time.Second, ReadTokens: 2000, TotalTokens: 7000}, "coder: the model has read 2000 of 7000 tokens (40 s)"},
		{event.Waiting{Reason: event.WaitLoading}, "coder: the server is loading the model; waiting for it"},
		{event.Waiting{Reason: event.WaitLoading, Waited: 2 * time.Second}, ""},
		{event.Waiting{Reason: event.WaitLoading, Waited: 20 * time.Second}, "coder: the server is still loading the model (20 s)"},
		{event.Waiting{Reason: event.WaitSummary}, ""},
		{event.Waiting{Reason: event.WaitSummary, Waited: 10 * time.Second}, "coder: still summarizing the conversation (10 s)"},
		{event.Waiting{Reason: event.WaitLimit, Until: time.Date(2026, 11, 16, 15, 4, 5, 0, time.Local)}, "coder: waiting until 2026-11-16 15:04:05, when the provider's limit resets"},
		{event.Interrupted{}, "coder: interrupted"},
		{event.TextDelta{Text: "the answer"}, ""},
		{event.ReasoningDelta{Text: "thought\n"}, ""},
		{event.ToolOutput{CallID: "c", Text: "line\n"}, ""},
	} {
		got := strings.TrimSuffix(render(t, plain.Options{}, event.Record{Event: tc.e}), "\n")
		if got != tc.want {
			t.Errorf("%+v\n got %q\nwant %q", tc.e, got, tc.want)
		}
	}
}

func TestDurations(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                               "(0 ms)",
		400 * time.Microsecond:          "(0 ms)",
		999*time.Millisecond + 600*1000: "(1 s)",
		1500 * time.Millisecond:         "(1.5 s)",
		59940 * time.Millisecond:        "(59.9 s)",
		59990 * time.Millisecond:        "(1 min 0 s)",
		125 * time.Second:               "(2 min 5 s)",
		2 * time.Hour:                   "(2 h 0 min)",
	} {
		if got := render(t, plain.Options{}, event.Record{Event: event.ToolFinished{Tool: "x", Duration: d}}); got != "[tool] x "+want+"\n" {
			t.Errorf("%v is shown as %q", d, got)
		}
	}
}

// Pieces of several streams at once come out as whole lines, each named.
func TestVerboseKeepsStreamsApart(t *testing.T) {
	on := func(task string, e event.Event) event.Record { return event.Record{Task: task, Event: e} }
	got := render(t, plain.Options{Verbose: true},
		on("t", event.ToolStarted{CallID: "a", Tool: "bash"}),
		on("t", event.ToolStarted{CallID: "b", Tool: "task"}),
		on("t", event.ToolOutput{CallID: "a", Text: "one\ntw"}),
		on("t", event.ToolOutput{CallID: "b", Text: "eins\nzwei"}),
		on("u", event.ReasoningDelta{Text: "hmm"}),
		on("t", event.ToolOutput{CallID: "a", Text: "o\n"}),
		on("t", event.ToolFinished{CallID: "b", Tool: "task"}),
		on("t", event.ToolFinished{CallID: "a", Tool: "bash"}),
		on("u", event.MessageAdded{Message: chat.TextMessage(chat.Assistant, "x")}),
	)
	const want = "[bash] one\n[task] eins\n[bash] two\n[task] zwei\n[tool] task (0 ms)\n[tool] bash (0 ms)\n[thinking] hmm\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// A line without end is shown in parts rather than held for ever.
func TestVerboseBoundsALine(t *testing.T) {
	var out bytes.Buffer
	r := plain.New(&out, plain.Options{Verbose: true})
	for range 100 {
		rendertest.Play(t, r, []event.Record{{Event: event.ToolOutput{CallID: "a", Text: strings.Repeat("x", 100)}}})
	}
	if n := strings.Count(out.String(), "x"); n < 10000-4096 {
		t.Errorf("only %d of 10000 bytes are shown", n)
	}
}

func FuzzClean(f *testing.F) {
	f.Add("read", "a\x1b[31m\nb", "12\r\nlines", "\u009b\u202ethought\n")
	f.Add("\xff", "", "{\"error\":\"\\u001b\"}", "")
	f.Fuzz(func(t *testing.T, tool, title, text, live string) {
		got := render(t, plain.Options{Verbose: true},
			event.Record{Event: event.ToolStarted{CallID: "c", Tool: tool}},
			event.Record{Event: event.ToolOutput{CallID: "c", Text: live}},
			event.Record{Event: event.ReasoningDelta{Text: live}},
			event.Record{Event: event.ToolFinished{CallID: "c", Tool: tool, Title: title, Summary: text}},
			event.Record{Event: event.ToolFinished{CallID: "c", Tool: tool, Denied: true, Result: chat.ToolResult{Text: text}}},
			event.Record{Event: event.Notice{Text: text}},
			event.Record{Event: event.Retrying{Reason: text}},
			event.Record{Event: event.Interrupted{Text: text}},
		)
		if !utf8.ValidString(got) || got != "" && !strings.HasSuffix(got, "\n") {
			t.Fatalf("not whole lines of UTF-8: %q", got)
		}
		for _, r := range got {
			if unicode.IsControl(r) && r != '\n' && r != '\t' {
				t.Fatalf("%U is let through in %q", r, got)
			}
		}
		for line := range strings.Lines(got) {
			if !strings.HasPrefix(line, "[") && !strings.HasPrefix(line, "coder: ") {
				t.Fatalf("a line that is not ours: %q", line)
			}
		}
	})
}

var errFull = errors.New("disk full")

type badWriter struct{}

func (badWriter) Write([]byte) (int, error) { return 0, errFull }

func TestWriteError(t *testing.T) {
	err := plain.New(badWriter{}, plain.Options{}).Emit(context.Background(), event.Record{Event: event.Notice{Text: "x"}})
	if !errors.Is(err, errFull) {
		t.Errorf("Emit: %v", err)
	}
}

func TestConcurrentEmit(t *testing.T) {
	var out bytes.Buffer
	r := plain.New(&out, plain.Options{Verbose: true})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { rendertest.Play(t, r, rendertest.Story()) })
	}
	wg.Wait()
}

func BenchmarkDeltas(b *testing.B) {
	deltas := rendertest.Deltas(20000, "word, ")
	for i, d := range deltas {
		deltas[i].Event = event.ReasoningDelta(d.Event.(event.TextDelta))
	}
	b.ReportAllocs()
	for b.Loop() {
		rendertest.Play(b, plain.New(io.Discard, plain.Options{Verbose: true}), deltas)
	}
}

func TestASubtaskShowsWhoDoesWhatAndNotWhatIsSaid(t *testing.T) {
	say := event.MessageAdded{Message: chat.Message{Role: chat.Assistant, Parts: []chat.Part{chat.Text("hm"), chat.ToolCall{ID: "1", Name: "read"}}}}
	got := render(t, plain.Options{},
		event.Record{Task: "t", Event: event.TaskCreated{TaskID: "t", AgentID: "main"}}, event.Record{Task: "t", Event: say},
		event.Record{Task: "c", Event: event.TaskCreated{TaskID: "c", AgentID: "explore", ParentID: "t"}}, event.Record{Task: "c", Event: say},
		event.Record{Task: "c", Event: event.ToolFinished{CallID: "1", Tool: "read", Title: "x"}}, event.Record{Task: "c", Event: event.TaskCompleted{}},
		event.Record{Task: "t", Event: event.ToolFinished{CallID: "2", Tool: "task", Title: "explore: look"}})
	if want := "hm\n[tool] explore > read x (0 ms)\n[tool] task explore: look (0 ms)\n"; got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

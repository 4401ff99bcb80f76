package export

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"coder/internal/authored/frontmatter"
	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/record/session"
)

var day = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

var head = session.Head{ID: "sess_1", Created: day, Meta: session.Meta{Title: "Fix <the> bug", Model: "m-1", Dir: "/w"}}

const patch = "--- a/x.go\n+++ b/x.go\n@@ -1 +1 @@\n-old <b>\n+new & better\n"

func seq(events ...event.Event) iter.Seq2[event.Record, error] {
	return func(yield func(event.Record, error) bool) {
		for i, e := range events {
			if !yield(event.Record{Seq: uint64(i + 1), Time: day.Add(time.Duration(i) * time.Second), Event: e}, nil) {
				return
			}
		}
	}
}

func said(m chat.Message) event.Event { return event.MessageAdded{Message: m} }

func session1(t *testing.T) Transcript {
	t.Helper()
	call := chat.Message{Role: chat.Assistant, Parts: []chat.Part{
		chat.Reasoning{Text: "hmm"}, chat.Text("I **look** at `a<b`.\n\n# Plan\n```go\nif a < b {}\n```\n"),
		chat.ToolCall{ID: "c1", Name: "edit", Args: json.RawMessage(`{"path":"x.go","old_string":"a\nb"}`)},
		chat.ToolCall{ID: "c2", Name: "bash", Args: json.RawMessage(`{"command":"ls"}`)},
	}}
	q := uip.Request{ID: "ui_1", Display: uip.Display{Title: "Run it?", Content: display.Code{Source: "rm x"}}, Options: []uip.Option{{ID: "approve", Label: "Yes, run it"}}}
	result, _ := json.Marshal(map[string]any{"ok": true, "diff": patch})
	tr, err := FromRecords(head, seq(
		said(chat.TextMessage(chat.System, "SYSTEM TEXT")),
		said(chat.TextMessage(chat.User, "你好 <script>alert(1)</script>")),
		event.MessageAdded{Message: call, Model: "m-1", Usage: &chat.Usage{In: 10, Out: 5}},
		event.InteractionRequested{Request: q}, event.InteractionRequested{Request: q},
		event.InteractionResponded{Response: uip.Response{ID: "ui_1", Option: "approve", Comment: "go on"}},
		event.ToolCallCompleted{CallID: "c1", DurationMs: 12},
		said(chat.ToolMessage(chat.ToolResult{CallID: "c1", Name: "edit", Text: string(result)})),
		said(chat.ToolMessage(chat.ToolResult{CallID: "c2", Name: "bash", Text: `{"ok":false,"error":"no"}`, Failed: true})),
		event.TodosChanged{Todos: []event.Todo{{Content: "test it", Status: event.TodoCompleted}}},
		event.LocalAdded{Input: "/tools", Output: "read write"},
		event.ModeChanged{Mode: "plan"},
		event.ContextReplaced{Reason: event.ReplaceCompacted, Messages: []chat.Message{chat.TextMessage(chat.User, "SHORT")}},
		event.TaskFailed{Reason: "provider went away"},
		event.MessageAdded{Message: chat.TextMessage(chat.Assistant, "half"), Interrupted: true},
		said(chat.TextMessage(chat.User, event.InterruptionPrefix)),
	))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func html(t *testing.T, tr Transcript) string {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, tr, Locale{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func md(t *testing.T, tr Transcript) string {
	t.Helper()
	var b bytes.Buffer
	if err := Markdown(&b, tr, Locale{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestHTML(t *testing.T) {
	got := html(t, session1(t))
	at := -1
	for _, want := range []string{
		"<title>Fix &lt;the&gt; bug</title>", "<dd>m-1</dd>", "10 in, 5 out", "SYSTEM TEXT", `<section class="user">`, "你好 &lt;script&gt;alert(1)&lt;/script&gt;",
		"<summary>Thinking</summary>", "<p>hmm</p>", "I <strong>look</strong> at <code>a&lt;b</code>.", "<h3>Plan</h3>", "<pre><code>if a &lt; b {}</code></pre>",
		"Run it?", "<pre>rm x</pre>", "Yes, run it; go on", "<strong>edit</strong> <code>x.go</code>", `<span class="ok">done</span>`, "12ms", "<pre>a\nb</pre>",
		`<span class="h">@@ -1 +1 @@</span><span class="d">-old &lt;b&gt;</span><span class="a">+new &amp; better</span>`,
		"<strong>bash</strong> <code>ls</code>", `<span class="failed">failed</span>`, "error: <code>no</code>",
		"[x] test it", "<code>/tools</code>", "mode: plan", "SHORT", "provider went away", "half", "(interrupted)",
	} {
		i := strings.Index(got, want)
		if i < 0 || i <= at {
			t.Errorf("%q is missing or out of order", want)
		}
		at = max(at, i)
	}
	if n := strings.Count(got, "interrupted"); n != 1 {
		t.Errorf("it says %d times that it was interrupted", n)
	}
	if n := strings.Count(got, "Run it?"); n != 1 {
		t.Errorf("the question stands %d times", n)
	}
	checkPage(t, got)
}

// What a session used is all that its records say: replies that only call, other
// agents' replies, summaries and what broke off.
func TestTokensAreTheSumOfAllThatWasUsed(t *testing.T) {
	calls := chat.Message{Role: chat.Assistant, Parts: []chat.Part{chat.ToolCall{ID: "c", Name: "read", Args: json.RawMessage("{}")}}}
	events := []event.Event{
		event.MessageAdded{Message: calls, Model: "m", Usage: &chat.Usage{In: 1, Out: 10}},
		event.Spent{Model: "m", Usage: chat.Usage{In: 2, Out: 20}, Reason: event.UsageForPartialReply},
		event.TaskCreated{TaskID: "sub", ParentID: "t"},
		event.MessageAdded{Message: chat.TextMessage(chat.Assistant, "seen"), Model: "m", Usage: &chat.Usage{In: 4, Out: 40}},
	}
	tr, err := FromRecords(head, func(yield func(event.Record, error) bool) {
		for i, task := range []string{"t", "", "sub", "sub"} {
			if !yield(event.Record{Seq: uint64(i + 1), Time: day, Task: task, Event: events[i]}, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, got := range []string{html(t, tr), md(t, tr)} {
		if !strings.Contains(got, "7 in, 70 out") {
			t.Errorf("another sum in %s", got)
		}
	}
}

// The record is told in its order and by its real speakers: what was asked before
// what was done, the program's own check with how it went, the output of the
// person's command as that, and nobody's words in another's mouth.
func TestTheRecordIsToldInItsOrderByItsSpeakers(t *testing.T) {
	reply := func(m chat.Message) event.Event { return event.MessageAdded{Message: m, Model: "m"} }
	ask := func(id string) event.Event {
		return event.InteractionRequested{Request: uip.Request{ID: id, TaskID: "t", Display: uip.Display{Title: "May it " + id + "?"}}}
	}
	begun := func(id, author, args string) event.Event {
		return event.ToolCallRequested{CallID: id, Tool: "bash", Author: author, Input: json.RawMessage(args)}
	}
	shell := display.Shell{Command: "vi", HasRun: true, UsedTerminal: true}
	var records []event.Record
	add := func(actor string, events ...event.Event) {
		for _, e := range events {
			records = append(records, event.Record{Task: "t", Actor: actor, Time: day, Event: e})
		}
	}
	add("user", said(chat.TextMessage(chat.User, "fix it")))
	add("main", reply(chat.Message{Role: chat.Assistant, Parts: []chat.Part{chat.ToolCall{ID: "c1", Name: "edit", Args: json.RawMessage("{}")}}}), ask("edit"))
	add("user", event.InteractionResponded{Response: uip.Response{ID: "edit", Input: "go on"}})
	add("main", begun("c1", "main", "{}"), event.ToolCallCompleted{CallID: "c1"}, said(chat.ToolMessage(chat.ToolResult{CallID: "c1", Name: "edit", Text: "edited"})))
	add("verify", begun("v1", event.ActorVerifier, `{"command":"make test"}`), event.ToolCallCompleted{CallID: "v1", Output: json.RawMessage(`{"error":"exit code 2"}`), IsError: true})
	add("main", said(chat.TextMessage(chat.User, "the check failed, mend it")))
	add("user", said(chat.TextMessage(chat.User, "!ls")))
	add("main", begun("b1", "user", `{"command":"ls"}`), event.MessageAdded{Message: chat.TextMessage(chat.Assistant, "$ ls\na.txt"), Blocks: display.Blocks{display.Shell{}}})
	add("user", said(chat.TextMessage(chat.User, "!vi")))
	add("main", event.MessageAdded{Message: chat.TextMessage(chat.Assistant, "$ vi"), Blocks: display.Blocks{shell}}, ask("stop"))
	add("user", said(chat.TextMessage(chat.User, event.InterruptionPrefix+"]")), event.TaskCanceled{TaskID: "t", Reason: "why"})
	tr, err := FromRecords(head, func(yield func(event.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	page, text := html(t, tr), md(t, tr)
	for got, wants := range map[string][]string{
		page: {
			"<p>fix it</p>", "May it edit?", "</strong> go on", "<strong>edit</strong>", "<pre>edited</pre>", "<strong>Check of the edits</strong> <code>make test</code>",
			`<span class="failed">did not pass</span>`, "exit code 2", "<summary>coder sent the model</summary>", "mend it", "<h2>Command", "<code>!ls</code>", "<pre>$ ls\na.txt</pre>",
			"<code>!vi</code>", "went to the terminal", "May it stop?", "(none: stopped first)", `<p class="dim">interrupted</p>`, "The turn was cancelled",
		},
		text: {
			"> fix it", "May it edit?", "Answer: go on", "### edit", "edited", "### Check of the edits: make test", "**did not pass**", "exit code 2", "*coder sent the model*", "mend it",
			"### Command: !ls", "$ ls\na.txt", "### Command: !vi", "went to the terminal", "May it stop?", "(none: stopped first)", "*interrupted*", "*The turn was cancelled*",
		},
	} {
		at := 0
		for _, want := range wants {
			i := strings.Index(got[at:], want)
			if i < 0 {
				t.Fatalf("%q is missing or out of order in\n%s", want, got)
			}
			at += i
		}
		if strings.Contains(got, "Request interrupted") || strings.Contains(got, "Assistant") {
			t.Errorf("somebody says what they did not say:\n%s", got)
		}
	}
}

func TestMarkdown(t *testing.T) {
	got := md(t, session1(t))
	for _, want := range []string{
		"# Fix \\<the\\> bug\n", "- Model: m-1\n", "## User (2026-03-04 05:06:08 UTC)\n\n> 你好 &lt;script>alert(1)&lt;/script>\n", "> Thinking:\n>\n> hmm\n",
		"I **look** at `a<b`.", "#### Plan\n", "```go\nif a < b {}\n```\n", "### edit: x.go\n", "path: `x.go`\n", "**done (12ms)**\n\ndiff:\n\n```diff\n--- a/x.go\n",
		"**failed**\n\nok: `false`\n\nerror: `no`\n", "### Question: Run it? (", "Answer: Yes, run it; go on\n", "- [x] test it\n", "### Command: /tools (", "*(interrupted)*",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(got, "SYSTEM TEXT") || strings.Contains(got, "<script") {
		t.Error("something got in that should not")
	}
	if t.Failed() {
		t.Log(got)
	}
}

// tags are all the tags a page may hold, each written exactly so.
var tags = regexp.MustCompile(`</?(html|head|body|main|title|style|h1|h2|h3|h4|h5|h6|br|dl|dt|dd|section|p|pre|code|details|summary|strong|em|del|span|ul|ol|li|time|blockquote|hr|table|thead|tbody|tr|th|td|div|a)>` +
	`|<ol start="[0-9]+">|<div class="table">|<t[hd] class="(right|centre)">|<a href="(https?://|mailto:)[^<>"'\x60\s]+" rel="noopener noreferrer nofollow">` +
	`|<!doctype html>|<html lang="en">|<meta [^<>]*>|<section class="[a-z]+">|<p class="[a-z]+">|<details class="tool">|<pre class="diff">|<span class="[a-z]+">` +
	`|<img alt="picture" src="data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]*">`)

// checkPage fails unless everything in the page that is markup is ours, and
// every tag that opens closes.
func checkPage(t *testing.T, page string) {
	t.Helper()
	before, rest, _ := strings.Cut(page, "<style>")
	_, after, ok := strings.Cut(rest, "</style>")
	if !ok {
		t.Fatal("no style")
	}
	text := tags.ReplaceAllString(before+after, "")
	if i := strings.IndexAny(text, "<>\"'`"); i >= 0 {
		t.Errorf("markup that is not ours: %.80q", text[max(0, i-20):])
	}
	var open []string
	for _, tag := range regexp.MustCompile(`</?(section|p|pre|code|details|summary|strong|em|del|a|blockquote|table|thead|tbody|tr|td|th|div|ol|span|ul|li|h1|h2|h3|dl|main)\b`).FindAllString(before+after, -1) {
		name := strings.Trim(tag, "</")
		if !strings.HasPrefix(tag, "</") {
			open = append(open, name)
			continue
		}
		if len(open) == 0 || open[len(open)-1] != name {
			t.Fatalf("%s closes what is not open: %v", name, open)
		}
		open = open[:len(open)-1]
	}
	if len(open) > 0 {
		t.Errorf("not closed: %v", open)
	}
	if !utf8.ValidString(page) {
		t.Error("not UTF-8")
	}
}

func TestTheFrameAsksForNothing(t *testing.T) {
	for _, bad := range []string{"http:", "https:", "url(", "<script", "@import", "javascript:", "</", "src="} {
		if strings.Contains(strings.ToLower(pageStart+stylesheet), bad) {
			t.Errorf("the frame of the page holds %q", bad)
		}
	}
	if !strings.Contains(pageStart, "default-src 'none'") {
		t.Error("no policy forbids requests")
	}
}

var hostile = []string{
	"<script>alert(1)</script>", "</pre></code></details><script>x</script>", `"><img src=x onerror=alert(1)>`, "'-alert(1)-'", "</style><script>", "</title><script>",
	"<!--", "]]>", "&lt;script&gt;", "<svg/onload=alert(1)>", "[x](javascript:alert(1))", "![x](http://evil/x.png)", "```\n</code></pre><script>\n", "`<b>`**<i>**",
	"**`<b>**`", "\x00<\x1b[31m\u202e>\xff", "# <h1>", "~~~html\n<script>", "``<x>` `` *** ** ` ```", "@@ -1 +1 @@\n+<script>\n-'\"`\n", strings.Repeat("<", 50), "javascript:alert(1)",
}

// everywhere puts s wherever a session can hold text.
func everywhere(s string) (Transcript, error) {
	args, _ := json.Marshal(map[string]string{"command": s, s: s})
	result, _ := json.Marshal(map[string]any{s: s, "diff": patch + "+" + s, "nested": []string{s}})
	q := uip.Request{ID: "q", Display: uip.Display{Title: s, Description: s, Content: display.Table{Header: display.DataCells(s), Rows: [][]display.Cell{display.DataCells(s)}}}, Options: []uip.Option{{ID: s, Label: s}}}
	return FromRecords(session.Head{ID: s, Created: day, Meta: session.Meta{Title: s, Model: s, Dir: s}}, seq(
		said(chat.TextMessage(chat.System, s)),
		said(chat.Message{Role: chat.User, Parts: []chat.Part{chat.Text(s), chat.Image{MediaType: s, Data: []byte(s)}, chat.Image{MediaType: "image/png", Data: []byte(s)}}}),
		event.MessageAdded{Model: s, Usage: &chat.Usage{In: 1}, Message: chat.Message{Role: chat.Assistant, Parts: []chat.Part{
			chat.Reasoning{Text: s}, chat.Text(s), chat.ToolCall{ID: "a", Name: s, Args: args}, chat.ToolCall{ID: "b", Name: "x", Args: json.RawMessage("{}"), Broken: s},
		}}},
		said(chat.ToolMessage(chat.ToolResult{CallID: "a", Name: s, Text: string(result)})),
		said(chat.ToolMessage(chat.ToolResult{CallID: "none", Name: s, Text: s})),
		event.InteractionRequested{Request: q}, event.InteractionResponded{Response: uip.Response{ID: "q", Option: s, Input: s, Comment: s}},
		event.InteractionRequested{Request: uip.Request{ID: "q2", Display: uip.Display{Content: display.Diff{Unified: s}}}},
		event.TodosChanged{Todos: []event.Todo{{Content: s, Status: event.TodoStatus(s)}}},
		event.LocalAdded{Input: s, Output: s}, event.ModeChanged{Mode: s}, event.TaskCanceled{Reason: s},
		event.ContextReplaced{Reason: event.ReplaceReason(s), Messages: []chat.Message{chat.TextMessage(chat.User, s)}},
	))
}

func TestHostileContentStaysText(t *testing.T) {
	for _, s := range hostile {
		tr, err := everywhere(s)
		if err != nil {
			t.Fatal(err)
		}
		page := html(t, tr)
		checkPage(t, page)
		if t.Failed() {
			t.Fatalf("with %q", s)
		}
		checkMarkdown(t, s, md(t, tr))
	}
}

// checkMarkdown fails if a tag stands outside code.
func checkMarkdown(t *testing.T, s, text string) {
	t.Helper()
	lines := strings.Split(regexp.MustCompile(`(?m)^> ?`).ReplaceAllString(text, ""), "\n")
	for len(lines) > 0 {
		line, n := lines[0], 1
		if frontmatter.FenceMarker(line) != "" {
			line, n = "", 1+slices.Index(append(lines[1:len(lines):len(lines)], lines[0][:len(frontmatter.FenceMarker(lines[0]))]), frontmatter.FenceMarker(lines[0]))+1
		}
		lines = lines[min(n, len(lines)):]
		for line != "" {
			if _, n := parseCodeSpan(line); n > 0 {
				line = line[n:]
				continue
			}
			if regexp.MustCompile(`^<[a-zA-Z/!]`).MatchString(line) && !regexp.MustCompile(`^<(https?://[^\n<>"']+|br ?/?)>`).MatchString(line) {
				t.Errorf("%q gave a tag in %q", s, line)
			}
			_, n := utf8.DecodeRuneInString(line)
			if strings.HasPrefix(line, `\<`) || strings.HasPrefix(line, "\\`") {
				n = 2
			}
			line = line[max(n, len(line)-len(strings.TrimLeft(line, "`"))):]
		}
	}
}

func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "plain 中文": "plain 中文", `<a href="x">&'` + "`": "&lt;a href=&#34;x&#34;&gt;&amp;&#39;&#96;", "a\x00b": "a^@b", "\u202e": "&lt;U+202E&gt;", "\xff": "\ufffd",
		"&amp;": "&amp;amp;",
	} {
		if got := escape(in); got != want {
			t.Errorf("%q is escaped %q, want %q", in, got, want)
		}
	}
}

func TestFromSnapshot(t *testing.T) {
	var raw []json.RawMessage
	for _, m := range []chat.Message{
		chat.TextMessage(chat.User, "one"), {Role: chat.Assistant, Parts: []chat.Part{chat.ToolCall{ID: "c", Name: "read", Args: json.RawMessage(`{"path":"a"}`)}}},
		chat.ToolMessage(chat.ToolResult{CallID: "c", Name: "read", Text: "text of a"}), chat.TextMessage(chat.Assistant, "two"),
	} {
		b, err := m.MarshalOpenAI()
		if err != nil {
			t.Fatal(err)
		}
		raw = append(raw, b)
	}
	tr, err := FromSnapshot(session.Snapshot{
		Head: head, Messages: raw, Notes: []session.Note{{Index: 3, Time: day, Interrupted: true}},
		Local: []session.Local{{Before: 1, Input: "/first"}, {Before: 4, Input: "/last"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range tr.Entries {
		switch e := e.(type) {
		case Message:
			got = append(got, fmt.Sprint(e.Text, e.Interrupted))
		case *Call:
			got = append(got, e.Name+"="+e.Result)
		case Command:
			got = append(got, e.Input)
		}
	}
	if strings.Join(got, " ") != "onefalse /first read=text of a twotrue /last" {
		t.Errorf("%q", got)
	}
	if _, err := FromSnapshot(session.Snapshot{Head: head, Messages: []json.RawMessage{json.RawMessage(`5`)}}); err == nil || !strings.Contains(err.Error(), "message 0") {
		t.Errorf("%v", err)
	}
}

// Some providers use an id again in a later reply, and a result may be written
// twice.
func TestIDsUsedAgain(t *testing.T) {
	call := func(arg string) event.Event {
		return said(chat.Message{Role: chat.Assistant, Parts: []chat.Part{chat.ToolCall{ID: "c0", Name: "read", Args: json.RawMessage(`{"path":"` + arg + `"}`)}}})
	}
	result := func(text string) event.Event {
		return said(chat.ToolMessage(chat.ToolResult{CallID: "c0", Name: "read", Text: text}))
	}
	tr, _ := FromRecords(head, seq(call("a"), result("A"), call("b"), result("B"), result("again")))
	var got []string
	for _, e := range tr.Entries {
		got = append(got, e.(*Call).Args+e.(*Call).Result)
	}
	if strings.Join(got, " ") != `{"path":"a"}A {"path":"b"}B again` {
		t.Errorf("%q", got)
	}
}

func TestLayout(t *testing.T) {
	for in, want := range map[string]string{
		`{"ok":true,"n":5,"text":"a\nb","list":[1, "x"],"none":""}`: "n/0=5|text/1=a\nb|list/0=[1, \"x\"]",
		`{"ok":false}`: "ok/0=false", `plain`: "/1=plain", `{"torn":`: "/1={\"torn\":", `{"a":1} x`: "/1={\"a\":1} x", `[1]`: "/1=[1]", ``: "", `{}`: "",
	} {
		var got []string
		for _, f := range splitFields(in) {
			got = append(got, fmt.Sprintf("%s/%d=%s", f.name, f.kind, f.text))
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%s is %q, want %q", in, strings.Join(got, "|"), want)
		}
	}
}

func BenchmarkHTML(b *testing.B) {
	var events []event.Event
	for i := range 200 {
		id := fmt.Sprint("c", i)
		events = append(events, said(chat.TextMessage(chat.User, "please `look` at **this**")),
			said(chat.Message{Role: chat.Assistant, Parts: []chat.Part{chat.ToolCall{ID: id, Name: "bash", Args: json.RawMessage(`{"command":"cat x"}`)}}}),
			said(chat.ToolMessage(chat.ToolResult{CallID: id, Name: "bash", Text: strings.Repeat("if a < b && c > d {\n", 500)})))
	}
	tr, _ := FromRecords(head, seq(events...))
	var out bytes.Buffer
	for b.Loop() {
		out.Reset()
		if err := HTML(&out, tr, Locale{}); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(out.Len()))
}

func TestABrokenLogIsReported(t *testing.T) {
	broken := errors.New("torn")
	tr, err := FromRecords(head, func(yield func(event.Record, error) bool) {
		_ = yield(event.Record{Event: said(chat.TextMessage(chat.User, "kept"))}, nil) && yield(event.Record{}, broken)
	})
	if !errors.Is(err, broken) || len(tr.Entries) != 1 {
		t.Errorf("%v, %d entries", err, len(tr.Entries))
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestWriteErrors(t *testing.T) {
	tr := session1(t)
	if HTML(fullDisk{}, tr, Locale{}) == nil || Markdown(fullDisk{}, tr, Locale{}) == nil {
		t.Error("a full disk went unnoticed")
	}
}

func TestAnEmptySession(t *testing.T) {
	checkPage(t, html(t, Transcript{}))
	if got := md(t, Transcript{Head: session.Head{ID: "s"}}); got != "# Session s\n\n- Session: s\n\n" {
		t.Errorf("%q", got)
	}
}

func TestMarkdownIsWrittenAgainClosedAndWithoutTags(t *testing.T) {
	for in, want := range map[string]string{
		"a\nb":                                  "a\nb",
		"a\n```go\nx\n\ny\n```\nb\n":            "a\n```go\nx\n\ny\n```\nb",
		"```\nopen":                             "```\nopen\n```",
		"```\n```":                              "```\n\n```",
		"````\n```\n````\nz":                    "````\n```\n````\nz",
		"# T #\n#x\n####### y\nz":               "#### T\n#x\n####### y\nz",
		"~~~\n```\n~~~\n```\nq\n```":            "````\n```\n````\n```\nq\n```",
		"a\n# h\nb\n# i\n```x y\nc\n```\n":      "a\n#### h\nb\n#### i\n```x\nc\n```",
		"- a\n  ```<b>\n  <i>\n  ```\n<u>`<s>`": "- a\n  ```\n  <i>\n  ```\n&lt;u>`<s>`",
		"a  \nb\n\nT\n===\nc":                   "a  \nb\n\n#### T\nc",
		"see <https://x.org/a?b> <https:x>":     "see <https://x.org/a?b> &lt;https:x>",
		"**<b>** ``` <i> ` <u>":                 "**&lt;b>** ``` &lt;i> ` &lt;u>",
	} {
		var b bytes.Buffer
		m := markdown{Writer: bufio.NewWriter(&b)}
		m.writeProse(in, "")
		if m.Flush(); strings.Trim(b.String(), "\n") != want {
			t.Errorf("%q is written %q, want %q", in, b.String(), want)
		}
	}
}

func FuzzExport(f *testing.F) {
	for _, s := range hostile {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		tr, err := everywhere(s)
		if err != nil {
			t.Fatal(err)
		}
		checkPage(t, html(t, tr))
		checkMarkdown(t, s, md(t, tr))
	})
}

func TestSubtasksAreToldByTheirCall(t *testing.T) {
	on := func(task string, e event.Event) event.Record { return event.Record{Time: day, Task: task, Event: e} }
	records := []event.Record{
		on("t", event.TaskCreated{TaskID: "t"}), on("t", said(chat.TextMessage(chat.User, "mine"))),
		on("c", event.TaskCreated{TaskID: "c", ParentID: "t"}), on("c", said(chat.TextMessage(chat.User, "not mine"))), on("c", event.TaskFailed{Reason: "why"}),
		on("c", event.InteractionRequested{Request: uip.Request{ID: "ui_1", Display: uip.Display{Title: "May it?"}}}),
		on("t", said(chat.TextMessage(chat.Assistant, "done"))),
	}
	tr, err := FromRecords(head, func(yield func(event.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	})
	if err != nil || len(tr.Entries) != 3 {
		t.Fatalf("%d entries, %v: %+v", len(tr.Entries), err, tr.Entries)
	}
	if _, ok := tr.Entries[1].(*Question); !ok {
		t.Errorf("what people were asked is missing: %+v", tr.Entries)
	}
}

func TestAModeSwitchedByACommandIsToldOnce(t *testing.T) {
	tr, err := FromRecords(head, seq(
		event.ModeChanged{Mode: "plan"}, event.LocalAdded{Input: "/plan", Output: "mode: plan"},
		event.ModeChanged{Mode: "build"}, event.LocalAdded{Input: "/tools", Output: "read"},
	))
	if err != nil {
		t.Fatal(err)
	}
	got := html(t, tr)
	for mode, want := range map[string]int{"mode: plan": 1, "mode: build": 1} {
		if n := strings.Count(got, mode); n != want {
			t.Errorf("%s is told %d times", mode, n)
		}
	}
}

func TestAnswersAsTheyWereGiven(t *testing.T) {
	part := func(title string) uip.Request {
		return uip.Request{ID: title, Purpose: uip.PurposeRequestInfo, Display: uip.Display{Title: title}}
	}
	form := uip.Request{Parts: []uip.Request{part("Which?"), part("哪个？"), part("Name")}}
	hunks := uip.Request{Options: []uip.Option{{ID: uip.OptionSome, Label: "Yes to some of the 3 hunks, this once"}}}
	for _, tt := range []struct {
		q    uip.Request
		r    uip.Response
		want string
	}{
		{form, uip.Response{Parts: []uip.Response{{ID: "Which?", Input: "a"}, {ID: "哪个？", Input: "乙"}, {ID: "Name", Input: "x"}}}, "Which? a; 哪个？乙; Name: x"},
		{hunks, uip.Response{Option: uip.OptionSome, Input: "1 3"}, "Yes to some of the 3 hunks, this once: 1 3"},
	} {
		if got := (Locale{}).Response(tt.q, tt.r); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

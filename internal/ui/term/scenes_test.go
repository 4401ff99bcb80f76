package term_test

import (
	"fmt"
	"strings"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/testkit/rendertest"
)

// scene is something to look at.
type scene struct {
	name    string
	ascii   bool
	records []event.Record
	cards   []uip.Request
}

// told is events of the task "t", which a person asked for.
func told(es ...event.Event) []event.Record {
	first := event.MessageAdded{Message: chat.TextMessage(chat.User, "do it")}
	rs := []event.Record{{Task: "t", Event: event.TaskCreated{TaskID: "t", AgentID: "main"}}, {Task: "t", Event: first}}
	for _, e := range es {
		rs = append(rs, event.Record{Task: "t", Actor: "main", Event: e})
	}
	return rs
}

func said(text string) event.MessageAdded {
	return event.MessageAdded{Message: chat.TextMessage(chat.Assistant, text)}
}

const markdownText = "# Plan\n\nThis is **bold**, *slanted*, `code`, ~~gone~~ and [a link](https://example.org/x).\n\n" +
	"1. first\n2. second 世界\n   - nested\n\n> quoted *words*\n\n```go\n// add adds.\nfunc add(a, b int) int {\n\treturn a + b // \"sum\"\n}\n```\n\n" +
	"| Name | Size |\n|------|-----:|\n| `main.go` | 12 |\n| 世界.txt | 1024 |\n\n---\nDone: an unclosed **end"

const diffText = "--- a/x.go\n+++ b/x.go\n@@ -1,4 +1,4 @@\n package x\n-// old \x1b[31mred\n--- not a file name\n+// new\n+++ nor this\n \n" +
	"--- a/y\n+++ b/y\n@@ -1 +0,0 @@\n-gone\n\\ No newline at end of file\n"

func finished(id, tool, title, summary string) event.ToolFinished {
	return event.ToolFinished{CallID: id, Tool: tool, Title: title, Summary: summary, Duration: 3 * time.Millisecond}
}

func scenes() []scene {
	return []scene{
		{name: "story", records: rendertest.Story()},
		{name: "story-logs", records: rendertest.Durable(rendertest.Story())},
		{name: "answer", records: told(event.TextDelta{Text: "\n\n" + markdownText}, said(markdownText))},
		{name: "answer-ascii", ascii: true, records: told(said(markdownText))},
		{name: "thinking", records: told(
			event.ReasoningDelta{Text: "\n  First **this**.\n\n\n\nThen that.\n\n"}, event.TextDelta{Text: "So:"},
			event.ReasoningDelta{Text: "Wait."}, event.TextDelta{Text: "Yes."}, said("So:Yes."))},
		{name: "tools", records: told(toolEvents()...)},
		{name: "tools-ascii", ascii: true, records: told(toolEvents()...)},
		{name: "output", records: told(outputEvents()...)},
		{name: "todos", records: told(todoEvents()...)},
		{name: "remarks", records: told(
			event.Notice{Level: event.LevelInfo, Text: "saved"}, event.Notice{Level: event.LevelWarn, Text: "odd\x1b[2J\nthing"},
			event.TextDelta{Text: "one **tw"}, event.Notice{Level: event.LevelError, Text: "broken"}, event.TextDelta{Text: "o** three"},
			event.Retrying{Attempt: 2, MaxAttempts: 5, Wait: 1500 * time.Millisecond, Reason: "connection lost"},
			event.Retrying{Attempt: 3, MaxAttempts: 5},
			event.ContextReplaced{Reason: event.ReplaceCompacted, TokensBefore: 1000, TokensAfter: 100}, event.ContextRestored{},
			event.TextDelta{Text: "half"}, event.TaskFailed{TaskID: "t", Reason: "ask gpt: no credit left"})},
		{name: "interrupted", records: told(
			event.TextDelta{Text: "Half an **ans"}, event.MessageAdded{Message: chat.TextMessage(chat.Assistant, "Half an **ans"), Interrupted: true},
			event.Interrupted{Text: "[Request interrupted by user]"}, event.TaskCanceled{TaskID: "t"})},
		{name: "command", records: commandEvents()},
		{name: "local", records: []event.Record{
			{Event: event.LocalAdded{Input: "/todos", Blocks: display.Blocks{checklist}}},
			{Event: event.LocalAdded{Input: "/diff full", Blocks: display.Blocks{display.Text("1 file"), display.NewDiff(diffText), display.Text("\nplain - text\n")}}},
			{Event: event.LocalAdded{Input: "/help", Blocks: display.Blocks{
				display.Table{FirstWidth: 25, Rows: [][]display.Cell{
					display.TextCells("/help", "list the commands"), display.TextCells("/mode [build|plan|default|auto-edit|yolo]", "show the mode, or switch to another"),
					display.TextCells("/permissions [PRESET]", "show what is allowed, or take a preset: strict, balanced, build, plan"),
				}},
				display.Text("Enter sends, Ctrl+D on an empty line leaves, Esc stops a running turn."),
			}}},
			{Event: event.LocalAdded{Input: "/x", Output: "unknown command /x\x07", Failed: true}},
		}},
		{name: "local-ascii", ascii: true, records: []event.Record{{Event: event.LocalAdded{Input: "/todos", Blocks: display.Blocks{checklist}}}}},
		{name: "earlier", records: []event.Record{ // without blocks
			{Task: "t", Event: event.MessageAdded{Message: chat.TextMessage(chat.User, "!seq 50")}}, {Task: "t", Event: said("$ seq 50\nexit=0 duration=3ms\nstdout:\n" + strings.Repeat("x\n", 50))},
			{Event: event.LocalAdded{Input: "/agents", Output: "   agent  permissions\n*  build  ask\x1b[2J"}},
		}},
		{name: "cards-approval", cards: approvals()},
		{name: "cards-questions", cards: questions()},
	}
}

func toolEvents() []event.Event {
	return []event.Event{
		event.TextDelta{Text: "Let me look."}, said("Let me look."),
		event.ToolStarted{CallID: "1", Tool: "read", Title: "internal/app/app.go:1-80"}, finished("1", "read", "internal/app/app.go:1-80", "80 lines"),
		event.ToolStarted{CallID: "2", Tool: "read", Title: "a"}, event.ToolStarted{CallID: "3", Tool: "grep", Title: "b\x1b[31m"},
		finished("2", "read", "a", "1 line"), finished("3", "grep", "b\x1b[31m", ""),
		event.ToolStarted{CallID: "4", Tool: "read", Title: "none"},
		event.ToolFinished{CallID: "4", Tool: "read", Title: "none", Summary: "file not found", Failed: true, Duration: time.Millisecond},
		event.ToolFinished{CallID: "5", Tool: "write", Title: "a.txt", Failed: true, Denied: true, Result: chat.ToolResult{Text: `{"ok":false,"error":"not in plan mode"}`}},
		event.ToolStarted{CallID: "6", Tool: "edit", Title: "x.go"},
		event.ToolFinished{CallID: "6", Tool: "edit", Title: "x.go", Summary: "+2 -2", Content: display.Diff{Unified: diffText, Added: 2, Deleted: 2}, Duration: 61 * time.Second},
		event.ToolStarted{CallID: "7", Tool: "search_code", Title: "add"},
		event.ToolFinished{CallID: "7", Tool: "search_code", Title: "add", Summary: "2 results", Content: display.Table{
			Header: display.DataCells("place", "symbol"), Rows: [][]display.Cell{display.DataCells("internal/world/世界.go:12", "func add(a, b int) int"), display.DataCells("x.go:1", "add\tall")},
		}, Duration: 1200 * time.Millisecond},
		event.ToolStarted{CallID: "8", Tool: "git_log", Title: "HEAD"},
		event.ToolFinished{CallID: "8", Tool: "git_log", Title: "HEAD", Summary: "2 commits", Content: display.Text("abc one\ndef two\n")},
		event.TextDelta{Text: "So it is."}, said("So it is."),
	}
}

func outputEvents() []event.Event {
	exec := func(id string) event.Event {
		return event.ToolCallRequested{CallID: id, Effects: []event.Effect{{Kind: event.EffectExec, Target: "go"}}}
	}
	var long strings.Builder
	for i := range 50 {
		fmt.Fprintf(&long, "line %d\n", i+1)
	}
	return []event.Event{
		exec("1"), event.ToolStarted{CallID: "1", Tool: "bash", Title: "go test ./..."},
		event.ToolOutput{CallID: "1", Text: "ok\n\n10%\x1b[31m\r"}, event.ToolOutput{CallID: "1", Text: "\nend"},
		event.ToolFinished{CallID: "1", Tool: "bash", Title: "go test ./...", Summary: "exit 0", Content: display.Text("not twice"), Duration: 2 * time.Second},
		exec("2"), event.ToolStarted{CallID: "2", Tool: "bash", Title: "seq 50"}, event.ToolOutput{CallID: "2", Text: long.String()},
		finished("2", "bash", "seq 50", "exit 0"),
		exec("3"), exec("4"), event.ToolStarted{CallID: "3", Tool: "bash", Title: "a"}, event.ToolStarted{CallID: "4", Tool: "bash", Title: "b"},
		event.ToolOutput{CallID: "3", Text: "of a\n"}, event.ToolOutput{CallID: "4", Text: "of b"}, event.ToolOutput{CallID: "3", Text: "of a too\n"},
		finished("4", "bash", "b", "exit 0"), finished("3", "bash", "a", "exit 0"),
		exec("5"), event.ToolStarted{CallID: "5", Tool: "bash", Title: "wide"}, event.ToolOutput{CallID: "5", Text: strings.Repeat("世", 1000)},
		finished("5", "bash", "wide", "exit 0"),
	}
}

func todoEvents() []event.Event {
	list := []event.Todo{
		{Content: "read it", Status: event.TodoCompleted}, {Content: "mend\nit", Status: event.TodoInProgress},
		{Content: "test it", Status: event.TodoPending}, {Content: "odd", Status: "strange"},
	}
	end := finished("1", "todowrite", "4 items", "4 items")
	end.Content = display.Table{Header: display.DataCells("status"), Rows: [][]display.Cell{display.DataCells("not again")}}
	return []event.Event{
		event.ToolStarted{CallID: "1", Tool: "todowrite", Title: "4 items"}, event.TodosChanged{Todos: list}, end,
		event.TodosChanged{},
	}
}

var checklist = display.Checklist{{State: display.StateCompleted, Text: "a"}, {State: display.StateInProgress, Text: "b"}, {State: display.StatePending, Text: "c"}}

func commandEvents() []event.Record {
	var rs []event.Record
	for i, c := range []struct {
		input string
		block display.Block
	}{
		{"! seq 50", display.Shell{Command: "seq 50", HasRun: true, DurationMs: 3, Stdout: strings.Repeat("x\n", 50), Stderr: strings.Repeat("e\n", 22)}.Truncate(20)},
		{"!sleep 9", display.Shell{Command: "sleep 9", HasRun: true, ExitCode: 124, DurationMs: 5000, Stdout: strings.Repeat("x\n", 26), Error: "timed out after 5s"}.Truncate(20)},
		{"!rm x", display.Shell{Command: "rm x", Error: "denied: mode: rm would change something"}},
		{"!false", display.Shell{Command: "false", HasRun: true, ExitCode: 1, DurationMs: 1}},
		{" !ls", display.Text("command mode denied: bash disabled by active agent plan")},
	} {
		task := fmt.Sprint("b", i)
		for _, e := range []event.Event{
			event.TaskCreated{TaskID: task}, event.MessageAdded{Message: chat.TextMessage(chat.User, c.input)},
			event.ToolCallRequested{CallID: "c", Tool: "bash", Effects: []event.Effect{{Kind: event.EffectExec, Target: "x"}}},
			event.ToolStarted{CallID: "c", Tool: "bash", Title: c.input}, event.ToolOutput{CallID: "c", Text: "live\n"},
			event.ToolFinished{CallID: "c", Tool: "bash", Content: display.Text("live")}, event.MessageAdded{Message: chat.TextMessage(chat.Assistant, "for the model"), Blocks: display.Blocks{c.block}}, event.TaskCompleted{TaskID: task},
		} {
			rs = append(rs, event.Record{Task: task, Event: e})
		}
	}
	return rs
}

func approval(title, why string, content display.Block, always bool) uip.Request {
	q := uip.Request{
		ID: "q", Kind: uip.KindConfirm, Purpose: uip.PurposeConfirmRiskyAction,
		Display: uip.Display{Title: title, Description: why, Content: content, Metadata: map[string]string{"toolCallId": "c"}},
		Options: []uip.Option{{ID: uip.OptionApprove, Label: "Yes, this once"}},
	}
	if always {
		q.Display.Metadata["remembers"] = "go test"
		q.Options = append(q.Options, uip.Option{ID: uip.OptionAlways, Label: "Always"})
	}
	q.Options = append(q.Options, uip.Option{ID: uip.OptionReject, Label: "No", Default: true})
	return q
}

func approvals() []uip.Request {
	tricky := "ls" + strings.Repeat(" ", 500) + "; rm -rf ~\x1b[2K\ry = yes\u200b"
	return []uip.Request{
		approval("bash go test ./...", "rules: bash asks; risk: runs code", display.Code{Lang: "sh", Source: "cd x && go test ./... # \"all\""}, true),
		approval("bash ls", "risk: deletes files", display.Code{Lang: "sh", Source: tricky}, false),
		approval("edit x.go", "rules: edit asks", display.Diff{Unified: diffText}, false),
		{ID: "all", Kind: uip.KindComposite, Purpose: uip.PurposeConfirmRiskyAction, Display: uip.Display{Title: "2 calls need approval"}, Parts: []uip.Request{
			approval("bash make", "rules: bash asks", display.Code{Lang: "sh", Source: "make"}, true),
			approval("write a.txt", "rules: write asks", display.Diff{Unified: "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+x\n"}, false),
		}},
	}
}

func question(title string, options ...string) uip.Request {
	q := uip.Request{Kind: uip.KindSelect, Purpose: uip.PurposeChooseStrategy, Display: uip.Display{Title: title, Metadata: map[string]string{}}}
	for i, o := range options {
		id := fmt.Sprint(i + 1)
		q.Options = append(q.Options, uip.Option{ID: id, Label: o, Default: i == 0})
		q.Display.Metadata["label"+id], _, _ = strings.Cut(o, " — ")
	}
	return q
}

func questions() []uip.Request {
	return []uip.Request{
		question("你希望如何处理这个模块？", "重构整个模块 — all of it", "只修改核心函数", "保持不变"),
		{Kind: uip.KindComposite, Purpose: uip.PurposeRequestInfo, Parts: []uip.Request{question("First?", "a", "b"), {Kind: uip.KindInput, Display: uip.Display{Title: "Second?\x07"}}}},
		{Kind: uip.KindSelect, Purpose: uip.PurposeChooseStrategy, Display: uip.Display{
			Title: "How should the plan be carried out?", Description: "kept in p.md", Content: display.Text("# Plan\n\n1. **Do** it\n"),
		}, Options: []uip.Option{{ID: "startEditing", Label: "Start editing", Style: uip.StylePrimary, Default: true}, {ID: "keep", Label: "Keep planning"}}},
	}
}

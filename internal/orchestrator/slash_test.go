package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"coder/internal/chat"
	"coder/internal/event"
	"coder/internal/profile"
	"coder/internal/show"
	"coder/internal/undo"
)

// counter is a desk that does what it can without a world, and writes down
// what it was asked.
type counter struct{ asked []string }

func (c *counter) note(format string, args ...any) {
	c.asked = append(c.asked, fmt.Sprintf(format, args...))
}

func (c *counter) desk() Desk {
	return Desk{
		SwitchModel: func(_ context.Context, name string) string { c.note("model %s", name); return "not remembered" },
		Models: func(context.Context) (show.Table, error) {
			return show.Table{Rows: [][]string{{"*", "m"}}}, errBoom
		},
		NewSession: func() string { return "fresh" },
		Sessions: func(context.Context) (show.Table, error) {
			return show.Table{Head: []string{"session"}, Rows: [][]string{{"old"}}}, nil
		},
		Find: func(_ context.Context, id string) (bool, error) {
			if id == "old" || id == "here" {
				return id == "here", nil
			}
			return false, fmt.Errorf("there is no session %s", id)
		},
		Export: func(_ context.Context, e Export) (string, error) {
			c.note("export %s|%s", e.Format, e.Path)
			return "out", nil
		},
		Diff: func(_ context.Context, d Diff) (string, error) {
			c.note("diff %v|%s", d.Full, d.Path)
			return "changes", nil
		},
		Undo: c.revert("undo"), Redo: c.revert("redo"),
		Spent: func() []Spending {
			return []Spending{
				{Turn: 1, Model: "a", Usage: chat.Usage{In: 10, Out: 1}, USD: 0.5, Known: true},
				{Turn: 2, Model: "b", Usage: chat.Usage{In: 20, Out: 2}},
			}
		},
		Agents: func() Listing {
			return Listing{Items: []Item{{"helper", "helps\nwith much"}}, Warnings: []string{"bad.md: no name"}}
		},
		Config: func() show.Table { return show.Table{Rows: [][]string{{"a.b", "1", "default"}, {"c", "2", "default"}}} },
		Status: func(context.Context) [][]string { return [][]string{{"version", "9"}} },
		Trust:  func(_ context.Context, do Trust) (string, error) { c.note("trust %d", do); return "as it is", nil },
	}
}

func (c *counter) revert(name string) func(context.Context, undo.Call) (undo.Report, error) {
	return func(ctx context.Context, call undo.Call) (undo.Report, error) {
		c.note("%s all=%v force=%v dry=%v", name, call.All, call.Force, call.DryRun)
		if name == "redo" {
			return undo.Report{}, undo.ErrNothingUndone
		}
		id := call.NewID()
		err := call.Emit(ctx, event.ToolCallRequested{CallID: id, Tool: "undo"})
		return undo.Report{
			Turn: undo.Turn{Title: "the turn"}, Restored: []string{"a", "p"}, Partly: []string{"p"}, Removed: []string{"b"},
			Kept: []undo.Note{{Path: "k", Why: "changed"}}, Lost: []undo.Note{{Path: "l", Why: "too large"}},
			NotUndone: []string{"n"}, Commands: []string{"make", "make"},
		}, err
	}
}

func newDeskBench(t *testing.T, script string) (*bench, *counter) {
	b, c := newBench(t, script), &counter{}
	state, err := profile.NewState(profile.Build, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.Config.Profile, b.Config.Desk = state, c.desk()
	b.Config.Todos = func() []event.Todo {
		return []event.Todo{{Content: "x", Status: event.TodoCompleted}, {Content: "y", Status: event.TodoPending}}
	}
	return b, c
}

func TestCommandsAnswerWithoutTheModel(t *testing.T) {
	for _, tt := range []struct{ input, want, asked string }{
		{"/help", "Ctrl+D on an empty line leaves", ""},
		{"/model", "model: m\n*  m\nthe endpoint does not say which models it has: boom", ""},
		{"/model big-1", "model: m", "model big-1"},
		{"/mode", "mode: build", ""},
		{"/permissions", "permissions: build", ""},
		{"/tools", "read            read something", ""},
		{"/agents", "helper  helps\nnot usable: bad.md: no name", ""},
		{"/todos", "☑ x\n☐ y", ""},
		{"/context", "of 1000 tokens are in use", ""},
		{"/cost", "all         30  0       3    $0.5000", ""},
		{"/diff", "changes", "diff false|"},
		{"/diff full", "changes", "diff true|"},
		{"/diff a b.txt", "changes", "diff true|a b.txt"},
		{"/diff full a.txt", "changes", "diff true|a.txt"},
		{"/undo", "undone: the turn\n  restored: a\n  restored to what someone else made of it meanwhile: p\n  removed: b\n" +
			"  left as it is: k (changed)\n  /undo force overwrites it\n  lost: l (too large)\n" +
			"  changed by commands and left as it is (all includes it): n\n  what these commands did elsewhere stays: make", "undo all=false force=false dry=false"},
		{"/undo dry all force", "undone: the turn", "undo all=true force=true dry=true"},
		{"/redo", "there is nothing to redo", "redo all=false force=false dry=false"},
		{"/sessions", "session\nold\n/resume ID goes on", ""},
		{"/resume", "session\nold\n/resume ID goes on", ""},
		{"/resume here", "this is session here already", ""},
		{"/export", "written: out", "export |"},
		{"/help", "/mode [build|plan|default|auto-edit|yolo]\n                         show the mode, or switch to another\n/build   ", ""},
		{"/export out/notes", "written: out", "export |out/notes"},
		{"/export html", "written: out", "export html|"},
		{"/export md my file.md", "written: out", "export md|my file.md"},
		{"/export notes.html", "written: out", "export |notes.html"},
		{"/config a.", "a.b  1  default", ""},
		{"/status", "version      9", ""},
		{"/trust", "as it is", "trust 0"},
		{"/trust yes", "as it is", "trust 1"},
		{"/trust no", "as it is", "trust 2"},
	} {
		t.Run(tt.input, func(t *testing.T) {
			b, c := newDeskBench(t, "")
			var kept event.LocalAdded
			b.onEach = func(e event.Event) {
				if l, ok := e.(event.LocalAdded); ok {
					kept = l
				}
			}
			text, err := b.RunInput(t.Context(), tt.input, b)
			if err != nil || !strings.Contains(text, tt.want) {
				t.Errorf("got %q, %v; want %q", text, err, tt.want)
			}
			if got := strings.Join(c.asked, " "); got != tt.asked {
				t.Errorf("the desk was asked for %q, want %q", got, tt.asked)
			}
			if kept.Input != tt.input || kept.Output != text || kept.Failed {
				t.Errorf("on record: %+v", kept)
			}
			if len(b.model.Seen()) != 0 || len(b.Talk.Messages()) != 0 || b.saved != 1 {
				t.Errorf("%d requests, %d messages, saved %d times", len(b.model.Seen()), len(b.Talk.Messages()), b.saved)
			}
		})
	}
}

func TestCommandsThatCannotBeRunAsWritten(t *testing.T) {
	for input, want := range map[string]string{
		"/fork":          "unknown command /fork; /help lists the commands",
		"/modle x":       "unknown command /modle; did you mean /model? /help lists the commands",
		"/sess":          "unknown command /sess; did you mean /sessions? /help lists the commands",
		"/HELPP":         "unknown command /helpp; did you mean /help? /help lists the commands",
		"/resume 1":      "there is no session 1",
		"/export pdf":    `there is no form "pdf"; /export takes json, md or html`,
		"/export pdf a":  `there is no form "pdf"; /export takes json, md or html`,
		"/undo it":       `/undo takes the words all, force and dry, not "it"`,
		"/model a b":     "the name of a model is one word",
		"/config x":      "there is no setting x",
		"/trust maybe":   `/trust takes yes or no, not "maybe"`,
		"/new x":         "/new takes no arguments",
		"/compact undo":  "nothing was compacted, so nothing can be brought back",
		"/mode turbo":    `there is no mode "turbo"`,
		"/skills":        "/skills is not available here",
		"/xxxxxxxxxxxxx": "unknown command /xxxxxxxxxxxxx; /help lists the commands",
	} {
		b, _ := newDeskBench(t, "")
		var kept event.LocalAdded
		b.onEach = func(e event.Event) {
			if l, ok := e.(event.LocalAdded); ok {
				kept = l
			}
		}
		_, err := b.RunInput(t.Context(), input, b)
		if known := (*CommandError)(nil); !errors.As(err, &known) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", input, err, want)
		}
		if !kept.Failed || kept.Output != err.Error() {
			t.Errorf("%s: on record: %+v", input, kept)
		}
		if len(b.model.Seen()) != 0 {
			t.Errorf("%s was sent to the model", input)
		}
	}
}

func TestWithoutADeskCommandsSaySo(t *testing.T) {
	for _, c := range Commands() {
		b := newBench(t, "")
		if slices.Contains([]string{"help", "model", "tools", "init", "context", "agents", "status", "exit", "quit", "compact", "mode", "permissions"}, c.Name) ||
			slices.Contains(profile.Names(), c.Name) {
			continue
		}
		if _, err := b.RunInput(t.Context(), "/"+c.Name, b); err == nil || err.Error() != "/"+c.Name+" is not available here" {
			t.Errorf("/%s: %v", c.Name, err)
		}
	}
}

func TestLeavingIsOnRecordAndNoFailure(t *testing.T) {
	for input, want := range map[string]Leave{
		"/new": {New: true, Resume: "fresh"}, "/clear": {New: true, Resume: "fresh"},
		"/resume old": {Resume: "old"}, "/exit": {Exit: true}, "/quit": {Exit: true},
	} {
		b, _ := newDeskBench(t, "")
		failed, local := false, 0
		b.onEach = func(e event.Event) {
			if l, ok := e.(event.LocalAdded); ok {
				failed, local = l.Failed, local+1
			}
		}
		text, err := b.RunInput(t.Context(), input, b)
		if strings.HasPrefix(input, "/resume") && text != "opening session old" {
			t.Errorf("%s: %q", input, text)
		}
		var to *Leave
		if !errors.As(err, &to) || *to != want || failed || local != 1 || b.saved != 1 {
			t.Errorf("%s: %+v, failed %v, %d records, saved %d", input, err, failed, local, b.saved)
		}
	}
}

func TestUndoingNothingIsSaid(t *testing.T) {
	kept := []undo.Note{{Path: "k", Why: "changed"}}
	for _, tt := range []struct {
		name string
		r    undo.Report
		want string
	}{
		{"undo", undo.Report{Kept: kept}, "nothing was undone: the last turn\n  left as it is: k (changed)\n  /undo force overwrites it"},
		{"redo", undo.Report{Kept: kept}, "nothing was redone: the last turn\n  left as it is: k (changed)\n  /redo force overwrites it"},
		{"undo", undo.Report{Kept: kept, DryRun: true}, "nothing would be undone: the last turn"},
		{"undo", undo.Report{NotUndone: []string{"n"}}, "nothing was undone: the last turn\n  changed by commands"},
		{"undo", undo.Report{Lost: kept}, "nothing was undone: the last turn\n  lost: k"},
		{"undo", undo.Report{Kept: kept, Removed: []string{"a"}}, "undone: the last turn\n  removed: a"},
		{"undo", undo.Report{Removed: []string{"a"}, DryRun: true}, "would be undone: the last turn\n  removed: a"},
		{"undo", undo.Report{}, "undone: the last turn\n  no file had to be changed"},
	} {
		if got := undoReport(tt.name, tt.r); !strings.HasPrefix(got, tt.want) {
			t.Errorf("/%s of %+v: %q, want %q", tt.name, tt.r, got, tt.want)
		}
	}
}

func TestCostWithoutReportedUsage(t *testing.T) {
	b, _ := newDeskBench(t, "say hello")
	b.Config.Desk.Spent = func() []Spending { return nil }
	for _, step := range []struct{ input, want string }{
		{"/cost", "nothing was spent in this session"},
		{"!ls", ""},
		{"/cost", "nothing was spent in this session"},
		{"hi", "hello"},
		{"/cost", "the provider did not report what the replies of this session used"},
	} {
		if got, err := b.RunInput(t.Context(), step.input, b); err != nil || step.want != "" && got != step.want {
			t.Errorf("%s: %q, %v; want %q", step.input, got, err, step.want)
		}
	}
}

func TestInitIsATurn(t *testing.T) {
	b, _ := newDeskBench(t, "say drafted")
	text, err := b.RunInput(t.Context(), "/init in verse", b)
	if err != nil || text != "drafted" {
		t.Fatalf("%q, %v", text, err)
	}
	if told := b.told(0); !strings.Contains(told, "Draft an AGENTS.md") || !strings.HasSuffix(told, "The user adds: in verse") || strings.Contains(told, "/init") {
		t.Errorf("the model was told %q", told)
	}
	if log := b.log.String(); !strings.HasPrefix(log, "LocalAdded TaskCreated ") {
		t.Errorf("shown: %s", log)
	}
}

func TestTheTableOfCommands(t *testing.T) {
	seen := make(map[string]bool)
	for _, c := range commands() {
		if seen[c.name] || !isCommandName(c.name) || c.help == "" || (c.run == nil) == (c.prompt == nil) {
			t.Errorf("/%s: seen %v, help %q", c.name, seen[c.name], c.help)
		}
		seen[c.name] = true
	}
	for _, name := range strings.Fields("help model permissions mode plan build default auto-edit yolo tools skills todos new clear resume sessions compact diff undo redo context cost export init agents config status trust exit") {
		if !seen[name] {
			t.Errorf("there is no /%s", name)
		}
	}
}

func TestLongAccountsAreSummedUp(t *testing.T) {
	var all []Spending
	for i := range 50 {
		all = append(all, Spending{Turn: i + 1, Model: "m", Usage: chat.Usage{In: 1}, USD: 1, Known: true})
	}
	rows := turnsTable(all).Rows
	if len(rows) != turnsShown+1 || rows[0][0] != "before" || rows[0][2] != "30" || rows[0][5] != "$30.0000" || rows[1][0] != "31" {
		t.Errorf("%v", rows[:2])
	}
}

func FuzzNearest(f *testing.F) {
	f.Add("modle")
	f.Add("")
	f.Add(strings.Repeat("x", 100))
	var names []string
	for _, c := range Commands() {
		names = append(names, c.Name)
	}
	f.Fuzz(func(t *testing.T, word string) {
		near := nearest(word, names)
		if near != "" && !slices.Contains(names, near) {
			t.Errorf("%q gives %q", word, near)
		}
		if distance(word, word) != 0 && len(word) <= longestName {
			t.Errorf("%q is not itself", word)
		}
	})
}

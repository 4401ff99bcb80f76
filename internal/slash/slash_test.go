package slash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"coder/internal/agent/broker"
	"coder/internal/agent/compact"
	"coder/internal/agent/conversation"
	"coder/internal/agent/orchestrator"
	"coder/internal/authored/skills"
	"coder/internal/config"
	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/host/program"
	"coder/internal/host/workspace"
	"coder/internal/model/scripted"
	"coder/internal/policy/mode"
	"coder/internal/policy/trust"
	"coder/internal/record/session"
	"coder/internal/record/undo"
	window "coder/internal/report/ledger"
	"coder/internal/tool"
	"coder/internal/tool/git"
)

// world is what the commands of a test work on. It writes down what it was
// asked.
type world struct {
	asked []string
	dir   string
	kept  []event.LocalAdded
	talk  conversation.Conversation
	model string
	seen  *scripted.Provider
}

func (w *world) note(format string, args ...any) {
	w.asked = append(w.asked, fmt.Sprintf(format, args...))
}

func (w *world) Switch(_ context.Context, name string, _ bool) (string, error) {
	w.note("model %s", name)
	w.model = name
	return "not remembered", nil
}

func (w *world) List(context.Context) (display.Table, error) {
	return display.Table{Rows: [][]display.Cell{display.DataCells("*", "m")}}, errors.New("boom")
}

func (w *world) ListHeads(context.Context) ([]session.Head, error) {
	return []session.Head{{ID: "old", Updated: time.Unix(0, 0)}}, nil
}

func (w *world) CheckFree(_ context.Context, id string) error {
	if id != "old" {
		return fmt.Errorf("unknown session %s", id)
	}
	return nil
}

func (w *world) Export(_ context.Context, out io.Writer, id, format string) error {
	w.note("write %s %s", id, format)
	_, err := io.WriteString(out, "written")
	return err
}

func (w *world) revert(name string) RevertFunc {
	return func(ctx context.Context, c undo.Request) (undo.Plan, error) {
		w.note("%s all=%v force=%v dry=%v", name, c.All, c.Force, c.DryRun)
		if name == "redo" {
			return undo.Plan{}, undo.ErrNothingToRedo
		}
		err := c.Emit(ctx, event.ToolCallRequested{CallID: c.NewID(), Tool: "undo"})
		return undo.Plan{
			Turn: undo.Turn{Title: "the turn"}, Restored: []string{"a", "p"}, PartlyRestored: []string{"p"}, Removed: []string{"b"},
			Unchanged: []undo.Note{{Path: "k", Why: "changed", Force: undo.ForceOverwrite}}, Lost: []undo.Note{{Path: "l", Why: "too large"}},
			NotUndone: []string{"n"}, Commands: []string{"make", "git push", "git push", "python3 -c 'print(1)'"},
		}, err
	}
}

// Emit takes down the commands on record.
func (w *world) Emit(_ context.Context, r event.Record) error {
	if l, ok := r.Event.(event.LocalAdded); ok {
		w.kept = append(w.kept, l)
	}
	return nil
}

// open is a session with every command there is.
func open(t *testing.T) (*orchestrator.Orchestrator, *world) {
	t.Helper()
	w := &world{dir: t.TempDir(), model: "m"}
	ws, err := workspace.Open(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.Close() })
	state, err := mode.NewState(mode.Build, nil)
	if err != nil {
		t.Fatal(err)
	}
	script, err := scripted.Parse("")
	if err != nil {
		t.Fatal(err)
	}
	_, report, err := config.Load(config.Options{Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(tool.Func[struct{}]{Name: "look", Doc: "look at it. More.", Plan: func(context.Context, struct{}) (tool.Plan, error) { return tool.Plan{}, nil },
		Do: func(context.Context, struct{}, io.Writer) (tool.Result, error) { return tool.Result{}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	w.seen = scripted.New(script, scripted.Options{})
	ledger := &CostTally{WithCost: func(model string, u chat.Usage) chat.Usage {
		u.Unpriced = model != "a"
		if !u.Unpriced {
			u.Cost = float64(u.In) / 20
		}
		return u
	}}
	for i, model := range []string{"a", "b"} {
		task := fmt.Sprint("t", i)
		ledger.Add(event.Record{Event: event.TaskCreated{TaskID: task, Title: task}})
		ledger.Add(event.Record{Task: task, Event: event.MessageAdded{Model: model, Usage: &chat.Usage{In: 10 * (i + 1), Out: i + 1}}})
	}
	now := func() time.Time { return time.Unix(0, 0) }
	changes := &Changes{Git: git.Options{Workspace: ws, Launcher: program.NewOutside(os.Environ(), ws.Root())}, ReadSaved: func(string, int64) ([]byte, error) { return []byte("old\n"), nil }}
	changes.Add(event.Record{Event: event.ToolCallCompleted{Changes: []event.FileChange{{Before: event.FileState{Path: "a.txt", Hash: "h", Size: 4}}}}})
	if err := os.WriteFile(filepath.Join(w.dir, "a.txt"), []byte("new\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	book := trust.Registry{Path: filepath.Join(w.dir, "trust.json"), Now: now}
	commands := All(Deps{
		Session: "here", Root: w.dir, DataDir: w.dir + "/.coder", Now: now, NewID: func() string { return "fresh" },
		Records: Records{Archive: w, Ledger: func(context.Context, string, uint64) (*window.Ledger, error) { return window.New(nil), nil }},
		Files:   Files{Changes: changes, Undo: w.revert("undo"), Redo: w.revert("redo")},
		Costs:   ledger, Models: w, Skills: skills.New(), Settings: preferences{report.Rows}, Trust: book,
		Permissions: func() display.Table { return display.Table{Rows: [][]display.Cell{display.DataCells("bash", "ask")}} },
		Revoke:      func(which string) (string, error) { w.note("revoke %s", which); return "gone", nil },
		Agents: func() ([]Item, []string) {
			return []Item{{Name: "helper", Description: "helps\nwith much"}}, []string{"bad.md: no name"}
		},
		Todos: func() []event.Todo {
			return []event.Todo{{Content: "x", Status: event.TodoCompleted}, {Content: "y", Status: event.TodoPending}}
		},
		Jobs: func() []Job {
			zero := 0
			return []Job{{ID: "job-1", State: "running", Elapsed: "3s", Command: "serve"}, {ID: "job-2", State: "ended", ExitCode: &zero, Command: "make", Log: "runs/2.log"}}
		},
		Tasks: func(context.Context) ([]Task, error) {
			return []Task{{Title: "look", Status: "running", IsSubagent: true, Created: now()}, {Title: "go", Status: "waiting for you", Created: now(), Question: display.Cell{Text: "edit a.txt"}}}, nil
		},
		Status: func(context.Context) [][]display.Cell { return [][]display.Cell{display.DataCells("version", "9")} },
		PreviewTrust: func() ([][]display.Cell, func() error, error) {
			return nil, func() error { return book.Trust(w.dir) }, nil
		},
	})
	o := orchestrator.New(orchestrator.Config{
		Engine: orchestrator.Engine{
			Provider: w.seen, Mode: state, Commands: commands,
			Settings: func() orchestrator.Settings {
				m, _ := state.Current()
				return orchestrator.Settings{Model: w.model, Mode: m.Name, System: "be good", Tools: set, MaxSteps: 4, ContextLimit: 1000}
			},
		},
		Conversation: &w.talk, RecordingSink: func(out event.Sink) event.Sink { return out }, NewInteractor: broker.New(uip.NoInteractor).WithSink,
		Save:  func(context.Context) error { return nil },
		NewID: func(prefix string) string { return prefix }, Now: now,
	})
	return o, w
}

func TestCommandsAnswerWithoutTheModel(t *testing.T) {
	for _, tt := range []struct{ input, want, asked string }{
		{"/help", "Ctrl+D on an empty line quits", ""},
		{"/model", "model: m\n*  m\nthe endpoint does not list its models: boom", ""},
		{"/model big-1", "model: big-1", "model big-1"},
		{"/mode", "mode: build", ""},
		{"/permissions", "permissions: build", ""},
		{"/tools", "look            look at it", ""},
		{"/agents", "helper  helps\nbad.md: no name", ""},
		{"/todos", "☑ x\n☐ y", ""},
		{"/jobs", "job-1  running        3s        serve", ""},
		{"/jobs", "job-2  ended, exit 0            make     runs/2.log", ""},
		{"/tasks", "running          > look", ""},
		{"/tasks", "open question    edit a.txt", ""},
		{"/context", "of 1000 tokens used", ""},
		{"/cost", "all         30  0       3    $0.5000", ""},
		{"/diff", "in this session: 1 changed\n  a.txt  +1 -1", ""},
		{"/diff full", "-old\n+new", ""},
		{"/diff a b.txt", "no changes by this session in a b.txt remain", ""},
		{"/diff full a.txt", "-old\n+new", ""},
		{"/undo", "undone: the turn\n  restored: a\n  restored to someone else's later version: p\n  removed: b\n" +
			"  unchanged: k (changed)\n  /undo force overwrites: k\n  lost: l (too large)\n" +
			"  changed by commands, not restored (all includes them): n\n  not undone outside this folder: git push\n  not undone: what 2 commands did outside this folder, if anything", "undo all=false force=false dry=false"},
		{"/undo dry all force", "undone: the turn", "undo all=true force=true dry=true"},
		{"/redo", "nothing to redo", "redo all=false force=false dry=false"},
		{"/sessions", "*  here     1970-01-01 00:00  0\n   old ", ""},
		{"/resume", "/resume ID continues one of them", ""},
		{"/resume here", "already in session here", ""},
		{"/export", "written: here.md", "write here md"},
		{"/help", "/mode [build|plan|default|auto-edit|yolo]\n                         show the mode, or switch to another\n/build   ", ""},
		{"/export ./notes", "written: ./notes", "write here md"},
		{"/export html", "written: here.html", "write here html"},
		{"/export md my file.md", "written: my file.md", "write here md"},
		{"/export notes.html", "written: notes.html", "write here html"},
		{"/config storage.fsync", "storage.fsync  \"decisions\"  default", ""},
		{"/status", "version      9", ""},
		{"/trust", "this folder is not trusted", ""},
		{"/trust yes", "this folder is trusted\nchecks now run without approval", ""},
		{"/trust no", "this folder is not trusted", ""},
		{"/skills", "create-skill  write down", ""},
		{"/permissions revoke 2", "gone", "revoke 2"},
	} {
		o, w := open(t)
		got, err := o.RunText(t.Context(), tt.input, w)
		if err != nil || !strings.Contains(got.Text, tt.want) {
			t.Errorf("%s: got %q, %v; want %q", tt.input, got.Text, err, tt.want)
		}
		if got := strings.Join(w.asked, " "); got != tt.asked {
			t.Errorf("%s: asked for %q, want %q", tt.input, got, tt.asked)
		}
		if len(w.kept) != 1 || w.kept[0].Output != got.Text || len(w.seen.Requests()) != 0 {
			t.Errorf("%s: on record: %+v", tt.input, w.kept)
		}
	}
}

// Of a conversation that was made shorter /context tells what was done to it, and
// /compact undo what it brings back; the figures add up to the window.
func TestContextTellsWhatWasDone(t *testing.T) {
	long := chat.ToolMessage(chat.ToolResult{CallID: "1", Name: "look", Text: strings.Repeat("line\n", 1000)})
	calls := chat.Message{Role: chat.Assistant, Parts: []chat.Part{chat.ToolCall{ID: "1", Name: "look", Args: json.RawMessage("{}")}}}
	view := []chat.Message{chat.TextMessage(chat.User, "first"), calls, long, chat.TextMessage(chat.Assistant, "seen")}
	pruned, _ := compact.Prune(view, 1)
	for _, tt := range []struct {
		name       string
		done       event.ContextReplaced
		tells, not string
		back       string
	}{
		{"pruned", event.ContextReplaced{Reason: event.ReplaceCompacted, Messages: pruned[:3], Keep: 1, Description: "old output was pruned"},
			"\n1 message was shortened; /compact undo restores it in full\nlast: old output was pruned", "a summary replaces", "1 message restored in full"},
		{"summarised", event.ContextReplaced{Reason: event.ReplaceCompacted, Messages: []chat.Message{compact.NewMessage("it looked", compact.Carryover{}, 500)}, Keep: 1},
			"\na summary replaces 3 earlier messages; /compact undo restores them\n  first", "shortened", "3 messages restored"},
		{"another mode", event.ContextReplaced{Reason: event.ReplaceModeSwitched},
			"\nthe mode changed, and the model no longer sees 4 earlier messages; /compact undo restores them\n  first", "a summary replaces", "4 messages restored"},
	} {
		o, w := open(t)
		for i, m := range view {
			w.talk.Add(event.Record{Seq: uint64(i), Event: event.MessageAdded{Message: m, Usage: &chat.Usage{In: 500, Out: 5}}})
		}
		w.talk.Add(event.Record{Seq: 9, Event: tt.done})
		got, err := o.RunText(t.Context(), "/context", w)
		if err != nil || !strings.Contains(got.Text, tt.tells) || strings.Contains(got.Text, tt.not) {
			t.Errorf("%s: %v\n%s", tt.name, err, got.Text)
		}
		sum, used := 0, 0
		for line := range strings.Lines(got.Text) {
			if f := strings.Fields(line); strings.HasSuffix(strings.TrimSpace(line), "%") {
				n, _ := strconv.Atoi(f[len(f)-2])
				sum += n
			}
			_, _ = fmt.Sscanf(line, "%d of 1000 tokens used", &used)
		}
		if sum != max(1000, used) || used == 0 {
			t.Errorf("%s: the parts come to %d:\n%s", tt.name, sum, got.Text)
		}
		if got, err := o.RunText(t.Context(), "/compact undo", w); err != nil || got.Text != tt.back {
			t.Errorf("%s: %q, %v", tt.name, got.Text, err)
		}
	}
}

func TestNoTokensAreFreeInAFullWindow(t *testing.T) {
	o, w := open(t)
	w.talk.Add(event.Record{Event: event.MessageAdded{Message: chat.TextMessage(chat.User, "first")}})
	w.talk.Add(event.Record{Seq: 1, Event: event.MessageAdded{Message: chat.TextMessage(chat.Assistant, "seen"),
		Usage: &chat.Usage{In: 1500, Out: 5}}})
	got, err := o.RunText(t.Context(), "/context", w)
	if err != nil || !regexp.MustCompile(`(?m)^free +0 +0`).MatchString(got.Text) {
		t.Errorf("%v\n%s", err, got.Text)
	}
}

func TestCommandsThatCannotBeRunAsWritten(t *testing.T) {
	for input, want := range map[string]string{
		"/fork":               "unknown command /fork; /help lists the commands",
		"/modle x":            "unknown command /modle; did you mean /model? /help lists the commands",
		"/sess":               "unknown command /sess; did you mean /sessions? /help lists the commands",
		"/HELPP":              "unknown command /helpp; did you mean /help? /help lists the commands",
		"/resume 1":           "unknown session 1",
		"/export pdf":         `unknown format "pdf"; /export takes json, md or html`,
		"/export pdf a":       `unknown format "pdf"; /export takes json, md or html`,
		"/undo #x":            `/undo takes a call's record number, such as #48, not "#x"`,
		"/redo it":            `/redo takes force and dry, not "it"`,
		"/model a b":          "a model name is one word",
		"/config x.y":         `unknown key "x.y"`,
		"/trust maybe":        `/trust takes yes or no, not "maybe"`,
		"/new x":              "/new takes no arguments",
		"/compact undo":       "nothing was compacted, so there is nothing to restore",
		"/mode turbo":         `unknown mode "turbo"`,
		"/export a/b":         "folder a does not exist",
		"/permissions revoke": "use /permissions revoke N",
		"/xxxxxxxxxxxxx":      "unknown command /xxxxxxxxxxxxx; /help lists the commands",
	} {
		o, w := open(t)
		_, err := o.RunText(t.Context(), input, w)
		if known := (*orchestrator.CommandError)(nil); !errors.As(err, &known) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", input, err, want)
		}
	}
}

func TestCommandsThatLeadElsewhere(t *testing.T) {
	for input, want := range map[string]orchestrator.Destination{
		"/new": {New: true, Session: "fresh"}, "/clear": {New: true, Session: "fresh"},
		"/resume old": {Session: "old"}, "/exit": {Exit: true}, "/quit": {Exit: true},
	} {
		o, w := open(t)
		if got, err := o.RunText(t.Context(), input, w); err != nil || got.Destination == nil || *got.Destination != want {
			t.Errorf("%s: %+v, %v", input, got, err)
		}
	}
}

func TestTheTableOfCommands(t *testing.T) {
	o, _ := open(t)
	seen := make(map[string]bool)
	for _, c := range o.AllCommands() {
		if seen[c.Name] || c.Help == "" || (c.Run == nil) == (c.Prompt == nil) {
			t.Errorf("/%s: seen %v, help %q", c.Name, seen[c.Name], c.Help)
		}
		seen[c.Name] = true
	}
	for _, name := range strings.Fields("help model permissions mode plan build default auto-edit yolo tools skills todos new clear resume sessions compact diff undo redo context cost export init agents config status trust exit") {
		if !seen[name] {
			t.Errorf("there is no /%s", name)
		}
	}
}

func TestCostWithoutReportedUsage(t *testing.T) {
	for _, tt := range []struct {
		said []chat.Message
		want string
	}{
		{nil, "nothing was spent in this session"},
		{[]chat.Message{chat.TextMessage(chat.User, "!ls"), chat.TextMessage(chat.Assistant, "$ ls")}, "nothing was spent in this session"},
		{[]chat.Message{chat.TextMessage(chat.User, "hi"), chat.TextMessage(chat.Assistant, "hello")}, "the provider did not report the token usage of this session"},
	} {
		o, w := open(t)
		for i, c := range o.Commands {
			if c.Name == "cost" {
				o.Commands[i] = Cost(&CostTally{})
			}
		}
		for _, m := range tt.said {
			w.talk.Add(event.Record{Event: event.MessageAdded{Message: m}})
		}
		if got, err := o.RunText(t.Context(), "/cost", w); err != nil || got.Text != tt.want {
			t.Errorf("%q, %v", got.Text, err)
		}
	}
}

func TestInitTellsTheModelWhatToWrite(t *testing.T) {
	if words := Init().Prompt("in verse"); !strings.Contains(words, "Draft an AGENTS.md") || !strings.HasSuffix(words, "The user adds: in verse") {
		t.Errorf("%q", words)
	}
}

func TestUndoingNothingIsSaid(t *testing.T) {
	kept := []undo.Note{{Path: "k", Why: "changed", Force: undo.ForceOverwrite}}
	for _, tt := range []struct {
		name string
		r    undo.Plan
		want string
	}{
		{"undo", undo.Plan{Unchanged: kept}, "nothing was undone: the last turn\n  unchanged: k (changed)\n  /undo force overwrites: k"},
		{"redo", undo.Plan{Unchanged: kept}, "nothing was redone: the last turn\n  unchanged: k (changed)\n  /redo force overwrites: k"},
		{"undo", undo.Plan{Unchanged: kept, DryRun: true}, "nothing would be undone: the last turn"},
		{"undo", undo.Plan{NotUndone: []string{"n"}}, "nothing was undone: the last turn\n  changed by commands"},
		{"undo", undo.Plan{Lost: kept}, "nothing was undone: the last turn\n  lost: k"},
		{"undo", undo.Plan{Unchanged: kept, Removed: []string{"a"}}, "undone: the last turn\n  removed: a"},
		{"undo", undo.Plan{Removed: []string{"a"}, DryRun: true}, "would be undone: the last turn\n  to remove: a"},
		{"undo", undo.Plan{}, "nothing was undone: the last turn\n  no file had to change"},
		{"redo", undo.Plan{DryRun: true}, "nothing would be redone: the last turn\n  no file would change"},
	} {
		if got := undoReport(tt.name, "/"+tt.name+" force", tt.r); !strings.HasPrefix(got, tt.want) {
			t.Errorf("/%s of %+v: %q, want %q", tt.name, tt.r, got, tt.want)
		}
	}
}

func TestLongAccountsAreSummedUp(t *testing.T) {
	var all []Spending
	for i := range 50 {
		all = append(all, Spending{Turn: i + 1, Model: "m", Usage: chat.Usage{In: 1, Cost: 1}, HasPrice: true})
	}
	rows := spendingByTurn(all).Rows
	if len(rows) != maxTurns+1 || rows[0][0].Text != "before" || rows[0][2].Text != "30" || rows[0][5].Text != "$30.0000" || rows[1][0].Text != "31" {
		t.Errorf("%v", rows[:2])
	}
}

func TestWhatWasSpentByTurnAndModel(t *testing.T) {
	l := CostTally{WithCost: func(_ string, u chat.Usage) chat.Usage { return u }}
	for _, r := range []event.Record{
		{Event: event.TaskCreated{TaskID: "t1", Title: "first"}},
		{Task: "t1", Event: event.MessageAdded{Model: "a", Usage: &chat.Usage{In: 10, Out: 1}}},
		{Event: event.TaskCreated{TaskID: "sub", Title: "inner", ParentID: "t1", AgentID: "explore"}},
		{Task: "sub", Event: event.MessageAdded{Model: "b", Usage: &chat.Usage{In: 5}}},
		{Task: "t1", Event: event.MessageAdded{Model: "a", Usage: &chat.Usage{In: 20, Out: 2}}},
		{Task: "t1", Event: event.MessageAdded{Model: "a"}},
		{Task: "sub", Event: event.MessageAdded{Model: "a", Usage: &chat.Usage{In: 40}}},
		{Task: "t1", Event: event.Spent{Model: "a", Usage: chat.Usage{In: 10}, Reason: event.UsageForSummary}},
		{Event: event.TaskCreated{TaskID: "t2", Title: "second"}},
		{Task: "t2", Event: event.MessageAdded{Model: "a", Usage: &chat.Usage{In: 7}}},
		{Task: "nobody", Event: event.MessageAdded{Model: "a", Usage: &chat.Usage{In: 1}}},
	} {
		l.Add(r)
	}
	var got []string
	for _, s := range l.rows {
		got = append(got, strings.Join([]string{string(rune('0' + s.Turn)), s.Agent, s.Model, s.Title}, " ")+" "+string(rune('0'+s.In/10)))
	}
	if strings.Join(got, "; ") != "1  a first 4; 1 explore b first 0; 1 explore a first 4; 2  a second 0; 0  a  0" {
		t.Errorf("%q", got)
	}
}

// preferences are settings that nothing changes.
type preferences struct{ rows func() []config.Row }

func (p preferences) Rows() []config.Row { return p.rows() }

func (w *world) Rename(_ context.Context, id, title string) error {
	w.note("rename %s %s", id, title)
	return nil
}

func (preferences) Change(key, value string, unset bool) (string, error) { return "saved", nil }

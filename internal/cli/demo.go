package cli

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"coder/internal/agent/orchestrator"
	"coder/internal/agent/supervisor"
	"coder/internal/app"
	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/host/patch"
	"coder/internal/host/program"
	"coder/internal/host/repofile"
	"coder/internal/host/stdio"
	"coder/internal/model/scripted"
	"coder/internal/policy/mode"
	"coder/internal/record/audit"
	"coder/internal/record/undo"
	"coder/internal/ui/i18n"
	"coder/internal/ui/lineedit"
	"coder/internal/ui/repl"
	"coder/internal/ui/term"
	"coder/internal/ui/term/ink"
)

//go:embed demo
var demoFiles embed.FS

// demoProject lists the files of the project that the demo repairs, without its go.mod.
var demoProject = []string{"pages.go", "pages_test.go"}

// runDemo lets a scripted model repair a small project in a temporary folder, and then shows what was
// recorded. Everything but the model is the real program. It asks the user at a terminal, and nobody in
// a pipe.
func (inv *invocation) runDemo(ctx context.Context) error {
	if inv.flags.crash {
		return inv.runCrashDemo(ctx)
	}
	dir, err := unpackDemo()
	if err != nil {
		return fmt.Errorf("unpack the demo: %w", err)
	}
	in, out, attended := inv.Terminal()
	demo := inv.forDemo(dir, !attended)
	if !attended {
		return demo.demoInPipe(ctx)
	}
	t := &terminal{inv: demo, in: in, out: out, printer: stdio.NewWriter(ctx, out)}
	if t.app, err = demo.newDemo(t.warn); err != nil {
		return err
	}
	if err := demo.introduceDemo(out); err != nil {
		return err
	}
	return t.open(ctx, t.demonstrate)
}

// forDemo returns the invocation for the demo: of the user's flags only those about the dialogue apply.
func (inv *invocation) forDemo(dir string, autoApprove bool) *invocation {
	demo := *inv
	set := []string{"GOFLAGS=-mod=mod", "GOPROXY=off", "GOTOOLCHAIN=local", "GOWORK=off", "GO111MODULE=on"}
	kept := slices.DeleteFunc(slices.Clone(inv.Environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.ContainsFunc(set, func(s string) bool { return strings.HasPrefix(s, name+"=") })
	})
	demo.Environ = append(kept, set...)
	demo.load(&flags{
		Options: app.Options{Dir: dir, Mode: mode.Build, Overrides: app.Overrides{
			Model: "script", ConfigFile: inv.flags.ConfigFile, AutoApprove: autoApprove, Lang: inv.flags.Lang, NoColor: inv.flags.NoColor,
		}},
		outputFormat: "text",
	})
	return &demo
}

// newDemo builds the program for the demo. The script uses the default tool names, called as the API
// does, and runs the tests itself, so the program need not ask to run them again. The user's "always"
// grants end with the folder. In a pipe the model does not pause to think.
func (inv *invocation) newDemo(warn func(string)) (*app.Workspace, error) {
	a, err := inv.newApp(warn)
	if err != nil {
		return nil, err
	}
	a.Config.Tools.Dialect, a.Config.Provider.ToolMode = "native", "native"
	a.Config.Workflow.AutoVerifyAfterEdit = false
	a.Home = filepath.Join(a.Root, ".coder")
	name := "demo/script.txt"
	if lang := i18n.Choose(cmp.Or(inv.flags.Lang, a.Config.UI.Lang), inv.Getenv); lang == i18n.Chinese {
		name = "demo/script." + lang + ".txt"
	}
	text, err := demoFiles.ReadFile(name)
	if err != nil {
		return nil, err
	}
	script, err := scripted.Parse(string(text))
	if err != nil {
		return nil, err
	}
	o := scripted.Options{Sleep: inv.Sleep}
	if inv.flags.AutoApprove {
		o.Sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	}
	a.Play = scripted.New(script, o)
	return a, nil
}

func demoFolder() (string, error) { return os.MkdirTemp("", "coder-demo-") }

// unpackDemo writes the demo's project into a new temporary folder.
func unpackDemo() (string, error) {
	dir, err := demoFolder()
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module pages\n\ngo 1.21\n"), 0o644); err != nil {
		return "", err
	}
	for _, name := range demoProject {
		text, err := demoFiles.ReadFile("demo/" + name + ".txt") // the unpacked content
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// introduceDemo says what the demo shows, and first what is not real.
func (inv *invocation) introduceDemo(w io.Writer) error {
	words := inv.words
	lines := []string{words.T("The model in this demo is a script: its replies were written in advance. Everything else is the real program.")}
	if !program.Has("go") {
		lines = append(lines, words.T("Go is not installed here, so the project's tests cannot run and the demo will end early; everything before that works."))
	}
	lines = append(lines, words.T("The project, with a failing test: %s", inv.settings.Root))
	if inv.flags.AutoApprove {
		lines = append(lines, words.T("Nobody can answer here, so everything that needs approval is allowed, as with --auto-approve."))
	} else {
		lines = append(lines, words.T("You will be asked before file edits and commands: y and Enter is fine here, and so is n."))
	}
	_, err := fmt.Fprintln(w, ink.Folded(strings.Join(lines, "\n"), width(w))+"\n")
	return err
}

func (inv *invocation) demoPrompt() string {
	return inv.words.T("a test fails; find out why and fix it")
}

// demoInPipe runs the demo where nobody can be asked.
func (inv *invocation) demoInPipe(ctx context.Context) error {
	a, err := inv.newDemo(inv.warn)
	if err != nil {
		return err
	}
	if err := inv.introduceDemo(inv.Stdout); err != nil {
		return err
	}
	out, face := inv.newLines(a)
	after := demoReport{inv: inv, app: a, colours: inv.palette(false), out: face, say: face.Insert}
	if err := face.Insert("> " + inv.demoPrompt()); err != nil {
		return err
	}
	err = inv.withSession(ctx, a, out, func(s *headless) error {
		turnErr := s.turn(ctx, orchestrator.Say(chat.From(chat.Typed, inv.demoPrompt())))
		return errors.Join(turnErr, after.ofTurn(ctx, s.Session()))
	})
	return errors.Join(err, after.ofSession(ctx))
}

// errTurnOver ends the demo's conversation after its turn.
var errTurnOver = errors.New("the turn is over")

// demonstrate opens the session, runs the demo's turn, and shows the result.
func (t *terminal) demonstrate(ctx context.Context) (err error) {
	if err := t.begin(ctx, t.inv.flags.session); err != nil {
		return err
	}
	if err := t.banner(); err != nil {
		return errors.Join(err, t.close(ctx))
	}
	var turnErr error
	t.ends = func(_ context.Context, _ string, err error) error {
		turnErr = err
		return errTurnOver
	}
	err = t.face.Run(ctx, lineedit.Draft{}.Then(t.inv.demoPrompt()), false) // its error was shown
	switch {
	case errors.Is(err, repl.ErrInterrupted):
		err = &exitError{code: ExitInterrupted}
	case !errors.Is(err, errTurnOver):
	case turnErr == nil || errors.Is(turnErr, context.Canceled):
		err = ctx.Err()
	default:
		err = &exitError{code: ExitCode(turnErr)}
	}
	report := demoReport{inv: t.inv, app: t.app, colours: t.colours, out: t.face.Out(), say: t.face.Say, width: t.size}
	err = errors.Join(err, report.ofTurn(ctx, t.session()), t.close(ctx))
	return errors.Join(err, report.ofSession(ctx))
}

// demoReport shows the result of the demo's turn: the changes, that they can be undone, and the records.
type demoReport struct {
	inv     *invocation
	app     *app.Workspace
	colours term.Palette
	width   func() (cols, rows int) // of the terminal; nil: unknown
	out     event.Sink
	say     func(string) error

	session string
}

// ofTurn shows the diff, undoes the turn, and redoes it.
func (d *demoReport) ofTurn(ctx context.Context, s *supervisor.Session) error {
	if ctx.Err() != nil {
		return nil // the program should stop
	}
	d.session = s.ID
	if err := d.diff(ctx); err != nil {
		return fmt.Errorf("show the diff: %w", err)
	}
	words := d.inv.words
	did, err := s.Undo(ctx, undo.Call{}, event.Discard)
	if errors.Is(err, undo.ErrNothing) {
		return d.part(words.T("Undo"), words.T("nothing to undo"))
	}
	if err != nil {
		return fmt.Errorf("undo: %w", err)
	}
	lines := d.files("restored to before the turn: %s", did)
	if len(did.Commands) > 0 {
		commands := slices.Compact(slices.Clone(did.Commands))
		lines = append(lines, words.T("not undone: what commands did outside the project (it ran: %s)", strings.Join(commands, "; ")))
	}
	if err := d.part(words.T("Undo"), lines...); err != nil {
		return err
	}
	if did, err = s.Redo(ctx, undo.Call{}, event.Discard); err != nil {
		return fmt.Errorf("redo: %w", err)
	}
	return d.part(words.T("Redo"), d.files("restored to after the turn: %s", did)...)
}

// files describes what an undo or redo did to files.
func (d *demoReport) files(as string, r undo.Plan) (lines []string) {
	words := d.inv.words
	if back := slices.Concat(r.Restored, r.Removed); len(back) > 0 {
		lines = append(lines, words.T(as, strings.Join(back, ", ")))
	}
	for _, n := range r.Left() {
		lines = append(lines, words.T("unchanged: %s (%s)", n.Path, words.Said(n.Why)))
	}
	for _, path := range r.NotUndone {
		lines = append(lines, words.T("changed by a command and skipped: %s", path))
	}
	return lines
}

// part prints lines under a heading.
func (d *demoReport) part(heading string, lines ...string) error {
	for i, line := range lines {
		if !strings.ContainsRune(line, '\x1b') { // colored text is already laid out
			lines[i] = ink.Folded(line, d.columns())
		}
	}
	return d.say(d.colours.Paint(ink.Tool, "== "+heading) + "\n" + strings.Join(lines, "\n"))
}

// columns returns the terminal's width; 0 if unknown.
func (d *demoReport) columns() int {
	if d.width == nil {
		return 0
	}
	cols, _ := d.width()
	return cols
}

// maxDemoFile is the most read of a demo file, in bytes.
const maxDemoFile = 64 << 20

// diff shows the changes since the files were unpacked.
func (d *demoReport) diff(ctx context.Context) error {
	var all strings.Builder
	for _, name := range demoProject {
		old, err := demoFiles.ReadFile("demo/" + name + ".txt")
		if err != nil {
			return err
		}
		now, err := repofile.Below(d.app.Root).Read(name, maxDemoFile)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		text, _, _ := patch.Unified(name, old, now)
		all.WriteString(text)
	}
	heading := d.inv.words.T("What changed")
	if all.Len() == 0 {
		return d.part(heading, d.inv.words.T("nothing"))
	}
	if err := d.say(d.colours.Paint(ink.Tool, "== "+heading)); err != nil {
		return err
	}
	return d.out.Emit(ctx, event.Record{Event: event.LocalAdded{Blocks: display.Blocks{display.Counted(all.String())}}})
}

// mostEffect is the most shown of a call's target in a line of the audit.
const mostEffect = 40

// ofSession shows the records after the session is closed: the calls, whether the logs are intact, where
// everything is, and what to do next.
func (d *demoReport) ofSession(ctx context.Context) error {
	if ctx.Err() != nil || d.session == "" {
		return nil
	}
	words, store := d.inv.words, d.app.Store()
	calls, err := audit.Pair(store.Logs.Read(ctx, d.session, 0))
	if err != nil {
		return fmt.Errorf("show the audit: %w", err)
	}
	row := func(texts ...string) (cells []ink.Cell) {
		for _, t := range texts {
			cells = append(cells, ink.Cell{{Text: t}})
		}
		return cells
	}
	g := ink.Grid{
		Head:  row(words.T("call"), words.T("verdict"), words.T("took")),
		Align: []ink.Align{ink.Left, ink.Left, ink.Right}, ASCII: d.inv.ascii(),
	}
	for _, c := range calls {
		what, took := c.Requested.Tool, "?" // unknown
		if i := slices.IndexFunc(c.Requested.Effects, func(e event.Effect) bool { return e.Target != "" && len(e.Target) <= mostEffect }); i >= 0 {
			what += " " + c.Requested.Effects[i].Target
		}
		switch {
		case c.Open():
		case c.Completed.DurationMs < 1000:
			took = fmt.Sprintf("%d ms", c.Completed.DurationMs)
		default:
			took = fmt.Sprintf("%.1f s", float64(c.Completed.DurationMs)/1000)
		}
		g.Rows = append(g.Rows, row(what, words.Said(fmt.Sprintf("%s (%s)", c.Requested.Verdict, c.Requested.DecidedBy)), took))
	}
	var table strings.Builder
	g.Draw(d.columns(), func(l ink.Look, text string) { table.WriteString(d.colours.Paint(l.Role, text)) })
	verdict := ""
	if report, err := store.Verify(d.session); err != nil {
		verdict = d.colours.Paint(ink.Bad, ink.Folded(words.T("the logs do not match what was written: %v", words.Said(err.Error())), d.columns()))
	} else {
		verdict = d.colours.Paint(ink.Good, ink.Folded(words.T("%d records in three logs, each with a checksum of itself and those before it: intact", report.Lines), d.columns()))
	}
	if err := d.part(words.T("Audit"), table.String(), verdict); err != nil {
		return fmt.Errorf("show the audit: %w", err)
	}
	return d.part(words.T("Where it is saved"),
		words.T("logs: %s", store.Dir("log", d.session)),
		words.T("conversation: %s", store.Dir("sessions", d.session+".json")),
		words.T("to look again: coder audit --cwd %s", d.app.Root),
		words.T("The folder is yours now; to remove it: rm -r %s", d.app.Root),
		words.T("To work with your own model: run coder setup, then coder in your project."),
	)
}

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
	"coder/internal/core/message"
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
	if inv.flags.crashDemo {
		return inv.runCrashDemo(ctx)
	}
	dir, err := unpackDemo()
	if err != nil {
		return message.Errorf("unpack the demo: %w", err)
	}
	in, out, attended := inv.Terminal()
	demo := inv.demoInvocation(dir, !attended)
	if !attended {
		return demo.runDemoPiped(ctx)
	}
	t := &terminal{invocation: demo, in: in, out: out, printer: stdio.NewWriter(ctx, out)}
	if t.app, err = demo.newDemoApp(t.warn); err != nil {
		return err
	}
	if err := demo.introduceDemo(out); err != nil {
		return err
	}
	return t.runScreen(ctx, t.runDemo)
}

// demoInvocation returns the invocation for the demo: of the user's flags only those about the dialogue apply.
func (inv *invocation) demoInvocation(dir string, autoApprove bool) *invocation {
	demo := *inv
	set := []string{"GOFLAGS=-mod=mod", "GOPROXY=off", "GOTOOLCHAIN=local", "GOWORK=off", "GO111MODULE=on"}
	kept := slices.DeleteFunc(slices.Clone(inv.Environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.ContainsFunc(set, func(s string) bool { return strings.HasPrefix(s, name+"=") })
	})
	demo.Environ = append(kept, set...)
	demo.loadSettings(&flags{
		Options: app.Options{Dir: dir, Mode: mode.Build, Overrides: app.Overrides{
			Model: "script", ConfigFile: inv.flags.ConfigFile, AutoApprove: autoApprove, Lang: inv.flags.Lang,
			NoColor: inv.flags.NoColor,
		}},
		outputFormat: "text",
	})
	return &demo
}

// newDemoApp builds the program for the demo. The script uses the default tool names, called as the API
// does, and runs the tests itself, so the program need not ask to run them again. The user's "always"
// grants end with the folder. In a pipe the model does not pause to think.
func (inv *invocation) newDemoApp(warn func(string)) (*app.Workspace, error) {
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
	a.ScriptedProvider = scripted.New(script, o)
	return a, nil
}

func newDemoDir() (string, error) { return os.MkdirTemp("", "coder-demo-") }

// unpackDemo writes the demo's project into a new temporary folder.
func unpackDemo() (string, error) {
	dir, err := newDemoDir()
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
	words := inv.printer
	lines := []string{words.T("The model in this demo is a script: its replies were written in advance. Everything else is the real program.")}
	if !program.IsInstalled("go") {
		lines = append(lines,
			words.T("Go is not installed here, so the project's tests cannot run and the demo will end early; everything before that works."))
	}
	lines = append(lines, words.T("The project, with a failing test: %s", inv.settings.Root))
	if inv.flags.AutoApprove {
		lines = append(lines,
			words.T("Nobody can answer here, so everything that needs approval is allowed, as with --auto-approve."))
	} else {
		lines = append(lines,
			words.T("coder asks before each edit and each command: press 1 for yes."))
	}
	_, err := fmt.Fprintln(w, ink.FoldText(strings.Join(lines, "\n"), terminalWidth(w))+"\n")
	return err
}

func (inv *invocation) demoPrompt() string {
	return inv.printer.T("a test fails; find out why and fix it")
}

// runDemoPiped runs the demo where nobody can be asked.
func (inv *invocation) runDemoPiped(ctx context.Context) error {
	a, err := inv.newDemoApp(inv.warn)
	if err != nil {
		return err
	}
	if err := inv.introduceDemo(inv.Stdout); err != nil {
		return err
	}
	out, face := inv.newLineOutput(a)
	after := demoReport{invocation: inv, app: a, palette: inv.palette(false), sink: face, printText: face.Insert}
	if err := face.Insert("> " + inv.demoPrompt()); err != nil {
		return err
	}
	err = inv.withSession(ctx, a, out, func(s *headless) error {
		turnErr := s.runTurn(ctx, orchestrator.TextInput(chat.NewUserText(chat.OriginTyped, inv.demoPrompt())))
		return errors.Join(turnErr, after.showTurn(ctx, s.Session()))
	})
	return errors.Join(err, after.showSession(ctx))
}

// errDemoTurnEnded ends the demo's conversation after its turn.
var errDemoTurnEnded = errors.New("the turn is over")

// runDemo opens the session, runs the demo's turn, and shows the result.
func (t *terminal) runDemo(ctx context.Context) (err error) {
	if err := t.openSession(ctx, t.invocation.flags.session); err != nil {
		return err
	}
	if err := t.showBanner(); err != nil {
		return errors.Join(err, t.closeSession(ctx))
	}
	var turnErr error
	t.onInputEnd = func(_ context.Context, _ string, err error) error {
		turnErr = err
		return errDemoTurnEnded
	}
	err = t.face.Run(ctx, lineedit.Draft{}.WithSuffix(t.invocation.demoPrompt()), false) // its error was shown
	switch {
	case errors.Is(err, repl.ErrInterrupted):
		err = &exitError{code: ExitInterrupted}
	case !errors.Is(err, errDemoTurnEnded):
	case turnErr == nil || errors.Is(turnErr, context.Canceled):
		err = ctx.Err()
	default:
		err = &exitError{code: ExitCode(turnErr)}
	}
	report := demoReport{invocation: t.invocation, app: t.app, palette: t.palette, sink: t.face.Sink(),
		printText: t.face.Print, size: t.size}
	err = errors.Join(err, report.showTurn(ctx, t.session()), t.closeSession(ctx))
	return errors.Join(err, report.showSession(ctx))
}

// demoReport shows the result of the demo's turn: the changes, that they can be undone, and the records.
type demoReport struct {
	invocation *invocation
	app        *app.Workspace
	palette    term.Palette
	size       func() (cols, rows int) // of the terminal; nil: unknown
	sink       event.Sink
	printText  func(string) error

	session string
}

// showTurn shows the diff, undoes the turn, and redoes it.
func (d *demoReport) showTurn(ctx context.Context, s *supervisor.Session) error {
	if ctx.Err() != nil {
		return nil // the program should stop
	}
	d.session = s.ID
	if err := d.showDiff(ctx); err != nil {
		return message.Errorf("show the diff: %w", err)
	}
	words := d.invocation.printer
	did, err := s.Undo(ctx, undo.Request{}, event.Discard)
	if errors.Is(err, undo.ErrNothingToUndo) {
		return d.printSection(words.T("Undo"), words.T("nothing to undo"))
	}
	if err != nil {
		return message.Errorf("undo: %w", err)
	}
	lines := d.describeFiles("restored to before the turn: %s", did)
	if len(did.Commands) > 0 {
		commands := slices.Compact(slices.Clone(did.Commands))
		lines = append(lines, words.T("not undone: what commands did outside the project (it ran: %s)",
			strings.Join(commands, "; ")))
	}
	if err := d.printSection(words.T("Undo"), lines...); err != nil {
		return err
	}
	if did, err = s.Redo(ctx, undo.Request{}, event.Discard); err != nil {
		return message.Errorf("redo: %w", err)
	}
	return d.printSection(words.T("Redo"), d.describeFiles("restored to after the turn: %s", did)...)
}

// describeFiles describes what an undo or redo did to files.
func (d *demoReport) describeFiles(as string, r undo.Plan) (lines []string) {
	words := d.invocation.printer
	if back := slices.Concat(r.Restored, r.Removed); len(back) > 0 {
		lines = append(lines, words.T(as, strings.Join(back, ", ")))
	}
	for _, n := range r.UnchangedFiles() {
		lines = append(lines, words.T("unchanged: %s (%s)", n.Path, words.TranslateText(n.Why)))
	}
	for _, path := range r.NotUndone {
		lines = append(lines, words.T("changed by a command and skipped: %s", path))
	}
	return lines
}

// printSection prints lines under a heading.
func (d *demoReport) printSection(heading string, lines ...string) error {
	for i, line := range lines {
		if !strings.ContainsRune(line, '\x1b') { // colored text is already laid out
			lines[i] = ink.FoldText(line, d.columns())
		}
	}
	return d.printText(d.palette.Paint(ink.Tool, "== "+heading) + "\n" + strings.Join(lines, "\n"))
}

// columns returns the terminal's width; 0 if unknown.
func (d *demoReport) columns() int {
	if d.size == nil {
		return 0
	}
	cols, _ := d.size()
	return cols
}

// maxDemoFile is the most read of a demo file, in bytes.
const maxDemoFile = 64 << 20

// showDiff shows the changes since the files were unpacked.
func (d *demoReport) showDiff(ctx context.Context) error {
	var all strings.Builder
	for _, name := range demoProject {
		old, err := demoFiles.ReadFile("demo/" + name + ".txt")
		if err != nil {
			return err
		}
		now, err := repofile.NewRoot(d.app.Root).Read(name, maxDemoFile)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		text, _, _ := patch.Unified(name, old, now)
		all.WriteString(text)
	}
	heading := d.invocation.printer.T("What changed")
	if all.Len() == 0 {
		return d.printSection(heading, d.invocation.printer.T("nothing"))
	}
	if err := d.printText(d.palette.Paint(ink.Tool, "== "+heading)); err != nil {
		return err
	}
	return d.sink.Emit(ctx, event.Record{Event: event.LocalAdded{Blocks: display.Blocks{display.NewDiff(all.String())}}})
}

// maxEffectLen is the most shown of a call's target in a line of the audit.
const maxEffectLen = 40

// showSession shows the records after the session is closed: the calls, whether the logs are intact, where
// everything is, and what to do next.
func (d *demoReport) showSession(ctx context.Context) error {
	if ctx.Err() != nil || d.session == "" {
		return nil
	}
	words, store := d.invocation.printer, d.app.Store()
	calls, err := audit.PairCalls(store.Logs.Read(ctx, d.session, 0))
	if err != nil {
		return message.Errorf("show the audit: %w", err)
	}
	row := func(texts ...string) (cells []ink.Cell) {
		for _, t := range texts {
			cells = append(cells, ink.Cell{{Text: t}})
		}
		return cells
	}
	g := ink.Grid{
		Head:  row(words.T("call"), words.T("verdict"), words.T("took")),
		Align: []ink.Align{ink.Left, ink.Left, ink.Right}, ASCII: d.invocation.useASCII(),
	}
	for _, c := range calls {
		what, took := c.Requested.Tool, "?" // unknown
		if i := slices.IndexFunc(c.Requested.Effects, func(e event.Effect) bool {
			return e.Target != "" &&
				len(e.Target) <= maxEffectLen
		}); i >= 0 {
			what += " " + c.Requested.Effects[i].Target
		}
		switch {
		case c.IsOpen():
		case c.Completed.DurationMs < 1000:
			took = fmt.Sprintf("%d ms", c.Completed.DurationMs)
		default:
			took = fmt.Sprintf("%.1f s", float64(c.Completed.DurationMs)/1000)
		}
		g.Rows = append(g.Rows, row(what, words.TranslateText(fmt.Sprintf("%s (%s)", c.Requested.Verdict,
			c.Requested.DecidedBy)), took))
	}
	var table strings.Builder
	g.Draw(d.columns(), func(l ink.Style, text string) { table.WriteString(d.palette.Paint(l.Role, text)) })
	verdict := ""
	if report, err := store.Verify(d.session); err != nil {
		verdict = d.palette.Paint(ink.Bad, ink.FoldText(words.T("the logs do not match what was written: %v",
			words.TranslateError(err)), d.columns()))
	} else {
		verdict = d.palette.Paint(ink.Good,
			ink.FoldText(words.T("%d records in three logs, each with a checksum of itself and those before it: intact",
				report.Lines), d.columns()))
	}
	if err := d.printSection(words.T("Audit"), table.String(), verdict); err != nil {
		return message.Errorf("show the audit: %w", err)
	}
	return d.printSection(words.T("Where it is saved"),
		words.T("logs: %s", store.Path("log", d.session)),
		words.T("conversation: %s", store.Path("sessions", d.session+".json")),
		words.T("to look again: coder audit --cwd %s", d.app.Root),
		words.T("The folder is yours now; to remove it: rm -r %s", d.app.Root),
		words.T("To work with your own model: run coder setup, then coder in your project."),
	)
}

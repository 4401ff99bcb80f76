package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"coder/internal/agent/supervisor"
	"coder/internal/app"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/host/patch"
	"coder/internal/host/repofile"
	"coder/internal/record/audit"
	"coder/internal/record/undo"
	"coder/internal/ui/term"
	"coder/internal/ui/term/ink"
)

// demoReport shows what is left of the demo's turn: what changed, that it can
// be taken back, what is on record and where.
type demoReport struct {
	*invocation
	app     *app.App
	colours term.Palette
	width   func() int // of the terminal; nil: unknown
	out     event.Sink
	say     func(string) error

	session string
}

// ofTurn shows the diff, takes the turn back, and does it again.
func (d *demoReport) ofTurn(ctx context.Context, s *supervisor.Session) error {
	if ctx.Err() != nil {
		return nil // the program was told to stop
	}
	d.session = s.ID
	if err := d.diff(ctx); err != nil {
		return fmt.Errorf("show the diff: %w", err)
	}
	did, err := s.Undo(ctx, undo.Call{}, event.Discard)
	if errors.Is(err, undo.ErrNothing) {
		return d.part(d.words.T("Undo"), d.words.T("there is nothing to undo"))
	}
	if err != nil {
		return fmt.Errorf("undo: %w", err)
	}
	if err := d.part(d.words.T("Undo"), d.undone(did)); err != nil {
		return err
	}
	if did, err = s.Redo(ctx, undo.Call{}, event.Discard); err != nil {
		return fmt.Errorf("redo: %w", err)
	}
	return d.part(d.words.T("Redo"), d.redone(did))
}

// ofSession shows what is on record once the session is closed.
func (d *demoReport) ofSession(ctx context.Context) error {
	if ctx.Err() != nil || d.session == "" {
		return nil
	}
	if err := d.audit(ctx); err != nil {
		return fmt.Errorf("show the audit: %w", err)
	}
	return d.whereabouts()
}

// part shows text under a heading.
func (d *demoReport) part(heading, text string) error {
	return d.say(d.colours.Paint(ink.Tool, "== "+heading) + "\n" + text)
}

// maxDemoFile bounds what is read of a file of the demo.
const maxDemoFile = 64 << 20

// diff shows how the files differ from those that were unpacked.
func (d *demoReport) diff(ctx context.Context) error {
	var all strings.Builder
	for _, name := range demoProject {
		old, err := demoOriginal(name)
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
	if all.Len() == 0 {
		return d.part(d.words.T("What changed"), d.words.T("nothing"))
	}
	if err := d.say(d.colours.Paint(ink.Tool, "== "+d.words.T("What changed"))); err != nil {
		return err
	}
	return d.out.Emit(ctx, event.Record{Event: event.LocalAdded{Blocks: display.Blocks{display.Counted(all.String())}}})
}

// undone tells what undoing did.
func (d *demoReport) undone(r undo.Report) string {
	lines := d.notTouched(r)
	if back := slices.Concat(r.Restored, r.Removed); len(back) > 0 {
		lines = slices.Insert(lines, 0, d.words.T("as before the turn: %s", strings.Join(back, ", ")))
	}
	if len(r.Commands) > 0 {
		commands := slices.Compact(slices.Clone(r.Commands))
		lines = append(lines, d.words.T("out of reach: what commands do outside the project (it ran: %s)", strings.Join(commands, "; ")))
	}
	return strings.Join(lines, "\n")
}

// redone tells what redoing did.
func (d *demoReport) redone(r undo.Report) string {
	lines := d.notTouched(r)
	if back := slices.Concat(r.Restored, r.Removed); len(back) > 0 {
		lines = slices.Insert(lines, 0, d.words.T("as after the turn: %s", strings.Join(back, ", ")))
	}
	return strings.Join(lines, "\n")
}

func (d *demoReport) notTouched(r undo.Report) []string {
	var lines []string
	for _, n := range slices.Concat(r.Kept, r.Lost, r.Failed) {
		lines = append(lines, d.words.T("left as it is: %s (%s)", n.Path, d.words.Said(n.Why)))
	}
	for _, path := range r.NotUndone {
		lines = append(lines, d.words.T("changed by a command and left as it is: %s", path))
	}
	return lines
}

// audit checks the logs and lists the calls.
func (d *demoReport) audit(ctx context.Context) error {
	verdict := ""
	if report, err := d.app.Store().Verify(d.session); err != nil {
		verdict = d.colours.Paint(ink.Bad, d.words.T("the logs are not what was written: %v", err))
	} else {
		verdict = d.colours.Paint(ink.Good, d.words.T("%d records in three logs, each with a check of itself and those before it: unbroken", report.Lines))
	}
	calls, err := audit.Pair(d.app.Store().Logs.Read(ctx, d.session, 0))
	if err != nil {
		return err
	}
	return d.part(d.words.T("Audit"), d.table(calls)+"\n"+verdict)
}

// mostEffect is how much of what a call touches a line of the audit shows.
const mostEffect = 40

// table lists calls: what, whether it was allowed, who decided, how long.
func (d *demoReport) table(calls []audit.Call) string {
	row := func(texts ...string) (cells []ink.Cell) {
		for _, t := range texts {
			cells = append(cells, ink.Cell{{Text: t}})
		}
		return cells
	}
	g := ink.Grid{
		Head:  row(d.words.T("call"), d.words.T("verdict"), d.words.T("decided by"), d.words.T("took")),
		Align: []ink.Align{ink.Left, ink.Left, ink.Left, ink.Right}, ASCII: !d.utf8(),
	}
	for _, c := range calls {
		g.Rows = append(g.Rows, row(what(c.Requested), d.words.Said(string(c.Requested.Verdict)), d.words.Said(c.Requested.DecidedBy), took(c)))
	}
	var b strings.Builder
	g.Draw(d.columns(), func(l ink.Look, text string) { b.WriteString(d.colours.Paint(l.Role, text)) })
	return b.String()
}

// what names a call by its tool and what it touches.
func what(r event.ToolCallRequested) string {
	for _, e := range r.Effects {
		if e.Target != "" && len(e.Target) <= mostEffect {
			return r.Tool + " " + e.Target
		}
	}
	return r.Tool
}

// took is how long a call took, or a question mark if nobody knows.
func took(c audit.Call) string {
	if c.Open() {
		return "?"
	}
	if ms := c.Completed.DurationMs; ms < 1000 {
		return fmt.Sprintf("%d ms", ms)
	}
	return fmt.Sprintf("%.1f s", float64(c.Completed.DurationMs)/1000)
}

func (d *demoReport) columns() int {
	if d.width == nil {
		return 0
	}
	return d.width()
}

// whereabouts says where everything is and what to do next.
func (d *demoReport) whereabouts() error {
	return d.part(d.words.T("Where it is kept"), strings.Join([]string{
		d.words.T("logs: %s", d.app.Store().Dir("log", d.session)),
		d.words.T("conversation: %s", d.app.Store().Dir("sessions", d.session+".json")),
		d.words.T("to look again: coder audit --cwd %s", d.app.Root),
		d.words.T("The folder is yours now; remove it when you have seen enough: rm -r %s", d.app.Root),
		d.words.T("To work with a model of your own: set CODER_BASE_URL, CODER_API_KEY and CODER_MODEL and run coder in your project; \"Connecting a provider\" in the README says more."),
	}, "\n"))
}

package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/agent/supervisor"
	"coder/internal/core/event"
	"coder/internal/host/patch"
	"coder/internal/host/repofile"
	"coder/internal/record/audit"
	"coder/internal/record/undo"
	"coder/internal/ui/i18n"
	"coder/internal/ui/term"
	"coder/internal/ui/term/ink"
)

// aftermath shows what is left of the demo's turn: what changed, that it can
// be taken back, what is on record and where.
type aftermath struct {
	*house
	words   *i18n.Printer
	palette term.Palette
	width   func() int // of the terminal; nil: unknown
	out     event.Sink
	say     func(string) error

	session string
}

// ofTurn shows the diff, takes the turn back, and does it again.
func (a *aftermath) ofTurn(ctx context.Context, s *supervisor.Session) error {
	if ctx.Err() != nil {
		return nil // the program was told to stop
	}
	a.session = s.ID
	if err := a.diff(ctx); err != nil {
		return fmt.Errorf("show the diff: %w", err)
	}
	r, err := s.Undo(ctx, undo.Call{}, event.Discard)
	if errors.Is(err, undo.ErrNothing) {
		return a.part(a.words.T("Undo"), a.words.T("there is nothing to undo"))
	}
	if err != nil {
		return fmt.Errorf("undo: %w", err)
	}
	if err := a.part(a.words.T("Undo"), a.undone(r)); err != nil {
		return err
	}
	if r, err = s.Redo(ctx, undo.Call{}, event.Discard); err != nil {
		return fmt.Errorf("redo: %w", err)
	}
	return a.part(a.words.T("Redo"), a.redone(r))
}

// ofSession shows what is on record once the session is closed.
func (a *aftermath) ofSession(ctx context.Context) error {
	if ctx.Err() != nil || a.session == "" {
		return nil
	}
	if err := a.audit(ctx); err != nil {
		return fmt.Errorf("show the audit: %w", err)
	}
	return a.whereabouts()
}

// part shows text under a heading.
func (a *aftermath) part(heading, text string) error {
	return a.say(a.palette.Paint(ink.Tool, "== "+heading) + "\n" + text)
}

// diff shows how the files differ from those that were unpacked.
func (a *aftermath) diff(ctx context.Context) error {
	var all strings.Builder
	for _, name := range demoProject {
		old, err := demoOriginal(name)
		if err != nil {
			return err
		}
		now, err := repofile.Below(a.root).Read(name, maxNamedFile)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		text, _, _ := patch.Unified(name, old, now)
		all.WriteString(text)
	}
	if all.Len() == 0 {
		return a.part(a.words.T("What changed"), a.words.T("nothing"))
	}
	if err := a.say(a.palette.Paint(ink.Tool, "== "+a.words.T("What changed"))); err != nil {
		return err
	}
	return a.out.Emit(ctx, event.Record{Event: event.LocalAdded{Output: all.String()}})
}

// undone tells what undoing did.
func (a *aftermath) undone(r undo.Report) string {
	lines := a.notTouched(r)
	if back := slices.Concat(r.Restored, r.Removed); len(back) > 0 {
		lines = slices.Insert(lines, 0, a.words.T("as before the turn: %s", strings.Join(back, ", ")))
	}
	if len(r.Commands) > 0 {
		commands := slices.Compact(slices.Clone(r.Commands))
		lines = append(lines, a.words.T("out of reach: what commands do outside the project (it ran: %s)", strings.Join(commands, "; ")))
	}
	return strings.Join(lines, "\n")
}

// redone tells what redoing did.
func (a *aftermath) redone(r undo.Report) string {
	lines := a.notTouched(r)
	if back := slices.Concat(r.Restored, r.Removed); len(back) > 0 {
		lines = slices.Insert(lines, 0, a.words.T("as after the turn: %s", strings.Join(back, ", ")))
	}
	return strings.Join(lines, "\n")
}

func (a *aftermath) notTouched(r undo.Report) []string {
	var lines []string
	for _, n := range slices.Concat(r.Kept, r.Lost, r.Failed) {
		lines = append(lines, a.words.T("left as it is: %s (%s)", n.Path, a.words.Said(n.Why)))
	}
	for _, path := range r.NotUndone {
		lines = append(lines, a.words.T("changed by a command and left as it is: %s", path))
	}
	return lines
}

// audit checks the logs and lists the calls.
func (a *aftermath) audit(ctx context.Context) error {
	verdict := ""
	if report, err := a.logStore().Verify(a.session); err != nil {
		verdict = a.palette.Paint(ink.Bad, a.words.T("the logs are not what was written: %v", err))
	} else {
		verdict = a.palette.Paint(ink.Good, a.words.T("%d records in three logs, each with a check of itself and those before it: unbroken", report.Lines))
	}
	logs, _, err := a.stores()
	if err != nil {
		return err
	}
	calls, err := audit.Pair(logs.Read(ctx, a.session, 0))
	if err != nil {
		return err
	}
	return a.part(a.words.T("Audit"), a.table(calls)+"\n"+verdict)
}

// mostEffect is how much of what a call touches a line of the audit shows.
const mostEffect = 40

// table lists calls: what, whether it was allowed, who decided, how long.
func (a *aftermath) table(calls []audit.Call) string {
	row := func(texts ...string) (cells []ink.Cell) {
		for _, t := range texts {
			cells = append(cells, ink.Cell{{Text: t}})
		}
		return cells
	}
	g := ink.Grid{
		Head:  row(a.words.T("call"), a.words.T("verdict"), a.words.T("decided by"), a.words.T("took")),
		Align: []ink.Align{ink.Left, ink.Left, ink.Left, ink.Right}, ASCII: !speaksUTF8(a.env.Getenv),
	}
	for _, c := range calls {
		g.Rows = append(g.Rows, row(what(c.Requested), a.words.Said(string(c.Requested.Verdict)), a.words.Said(c.Requested.DecidedBy), took(c)))
	}
	var b strings.Builder
	g.Draw(a.columns(), func(l ink.Look, text string) { b.WriteString(a.palette.Paint(l.Role, text)) })
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

func (a *aftermath) columns() int {
	if a.width == nil {
		return 0
	}
	return a.width()
}

// whereabouts says where everything is and what to do next.
func (a *aftermath) whereabouts() error {
	return a.part(a.words.T("Where it is kept"), strings.Join([]string{
		a.words.T("logs: %s", filepath.Join(a.logs(), a.session)),
		a.words.T("conversation: %s", filepath.Join(a.snapshots(), a.session+".json")),
		a.words.T("to look again: coder audit --cwd %s", a.root),
		a.words.T("The folder is yours now; remove it when you have seen enough: rm -r %s", a.root),
		a.words.T("To work with a model of your own: set CODER_BASE_URL, CODER_API_KEY and CODER_MODEL and run coder in your project; \"Connecting a provider\" in the README says more."),
	}, "\n"))
}

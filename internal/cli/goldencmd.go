package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"coder/internal/app"
	"coder/internal/core/display"
	"coder/internal/core/event"
)

var goldenVerbs = []string{"save", "run", "list"}

// runGolden keeps sessions to be run again, and runs them.
func (inv *invocation) runGolden(ctx context.Context, a *app.App) error {
	args := inv.flags.args
	switch verb, rest := args[0], args[1:]; {
	case verb == "save" && len(rest) == 2:
		return inv.saveGolden(ctx, a, rest[0], rest[1])
	case verb == "save":
		return usagef("coder golden save needs a session and a name for it: coder golden save SESSION NAME")
	case verb == "run":
		return inv.runGoldens(ctx, a, rest)
	case verb == "list" && len(rest) == 0 && inv.flags.json:
		return inv.printJSON(append([]string{}, a.Goldens()...))
	case verb == "list" && len(rest) == 0 && len(a.Goldens()) == 0:
		inv.warn(fmt.Sprintf("there are no golden sessions in %s; coder golden save makes one", a.GoldenDir()))
		return nil
	case verb == "list" && len(rest) == 0:
		return inv.print(a.Goldens()...)
	case verb == "list":
		return usagef("coder %s takes no arguments", "golden list")
	}
	return usagef("coder golden needs a verb: save, run or list")
}

func (inv *invocation) saveGolden(ctx context.Context, a *app.App, session, name string) error {
	if !app.ValidSessionID(filepath.Base(name)) {
		return usagef("%q is no name for a golden session (letters, digits, dot, dash and underscore), nor the path of one", name)
	}
	id, err := a.Store().Known(ctx, session)
	if err != nil {
		return err
	}
	var records []event.Record
	for r, err := range a.Store().Logs.Read(ctx, id, 0) {
		if err != nil {
			return err
		}
		records = append(records, r)
	}
	if len(records) == 0 {
		return inputf("session %s has no log that can be read; coder audit verify %[1]s says more", id)
	}
	if a.Store().Damage(ctx, id) != "" {
		return inputf("session %s was not saved: its record is not as it was written; coder audit verify %[1]s says more", id)
	}
	dir := a.Golden(name)
	report, left, err := a.SaveGolden(ctx, id, dir, records)
	if err != nil {
		return err
	}
	if report.Difference != nil {
		if err := inv.tellRerun(id, report); err != nil {
			return err
		}
		return &exitError{code: ExitError, text: "it was not saved: a golden session is run with the settings of the project and the command line alone, and with these it comes out otherwise"}
	}
	if len(left) > 0 {
		inv.warn(fmt.Sprintf("left out, since they may hold secrets: %s", strings.Join(left, ", ")))
	}
	return inv.tell(inv.words.T(display.Form(report.Steps, "saved in %s: %d step, %d records", "saved in %s: %d steps, %d records"), dir, report.Steps, report.Records))
}

// goldenResult is what came of a golden session, for programs.
type goldenResult struct {
	Name   string `json:"name"`
	Result any    `json:"result"`
}

func (inv *invocation) runGoldens(ctx context.Context, a *app.App, names []string) error {
	if len(names) == 0 {
		if names = a.Goldens(); len(names) == 0 {
			return inputf("there are no golden sessions in %s; coder golden save makes one", a.GoldenDir())
		}
	}
	differ := 0
	all := []goldenResult{}
	for _, name := range names {
		report, err := a.RunGolden(ctx, a.Golden(name), inv.flags.update)
		if err != nil {
			return err
		}
		if report.Difference != nil {
			differ++
		}
		if all = append(all, goldenResult{name, report}); inv.flags.json {
			continue
		}
		if err := inv.tellRerun(name, report); err != nil {
			return err
		}
	}
	if inv.flags.json {
		if err := inv.printJSON(all); err != nil {
			return err
		}
	}
	if differ > 0 {
		return &exitError{code: ExitError}
	}
	return nil
}

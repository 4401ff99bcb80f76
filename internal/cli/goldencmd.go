package cli

import (
	"cmp"
	"context"
	"encoding/xml"
	"fmt"
	"path/filepath"
	"strings"

	"coder/internal/agent/rerun"
	"coder/internal/app"
	"coder/internal/core/display"
	"coder/internal/core/message"
	"coder/internal/core/sanitize"
	"coder/internal/host/atomicfile"
)

var goldenVerbs = []string{"save", "run", "list"}

// runGolden saves sessions as tests, and runs them.
func (inv *invocation) runGolden(ctx context.Context, a *app.Workspace) error {
	args := inv.flags.args
	switch verb, rest := args[0], args[1:]; {
	case verb == "save" && len(rest) == 2:
		return inv.saveGolden(ctx, a, rest[0], rest[1])
	case verb == "save":
		return usageErrorf("coder golden save needs a session and a name for it: coder golden save SESSION NAME")
	case verb == "run":
		return inv.runGoldens(ctx, a, rest)
	case verb == "list" && len(rest) == 0 && inv.flags.json:
		return inv.printJSON(append([]string{}, a.GoldenNames()...))
	case verb == "list" && len(rest) == 0 && len(a.GoldenNames()) == 0:
		inv.warn(fmt.Sprintf("no golden sessions in %s; coder golden save creates one", a.GoldenDir()))
		return nil
	case verb == "list" && len(rest) == 0:
		return inv.print(a.GoldenNames()...)
	case verb == "list":
		return usageErrorf("coder %s takes no arguments", "golden list")
	}
	return usageErrorf("coder golden needs a subcommand: save, run or list")
}

func (inv *invocation) saveGolden(ctx context.Context, a *app.Workspace, session, name string) error {
	if !app.IsSessionID(filepath.Base(name)) {
		return usageErrorf("%q is not a valid name for a golden session (letters, digits, dot, dash and underscore), nor a path to one", name)
	}
	id, err := a.Store().CheckSession(ctx, session)
	if err != nil {
		return err
	}
	records, err := a.Store().ReadLog(ctx, id)
	if err != nil {
		return err
	}
	if a.Store().DescribeDamage(ctx, id) != "" {
		return inputErrorf("session %s was not saved: its record was changed; see coder audit verify %[1]s", id)
	}
	for _, n := range inv.flags.except {
		if n > uint64(len(records)) {
			return usageErrorf("--except %d: session %s has %d records", n, id, len(records))
		}
	}
	dir := a.GoldenPath(name)
	saved, err := a.SaveGolden(ctx, id, dir, records, rerun.Exceptions{SkippedRecords: inv.flags.except,
		IgnoredLines: inv.flags.ignore})
	if err != nil {
		return err
	}
	if saved.Difference != nil {
		if err := inv.printRerun(id, saved.Report); err != nil {
			return err
		}
	}
	if saved.Diverged {
		return &exitError{code: ExitError, text: inv.printer.T("not saved: the rerun differs from record %d on",
			saved.Difference.Record)}
	}
	if saved.Difference != nil {
		inv.warn(inv.printer.T("saved with this difference as expected; --except %d skips the record",
			saved.Difference.Record))
	}
	if len(saved.Omitted) > 0 {
		inv.warn(fmt.Sprintf("skipped (may contain secrets): %s", strings.Join(saved.Omitted, ", ")))
	}
	return inv.printWrapped(inv.printer.T(display.Plural(saved.Steps, "saved in %s: %d step, %d records",
		"saved in %s: %d steps, %d records"), dir, saved.Steps, saved.ComparedRecords))
}

// goldenResult is the result of a golden session, for programs.
type goldenResult struct {
	Name   string        `json:"name"`
	Result *rerun.Report `json:"result,omitempty"`
	Error  string        `json:"error,omitempty"` // why it could not run
}

func (inv *invocation) runGoldens(ctx context.Context, a *app.Workspace, names []string) error {
	if len(names) == 0 {
		if names = a.GoldenNames(); len(names) == 0 {
			return inputErrorf("no golden sessions in %s; coder golden save creates one", a.GoldenDir())
		}
	}
	failed, all := error(nil), []goldenResult{}
	for _, name := range names {
		report, err := a.RunGolden(ctx, a.GoldenPath(name), inv.flags.update)
		if ctx.Err() != nil {
			return err
		}
		one := goldenResult{Name: name, Result: report}
		switch {
		case err != nil: // the others still run
			one.Error = err.Error()
			failed = cmp.Or(failed, err)
		case report.Difference != nil:
			failed = cmp.Or[error](failed, &exitError{code: ExitError})
		}
		all = append(all, one)
		switch {
		case inv.flags.json:
		case err != nil && len(names) > 1:
			inv.warn(fmt.Sprintf("%s: %v", singleLine(name), err))
		case err == nil:
			if err := inv.printRerun(name, report); err != nil {
				return err
			}
		}
	}
	if inv.flags.junit != "" {
		if err := inv.writeJUnit(all); err != nil {
			return err
		}
	}
	if inv.flags.json {
		if err := inv.printJSON(all); err != nil {
			return err
		}
	}
	return failed
}

// A JUnit file, as CI servers read it.
type (
	junitSuite struct {
		XMLName  xml.Name    `xml:"testsuite"`
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string       `xml:"name,attr"`
		Class   string       `xml:"classname,attr"`
		Failure *junitResult `xml:"failure"`
		Error   *junitResult `xml:"error"`
	}
	junitResult struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// writeJUnit writes results to the JUnit file.
func (inv *invocation) writeJUnit(all []goldenResult) error {
	suite := junitSuite{Name: "coder golden", Tests: len(all)}
	for _, one := range all {
		c := junitCase{Name: one.Name, Class: "golden"}
		switch {
		case one.Error != "":
			suite.Errors++
			c.Error = &junitResult{Message: sanitize.Text(one.Error)}
		case one.Result.Difference != nil:
			suite.Failures++
			title, body := inv.describeRerun(one.Name, one.Result)
			c.Failure = &junitResult{Message: sanitize.Text(title), Text: sanitize.Text(body)}
		}
		suite.Cases = append(suite.Cases, c)
	}
	text, err := xml.MarshalIndent(suite, "", "  ")
	if err != nil {
		return err
	}
	file := inv.flags.junit
	if !filepath.IsAbs(file) {
		file = filepath.Join(inv.Env.Dir, file)
	}
	if err := atomicfile.Write(file, append([]byte(xml.Header), append(text, '\n')...), 0o644); err != nil {
		return message.Errorf("write the results: %w", err)
	}
	return nil
}

package cli

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"coder/internal/app"
	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/record/audit"
	"coder/internal/slash"
)

// runSessions lists the sessions kept here.
func (inv *invocation) runSessions(ctx context.Context) error {
	fl := inv.flags
	if len(fl.args) > 0 {
		return usagef("coder sessions takes no arguments")
	}
	a, err := inv.newApp(inv.warn)
	if err != nil {
		return err
	}
	all, err := a.Store().Heads(ctx)
	if err != nil {
		return err
	}
	if fl.json {
		_, err := fmt.Fprintf(inv.Stdout, "%s\n", jsonx.Must(all))
		return err
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(inv.Stdout, inv.words.T("there are no sessions here"))
		return err
	}
	w := tabwriter.NewWriter(inv.Stdout, 0, 0, 2, ' ', 0)
	for _, s := range all {
		fmt.Fprintln(w, strings.Join(slash.SessionRow(s), "\t"))
	}
	return w.Flush()
}

// runExport prints a session.
func (inv *invocation) runExport(ctx context.Context) error {
	fl := inv.flags
	if len(fl.args) != 1 {
		return usagef("coder export needs the id of one session; coder sessions lists them")
	}
	a, err := inv.newApp(inv.warn)
	if err != nil {
		return err
	}
	format := fl.format
	if format == "" {
		format = "md"
	}
	id, err := a.Store().Known(ctx, fl.args[0])
	if err != nil {
		return err
	}
	return a.Store().Write(ctx, inv.Stdout, id, format)
}

// runAudit shows what a session did to the world, or checks that its record of
// that was not tampered with.
func (inv *invocation) runAudit(ctx context.Context) error {
	fl := inv.flags
	what, args := "show", fl.args
	if len(args) > 0 && (args[0] == "show" || args[0] == "verify") {
		what, args = args[0], args[1:]
	}
	if len(args) > 1 {
		return usagef("coder audit takes show or verify, and a session")
	}
	a, err := inv.newApp(inv.warn)
	if err != nil {
		return err
	}
	var id string
	if len(args) == 0 {
		id, err = a.Store().Last()
	} else {
		id, err = a.Store().Known(ctx, args[0])
	}
	if err != nil {
		return err
	}
	if what == "verify" {
		return inv.verifyAudit(a.Store(), id)
	}
	return inv.showAudit(ctx, a.Store(), id)
}

// verifyAudit checks the logs of a session line by line, and against what was
// signed for.
func (inv *invocation) verifyAudit(store *app.Store, id string) error {
	report, err := store.Verify(id)
	if err != nil {
		return fmt.Errorf("session %s: %d lines hold together, then: %w", id, report.Lines, err)
	}
	words := inv.words
	lines := []string{words.T("session %s: all %d lines hold together", id, report.Lines)}
	if report.Unchecked > 0 {
		lines = append(lines, words.T("%d lines were written by an earlier version and carry no check", report.Unchecked))
	}
	for _, seq := range report.Lost {
		lines = append(lines, words.T("what followed record %d was found damaged or missing once, and was set aside", seq))
	}
	if report.Vouched > 0 {
		lines = append(lines, words.T("up to record %d they are what this machine signed for", report.Vouched))
	} else {
		lines = append(lines, words.T("this machine has signed for none of them, so an end that was cut off would not be noticed"))
	}
	_, err = fmt.Fprintln(inv.Stdout, strings.Join(lines, "\n"))
	return err
}

// auditRow is one call for other programs.
type auditRow struct {
	Time      time.Time                `json:"time"`
	Requested event.ToolCallRequested  `json:"requested"`
	Completed *event.ToolCallCompleted `json:"completed"`
}

func (inv *invocation) showAudit(ctx context.Context, store *app.Store, id string) error {
	calls, err := audit.Pair(store.Logs.Read(ctx, id, 0, event.Audit))
	if err != nil {
		return err
	}
	if inv.flags.json {
		for _, c := range calls {
			if _, err := fmt.Fprintf(inv.Stdout, "%s\n", jsonx.Must(auditRow{c.Time, c.Requested, c.Completed})); err != nil {
				return err
			}
		}
		return nil
	}
	if len(calls) == 0 {
		_, err := fmt.Fprintln(inv.Stdout, inv.words.T("session %s called no tool", id))
		return err
	}
	w := tabwriter.NewWriter(inv.Stdout, 0, 0, 2, ' ', 0)
	for _, c := range calls {
		fmt.Fprintln(w, strings.Join(auditLine(c), "\t"))
	}
	return w.Flush()
}

func auditLine(c audit.Call) []string {
	outcome := "unknown"
	if c.Completed != nil && !c.Completed.Unknown {
		if outcome = "ok"; c.Completed.IsError {
			outcome = "failed"
		}
	}
	verdict := string(c.Requested.Verdict)
	if by := c.Requested.DecidedBy; by != "" {
		verdict += " (" + by + ")"
	}
	return []string{
		c.Time.Local().Format("2006-01-02 15:04:05"), c.Requested.Tool, oneLine(verdict), outcome,
		oneLine(event.JoinEffects(c.Requested.Effects, "; ")),
	}
}

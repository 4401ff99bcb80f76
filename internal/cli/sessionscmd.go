package cli

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"coder/internal/app"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/record/audit"
	"coder/internal/slash"
)

// runSessions lists the sessions kept here.
func (inv *invocation) runSessions(ctx context.Context, a *app.App) error {
	all, err := a.Store().Heads(ctx)
	switch {
	case err != nil:
		return err
	case inv.flags.json:
		return inv.printJSON(all)
	case len(all) == 0:
		return inv.tell(inv.words.T("no sessions here"))
	}
	var t display.Table
	for _, s := range all {
		t.Rows = append(t.Rows, display.Data(slash.SessionRow(s)...))
	}
	return inv.show(t)
}

// runExport prints a session.
func (inv *invocation) runExport(ctx context.Context, a *app.App) error {
	id, err := a.Store().Known(ctx, inv.flags.args[0])
	if err != nil {
		return err
	}
	if inv.flags.format == "bundle" {
		return inv.writeBundle(ctx, a, id)
	}
	if inv.flags.format == "request" {
		return a.Store().WriteRequest(ctx, inv.Stdout, id, uint64(inv.flags.at))
	}
	if inv.flags.at != 0 {
		return usagef("--at needs --format request; coder show %s --at %d shows the session at that record", id, inv.flags.at)
	}
	return a.Store().Write(ctx, inv.Stdout, id, cmp.Or(inv.flags.format, "md"))
}

// runAudit shows what a session did to the world, or checks that its record of
// that was not tampered with.
func (inv *invocation) runAudit(ctx context.Context, a *app.App) error {
	what, args := "show", inv.flags.args
	if len(args) > 0 && (args[0] == "show" || args[0] == "verify") {
		what, args = args[0], args[1:]
	}
	var err error
	store, id := a.Store(), ""
	if len(args) == 0 {
		id, err = store.Last()
	} else {
		id, err = store.Known(ctx, args[0])
	}
	switch {
	case err != nil:
		return err
	case what == "verify":
		return inv.verifyAudit(store, id)
	}
	return inv.showAudit(ctx, store, id)
}

// verifyAudit checks the logs of a session line by line, and against what was
// signed for.
func (inv *invocation) verifyAudit(store *app.Store, id string) error {
	report, err := store.Verify(id)
	if err != nil {
		return fmt.Errorf("session %s: %d lines are intact, then: %w", id, report.Lines, err)
	}
	err = inv.tell(report.Sentences(id, inv.words.T)...)
	for _, c := range report.Open {
		if c.Left && err == nil { // those of an unfinished turn are settled when it continues
			err = fmt.Errorf("session %s: record %d: %s never ended, but its task did", id, c.Seq, c.Requested.Tool)
		}
	}
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
	if len(calls) == 0 && !inv.flags.json {
		return inv.tell(inv.words.T("session %s called no tool", id))
	}
	var t display.Table
	for _, c := range calls {
		if inv.flags.json {
			if err := inv.printJSON(auditRow{c.Time, c.Requested, c.Completed}); err != nil {
				return err
			}
			continue
		}
		outcome := "unknown"
		if c.Completed != nil && !c.Completed.Unknown {
			if outcome = "ok"; c.Completed.IsError {
				outcome = "failed"
			}
		}
		t.Rows = append(t.Rows, display.Data(
			c.Time.Local().Format("2006-01-02 15:04:05"), c.Requested.Tool, oneLine(inv.words.Said(c.Requested.Ruling())), inv.words.T(outcome),
			oneLine(c.Requested.Touches(inv.words.Said)),
		))
	}
	if inv.flags.json {
		return nil
	}
	return inv.show(t)
}

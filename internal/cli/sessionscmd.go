package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"coder/internal/app"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/record/audit"
	"coder/internal/record/session"
	"coder/internal/record/store/jsonl"
	"coder/internal/slash"
)

// sessionVerbs lists the commands of coder sessions.
var sessionVerbs = []string{"rename", "tag", "archive", "unarchive", "delete", "search"}

// runSessions lists the sessions, or changes their titles and tags.
func (inv *invocation) runSessions(ctx context.Context, a *app.Workspace) error {
	if agent := inv.flags.agent; agent != "" {
		return inv.listForeignSessions(a, agent)
	}
	if args := inv.flags.args; len(args) > 0 && args[0] == "search" {
		return usageErrorf("coder sessions search needs --from claude or --from codex; coder search finds words in your own sessions")
	}
	if args := inv.flags.args; len(args) > 0 {
		return inv.changeSessions(ctx, a, args[0], args[1:])
	}
	all, err := a.Store().ListAllHeads(ctx)
	if !inv.flags.all {
		all = slices.DeleteFunc(all, func(h session.Head) bool { return h.Archived })
	}
	switch {
	case err != nil:
		return err
	case inv.flags.json:
		return inv.printJSON(all)
	case len(all) == 0:
		return inv.printWrapped(inv.printer.T("no sessions here"))
	}
	var t display.Table
	for _, s := range all {
		row := slash.SessionRow(s)
		if s.Archived {
			row[3] = inv.printer.T("[archived] %s", row[3])
		}
		t.Rows = append(t.Rows, display.DataCells(row...))
	}
	return inv.printBlocks(t)
}

// listForeignSessions lists the sessions of another agent, or those with certain words.
func (inv *invocation) listForeignSessions(a *app.Workspace, agent string) error {
	args := inv.flags.args
	if len(args) > 0 && args[0] != "search" {
		return usageErrorf("sessions of another agent are only read: coder sessions [search WORDS] --from %s", agent)
	}
	list := a.ListForeignSessions(agent, inv.flags.all, args[min(1, len(args)):])
	if inv.flags.json {
		rows := []foreignRow{}
		for _, f := range list {
			rows = append(rows, foreignRow{f.Agent, f.Session.Started, f.Session.Dir, f.ID, f.Session.Title()})
		}
		return inv.printJSON(rows)
	}
	if len(list) == 0 {
		return inv.printWrapped(inv.printer.T("no sessions here; --all lists those of all folders"))
	}
	var t display.Table
	for _, f := range list {
		when := f.Session.Started.Local().Format("2006-01-02 15:04")
		t.Rows = append(t.Rows, display.DataCells(f.ID, when, singleLine(f.Session.Title())))
	}
	return inv.printBlocks(t)
}

// changeSessions renames, tags, archives or deletes sessions.
func (inv *invocation) changeSessions(ctx context.Context, a *app.Workspace, verb string, args []string) error {
	if len(args) == 0 {
		return usageErrorf("coder sessions %s needs a session id; coder sessions lists the sessions", verb)
	}
	store, ids := a.Store(), args
	if verb == "rename" || verb == "tag" {
		ids = args[:1]
	}
	for _, id := range ids {
		if _, err := store.CheckSession(ctx, id); err != nil {
			return err
		}
	}
	switch verb {
	case "delete":
		return inv.deleteSessions(ctx, a, ids)
	case "rename":
		if err := store.Rename(ctx, ids[0], strings.Join(args[1:], " ")); err != nil {
			return err
		}
		return inv.printWrapped(inv.printer.T("Renamed %s.", ids[0]))
	case "tag":
		tags := slices.Clone(args[1:])
		for i, tag := range tags {
			if tags[i] = strings.TrimLeft(tag, "#"); tags[i] == "" || strings.ContainsAny(tags[i], " \t\n") {
				return inputErrorf("%q is not a tag: use one word", tag)
			}
		}
		if err := store.ChangeLabel(ctx, ids[0], func(l *app.Label) { l.Tags = tags }); err != nil {
			return err
		}
		return inv.printWrapped(inv.printer.T("Tagged %s.", ids[0]))
	}
	for _, id := range ids {
		if err := store.ChangeLabel(ctx, id, func(l *app.Label) { l.Archived = verb == "archive" }); err != nil {
			return err
		}
	}
	if verb == "archive" {
		return inv.printWrapped(inv.printer.T("Archived: %s. coder sessions --all lists them.", strings.Join(ids, ", ")))
	}
	return inv.printWrapped(inv.printer.T("Unarchived: %s.", strings.Join(ids, ", ")))
}

// deleteSessions shows what is deleted with sessions and deletes them if you agree.
func (inv *invocation) deleteSessions(ctx context.Context, a *app.Workspace, ids []string) error {
	store := a.Store()
	heads, err := store.ListAllHeads(ctx)
	if err != nil {
		return err
	}
	var list []pruneItem
	for _, id := range ids {
		switch why := sparedReason(ctx, store, id); {
		case jsonl.InUse(store.Path("log", id)), why != "" && why != reasonOpenQuestion:
			return inputErrorf("kept session %s: %s", id, why)
		}
		p := sessionPruneItem(store, a.Home, id)
		if p.LastUsed.After(inv.Now().Add(-daysDuration(a.RetentionDays()))) {
			return inputErrorf("kept session %s: managed settings keep sessions for %d days", id, a.RetentionDays())
		}
		list = append(list, p)
		about := id
		if i := slices.IndexFunc(heads, func(h session.Head) bool { return h.ID == id }); i >= 0 {
			about = strings.Join(slash.SessionRow(heads[i]), "  ")
		}
		files := inv.printer.T(display.Plural(p.Files, "%d file", "%d files"), p.Files)
		if err := inv.printWrapped(about,
			"  "+inv.printer.T("deletes: conversation, approvals, audit, saved output and plans (%s, %s)", files,
				formatSize(p.Bytes))); err != nil {
			return err
		}
	}
	if !inv.flags.yes {
		ask := inv.terminalConsole(ctx)
		if ask == nil {
			return inputErrorf("coder sessions delete asks before it deletes; without a terminal add --yes")
		}
		yes, err := ask.confirm(ctx, inv.printer.T("Delete for good? File changes made by the sessions stay. [y/N] "), false)
		if err != nil || !yes {
			return cmp.Or(err, inv.printWrapped(inv.printer.T("Nothing was deleted.")))
		}
	}
	gone, err := pruneItems(list)
	for _, p := range gone {
		err = errors.Join(err, store.ChangeLabel(ctx, p.Name, func(l *app.Label) { *l = app.Label{} }))
	}
	return errors.Join(inv.printWrapped(inv.printer.T(display.Plural(len(gone), "Deleted %d session.",
		"Deleted %d sessions."), len(gone))), err)
}

// runExport prints a session.
func (inv *invocation) runExport(ctx context.Context, a *app.Workspace) error {
	id, err := a.Store().CheckSession(ctx, inv.flags.args[0])
	if errors.Is(err, session.ErrNotFound) {
		if f, found, err := a.FindForeignSession(inv.flags.args[0]); err != nil || found {
			return cmp.Or(err, a.ExportForeign(inv.Stdout, f, cmp.Or(inv.flags.format, "md")))
		}
	}
	if err != nil {
		return err
	}
	if inv.flags.format == "bundle" {
		return inv.writeBundle(ctx, a, id)
	}
	if inv.flags.format == "request" {
		return a.Store().WriteRequest(ctx, inv.Stdout, id, uint64(inv.flags.atRecord))
	}
	if inv.flags.atRecord != 0 {
		return usageErrorf("--at needs --format request; coder show %s --at %d shows the session at that record", id,
			inv.flags.atRecord)
	}
	return a.Store().Export(ctx, inv.Stdout, id, cmp.Or(inv.flags.format, "md"))
}

// runAudit shows a session's effects on the world, or verifies that its records were not tampered with.
func (inv *invocation) runAudit(ctx context.Context, a *app.Workspace) error {
	what, args := "show", inv.flags.args
	if len(args) == 1 && args[0] == "ship" {
		return inv.shipAudit(ctx, a)
	}
	if len(args) > 0 && (args[0] == "show" || args[0] == "verify") {
		what, args = args[0], args[1:]
	}
	var err error
	store, id := a.Store(), ""
	if len(args) == 0 {
		id, err = store.LastSession()
	} else {
		id, err = store.CheckSession(ctx, args[0])
	}
	switch {
	case err != nil:
		return err
	case what == "verify":
		return inv.verifyAudit(store, id)
	}
	return inv.showAudit(ctx, store, id)
}

// shipAudit sends what the audit logs have that was not sent before.
func (inv *invocation) shipAudit(ctx context.Context, a *app.Workspace) error {
	if inv.flags.shipTarget == "" {
		return usageErrorf("coder audit ship needs a receiver: --to FILE, --to syslog or --to otlp")
	}
	records, sessions, err := a.ShipRecords(ctx, inv.flags.shipTarget)
	if records > 0 || err == nil {
		err = errors.Join(err, inv.printWrapped(inv.printer.T("Shipped %d records of %d sessions.", records, sessions)))
	}
	return err
}

// verifyAudit checks a session's logs line by line, and against their signatures.
func (inv *invocation) verifyAudit(store *app.Store, id string) error {
	report, err := store.Verify(id)
	if err != nil {
		return message.Errorf("session %s: %d lines are intact, then: %w", id, report.Lines, err)
	}
	err = inv.printWrapped(report.Describe(id, inv.printer.T)...)
	for _, c := range report.OpenCalls {
		if c.Abandoned && err == nil { // an unfinished turn settles its calls when it continues
			err = message.Errorf("session %s: record %d: %s never ended, but its task did", id, c.Seq, c.Requested.Tool)
		}
	}
	return err
}

// auditRow is one call in JSON output.
type auditRow struct {
	Record    uint64                   `json:"record"` // the request's record
	Time      time.Time                `json:"time"`
	Requested event.ToolCallRequested  `json:"requested"`
	Completed *event.ToolCallCompleted `json:"completed"`
}

func (inv *invocation) showAudit(ctx context.Context, store *app.Store, id string) error {
	calls, err := audit.PairCalls(store.Logs.Read(ctx, id, 0, event.LogAudit))
	if err != nil {
		return err
	}
	if len(calls) == 0 && !inv.flags.json {
		return inv.printWrapped(inv.printer.T("session %s called no tool", id))
	}
	var t display.Table
	for _, c := range calls {
		if inv.flags.json {
			if err := inv.printJSON(auditRow{c.Seq, c.Time, c.Requested, c.Completed}); err != nil {
				return err
			}
			continue
		}
		outcome := "unknown"
		if c.Completed != nil && !c.Completed.OutcomeUnknown {
			if outcome = "ok"; c.Completed.IsError {
				outcome = "failed"
			}
		}
		t.Rows = append(t.Rows, display.DataCells(
			fmt.Sprintf("#%d", c.Seq), c.Time.Local().Format("2006-01-02 15:04:05"), c.Requested.Tool,
			singleLine(inv.printer.TranslateText(c.Requested.VerdictText())), inv.printer.T(outcome),
			singleLine(c.Requested.DescribeEffects(inv.printer.TranslateText)),
		))
	}
	if inv.flags.json {
		return nil
	}
	return inv.printBlocks(t)
}

// foreignRow is a session of another agent in JSON output.
type foreignRow struct {
	Agent   string    `json:"agent"`
	Created time.Time `json:"created_at"`
	Dir     string    `json:"cwd"`
	ID      string    `json:"session_id"`
	Title   string    `json:"title"`
}

package app

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/record/audit"
	"coder/internal/record/session"
	"coder/internal/slash"
)

// onShelf is the program for looking at what is kept.
func onShelf(env Env, fl *flags) (*house, error) {
	return newHouse(env, fl, warner(env, fl))
}

// runSessions lists the sessions kept here.
func runSessions(ctx context.Context, env Env, fl *flags) error {
	if len(fl.args) > 0 {
		return usagef("coder sessions takes no arguments")
	}
	h, err := onShelf(env, fl)
	if err != nil {
		return err
	}
	all, err := (archive{h}).Heads(ctx)
	if err != nil {
		return err
	}
	if fl.json {
		_, err := fmt.Fprintf(env.Stdout, "%s\n", jsonx.Must(all))
		return err
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(env.Stdout, h.words().T("there are no sessions here"))
		return err
	}
	w := tabwriter.NewWriter(env.Stdout, 0, 0, 2, ' ', 0)
	for _, s := range all {
		fmt.Fprintln(w, strings.Join(slash.SessionRow(s), "\t"))
	}
	return w.Flush()
}

// runExport prints a session.
func runExport(ctx context.Context, env Env, fl *flags) error {
	if len(fl.args) != 1 {
		return usagef("coder export needs the id of one session; coder sessions lists them")
	}
	h, err := onShelf(env, fl)
	if err != nil {
		return err
	}
	format := fl.format
	if format == "" {
		format = "md"
	}
	id, err := h.known(ctx, fl.args[0])
	if err != nil {
		return err
	}
	return (archive{h}).Write(ctx, env.Stdout, id, format)
}

// known makes sure that there is a session id.
func (h *house) known(ctx context.Context, id string) (string, error) {
	sup, err := h.shelf()
	if err != nil {
		return "", err
	}
	if validSessionID(id) {
		if known, err := sup.Exists(ctx, id); known || err != nil {
			return id, err
		}
	}
	return "", fmt.Errorf("session %s: %w", oneLine(id), session.ErrNotFound)
}

// runAudit shows what a session did to the world, or checks that its record of
// that was not tampered with.
func runAudit(ctx context.Context, env Env, fl *flags) error {
	what, args := "show", fl.args
	if len(args) > 0 && (args[0] == "show" || args[0] == "verify") {
		what, args = args[0], args[1:]
	}
	if len(args) > 1 {
		return usagef("coder audit takes show or verify, and a session")
	}
	h, err := onShelf(env, fl)
	if err != nil {
		return err
	}
	var id string
	if len(args) == 0 {
		id, err = h.lastSession()
	} else {
		id, err = h.known(ctx, args[0])
	}
	if err != nil {
		return err
	}
	if what == "verify" {
		return h.verifyAudit(id)
	}
	return h.showAudit(ctx, id)
}

// verifyAudit checks the logs of a session line by line, and against what was
// signed for.
func (h *house) verifyAudit(id string) error {
	report, err := h.logStore().Verify(id)
	if err != nil {
		return fmt.Errorf("session %s: %d lines hold together, then: %w", id, report.Lines, err)
	}
	words := h.words()
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
	_, err = fmt.Fprintln(h.env.Stdout, strings.Join(lines, "\n"))
	return err
}

// auditRow is one call for other programs.
type auditRow struct {
	Time      time.Time                `json:"time"`
	Requested event.ToolCallRequested  `json:"requested"`
	Completed *event.ToolCallCompleted `json:"completed"`
}

func (h *house) showAudit(ctx context.Context, id string) error {
	sup, err := h.shelf()
	if err != nil {
		return err
	}
	calls, err := audit.Pair(sup.Store.Read(ctx, id, 0, event.Audit))
	if err != nil {
		return err
	}
	if h.flags.json {
		for _, c := range calls {
			if _, err := fmt.Fprintf(h.env.Stdout, "%s\n", jsonx.Must(auditRow{c.Time, c.Requested, c.Completed})); err != nil {
				return err
			}
		}
		return nil
	}
	if len(calls) == 0 {
		_, err := fmt.Fprintln(h.env.Stdout, h.words().T("session %s called no tool", id))
		return err
	}
	w := tabwriter.NewWriter(h.env.Stdout, 0, 0, 2, ' ', 0)
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

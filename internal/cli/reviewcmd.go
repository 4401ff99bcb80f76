package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"coder/internal/agent/orchestrator"
	"coder/internal/app"
	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/message"
	"coder/internal/core/sanitize"
	"coder/internal/host/stdio"
	"coder/internal/policy/mode"
	"coder/internal/report/review"
	"coder/internal/tool/structured"
)

// runReview asks a model to review a change. The model can only read, and each finding is checked
// against the change before it is written.
func (inv *invocation) runReview(ctx context.Context) error {
	fl := inv.flags
	if fl.format = cmp.Or(fl.format, "text"); !slices.Contains(review.Formats, fl.format) {
		return usageErrorf("coder review writes %s, not %s", strings.Join(review.Formats, ", "), fl.format)
	}
	only := app.ReadOnlySpecs()
	fl.AppendSystem += "\n\nThis is a review, not a plan: give the findings with " + structured.Name + "."
	fl.Schema, fl.Mode, fl.OnlyTools, fl.MCPConfig, fl.StrictMCP = []byte(review.Schema), mode.Plan, &only, nil, true
	a, err := inv.newApp(inv.warn)
	if err != nil {
		return err
	}
	return inv.withSession(ctx, a, inv.newOutput(a), func(s *headless) error { return inv.reviewChange(ctx, a, s) })
}

// reviewChange reads the change, has it reviewed and writes the report.
func (inv *invocation) reviewChange(ctx context.Context, a *app.Workspace, s *headless) error {
	diff, err := inv.readChange(ctx, a)
	if err != nil {
		return err
	}
	diff = s.Inside().FilterDiff(sanitize.Text(diff))
	change, err := review.Parse(diff)
	if err == nil {
		err = change.CheckContent(a.ReadReviewed)
	}
	if err != nil {
		return inputErrorf("%v", err)
	}
	found := review.Report{Summary: inv.printer.T("No changes to review.")}
	if len(change.Files()) > 0 {
		if found, err = s.findIssues(ctx, review.Prompt+"\n\n"+diff); err != nil {
			return err
		}
	}
	report := change.Filter(found)
	if n := report.Dropped; n > 0 {
		inv.warn(fmt.Sprintf(display.Plural(n, "dropped %d finding that is not in the change",
			"dropped %d findings that are not in the change"), n))
	}
	if n := report.Corrected; n > 0 {
		inv.warn(fmt.Sprintf(display.Plural(n, "corrected the line of %d finding", "corrected the lines of %d findings"), n))
	}
	if err := report.Write(inv.Stdout, inv.flags.format, app.Version); err != nil {
		return message.Errorf("write the review: %w", err)
	}
	if report.HasSeverity(cmp.Or(inv.flags.failOn, "error")) {
		return &exitError{code: ExitUnverified, text: "the change did not pass the review (--fail-on)"}
	}
	return nil
}

// readChange returns the diff that the arguments name.
func (inv *invocation) readChange(ctx context.Context, a *app.Workspace) (diff string, err error) {
	revisions := strings.Join(inv.flags.args, " ")
	if revisions == "-" || revisions == "" && inv.IsPiped() {
		diff, err = inv.stdin.ReadRest(ctx, maxPromptBytes)
		switch {
		case errors.Is(err, stdio.ErrTooLong):
			return "", inputErrorf("the change is longer than %d MiB; review it in parts", maxPromptBytes>>20)
		case err != nil:
			return "", message.Errorf("read the change from stdin: %w", err)
		case strings.TrimSpace(diff) != "" || revisions == "-":
			return diff, nil
		}
	}
	return a.Change(ctx, revisions)
}

// findIssues asks the model for a review and returns its findings.
func (s *headless) findIssues(ctx context.Context, task string) (found review.Report, err error) {
	s.out.beginTurn()
	turn, over := s.WithRemoteStop(ctx, s.out.invocation.warn)
	defer over()
	if _, err := s.runInput(turn, orchestrator.TextInput(chat.NewUserText(chat.OriginComposed, task))); err != nil {
		return found, err
	}
	answer := s.out.structuredResult()
	if answer == nil {
		return found, structured.ErrNoAnswer
	}
	if err := json.Unmarshal(answer, &found); err != nil {
		return found, message.Errorf("read the findings: %w", err)
	}
	return found, nil
}

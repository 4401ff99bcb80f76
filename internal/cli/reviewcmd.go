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
		return usagef("coder review writes %s, not %s", strings.Join(review.Formats, ", "), fl.format)
	}
	only := app.ReadOnly()
	fl.AppendSystem += "\n\nThis is a review, not a plan: give the findings with " + structured.Name + "."
	fl.Schema, fl.Mode, fl.OnlyTools, fl.MCPConfig, fl.StrictMCP = []byte(review.Schema), mode.Plan, &only, nil, true
	a, err := inv.newApp(inv.warn)
	if err != nil {
		return err
	}
	return inv.withSession(ctx, a, inv.newOutput(a), func(s *headless) error { return inv.review(ctx, a, s) })
}

// review reads the change, has it reviewed and writes the report.
func (inv *invocation) review(ctx context.Context, a *app.Workspace, s *headless) error {
	diff, err := inv.readChange(ctx, a)
	if err != nil {
		return err
	}
	diff = s.Inside().Shown(sanitize.Text(diff))
	change, err := review.Parse(diff)
	if err == nil {
		err = change.CheckedOut(a.Reviewed)
	}
	if err != nil {
		return inputf("%v", err)
	}
	found := review.Report{Summary: inv.words.T("No changes to review.")}
	if len(change.Files()) > 0 {
		if found, err = s.find(ctx, review.Task+"\n\n"+diff); err != nil {
			return err
		}
	}
	report := change.Check(found)
	if n := report.Dropped; n > 0 {
		inv.warn(fmt.Sprintf(display.Form(n, "dropped %d finding that is not in the change", "dropped %d findings that are not in the change"), n))
	}
	if n := report.Corrected; n > 0 {
		inv.warn(fmt.Sprintf(display.Form(n, "corrected the line of %d finding", "corrected the lines of %d findings"), n))
	}
	if err := report.Write(inv.Stdout, inv.flags.format, app.Version); err != nil {
		return fmt.Errorf("write the review: %w", err)
	}
	if report.Reaches(cmp.Or(inv.flags.failOn, "error")) {
		return &exitError{code: ExitUnverified, text: "the change did not pass the review (--fail-on)"}
	}
	return nil
}

// readChange returns the diff that the arguments name.
func (inv *invocation) readChange(ctx context.Context, a *app.Workspace) (diff string, err error) {
	revisions := strings.Join(inv.flags.args, " ")
	if revisions == "-" || revisions == "" && inv.Piped() {
		diff, err = inv.input.Rest(ctx, promptLimit)
		switch {
		case errors.Is(err, stdio.ErrTooLong):
			return "", inputf("the change is longer than %d MiB; review it in parts", promptLimit>>20)
		case err != nil:
			return "", fmt.Errorf("read the change from stdin: %w", err)
		case strings.TrimSpace(diff) != "" || revisions == "-":
			return diff, nil
		}
	}
	return a.Change(ctx, revisions)
}

// find asks the model for a review and returns its findings.
func (s *headless) find(ctx context.Context, task string) (found review.Report, err error) {
	s.out.begin()
	turn, over := s.Stoppable(ctx, s.out.inv.warn)
	defer over()
	if _, err := s.do(turn, orchestrator.Say(chat.From(chat.Composed, task))); err != nil {
		return found, err
	}
	answer := s.out.formed()
	if answer == nil {
		return found, structured.ErrNone
	}
	if err := json.Unmarshal(answer, &found); err != nil {
		return found, fmt.Errorf("read the findings: %w", err)
	}
	return found, nil
}

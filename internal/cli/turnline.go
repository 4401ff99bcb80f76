package cli

import (
	"context"
	"fmt"
	"strings"

	"coder/internal/agent/verify"
	"coder/internal/app"
	"coder/internal/core/display"
	"coder/internal/core/sanitize"
	"coder/internal/ui/i18n"
	"coder/internal/ui/term/ink"
)

// showTurnLine shows the usage and result of the last turn on one line.
func (t *terminal) showTurnLine(ctx context.Context) error {
	turn, ok := t.host.Inside().TakeLastTurn(ctx)
	if !ok {
		return nil
	}
	return t.face.PrintLines(turnLine{t.invocation.printer, t.separator()}.format(turn))
}

// turnLine formats the usage and result of a turn on one line.
type turnLine struct {
	printer   *i18n.Printer
	separator string // separator of its parts
}

func (t turnLine) format(turn app.TurnResult) []ink.Span {
	var parts []string // tokens, cost, files
	w, u := t.printer, turn.Usage
	switch {
	case u.In+u.Out == 0:
	case u.Estimated:
		parts = append(parts, w.T("about %d tokens in, %d out", u.In, u.Out))
	default:
		parts = append(parts, w.T("%d tokens in, %d out", u.In, u.Out))
	}
	if u.Cost > 0 {
		parts = append(parts, fmt.Sprintf("$%.4f", u.Cost))
	}
	switch {
	case turn.ChangedFiles == 0:
	case turn.AddedLines+turn.DeletedLines == 0 && turn.ChangedFiles == 1:
		parts = append(parts, w.T("1 file"))
	case turn.AddedLines+turn.DeletedLines == 0:
		parts = append(parts, w.T("%d files", turn.ChangedFiles))
	case turn.ChangedFiles == 1:
		parts = append(parts, w.T("1 file, +%d -%d", turn.AddedLines, turn.DeletedLines))
	default:
		parts = append(parts, w.T("%d files, +%d -%d", turn.ChangedFiles, turn.AddedLines, turn.DeletedLines))
	}
	apart := strings.Replace(t.separator, " ·", ink.NoBreakSpace+"·", 1) // no line begins with it
	line := span(ink.Dim, strings.ReplaceAll(strings.Join(parts, apart), " -", ink.NoBreakSpace+"-"))
	add := func(role ink.Role, text string) {
		if len(line) > 1 || line[0].Text != "" {
			line = append(line, span(ink.Dim, apart)...)
		}
		line = append(line, span(role, text)...)
	}
	said, role := t.checkState(turn.LastCheck)
	// a check that passed in an earlier turn may be outdated
	news := turn.ChangedFiles > 0 || turn.LastCheck.IsOneOf(turn.CallIDs) || role != ink.Good
	if len(turn.CallIDs) > 0 && said != "" && news {
		add(role, said)
	}
	// keeps the unit with its number
	took := strings.ReplaceAll(display.FormatDuration(turn.Duration), " ", ink.NoBreakSpace)
	if turn.DurationIncomplete {
		took = w.T("at least %s", took)
	}
	add(ink.Dim, took)
	return line
}

// checkState describes the last check, and the changes since.
func (t turnLine) checkState(c verify.LastCheck) (said string, role ink.Role) {
	w := t.printer
	if c.Command == "" {
		switch {
		case !c.AnyEdits:
			return "", ink.Dim
		case c.EditsSince == 1:
			return w.T("1 edit, not checked"), ink.Warn
		}
		return w.T("%d edits, not checked", c.EditsSince), ink.Warn
	}
	command := sanitize.Line(c.Command, 60)
	if head, cut := strings.CutSuffix(command, "…"); cut {
		command = head + w.DisplaySigns("…")
	}
	said, role = w.T("check passed: %s", command), ink.Good
	switch {
	case c.InconclusiveReason != "":
		said, role = w.T("check inconclusive: %s (%s)", command, w.TranslateText(c.InconclusiveReason)), ink.Warn
	case c.ExitCode != 0:
		said, role = w.T("check failed: %s", command), ink.Bad
	}
	since := ""
	switch all := c.EditsSince + c.OtherChangesSince; all {
	case 0:
		return said, role
	case 1:
		since = w.T("1 edit since then")
	default:
		since = w.T("%d edits since then", all)
	}
	if role == ink.Good && c.EditsSince > 0 {
		role = ink.Warn
	}
	return said + t.separator + since, role
}

// separator returns the separator between the parts of a line.
func (t *terminal) separator() string { return t.invocation.separator() }

func (inv *invocation) separator() string {
	if inv.useASCII() {
		return inv.printer.T(", ")
	}
	return " · "
}

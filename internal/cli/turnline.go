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

// sumUp shows the usage and result of the last turn on one line.
func (t *terminal) sumUp(ctx context.Context) error {
	turn, ok := t.host.Inside().LastTurn(ctx)
	if !ok {
		return nil
	}
	return t.face.Tell(turnLine{t.inv.words, t.apart()}.of(turn))
}

// turnLine formats the usage and result of a turn on one line.
type turnLine struct {
	words *i18n.Printer
	apart string // separator of its parts
}

func (t turnLine) of(turn app.Turn) []ink.Span {
	var parts []string // tokens, cost, files
	w, u := t.words, turn.Usage
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
	case turn.Files == 0:
	case turn.Added+turn.Deleted == 0 && turn.Files == 1:
		parts = append(parts, w.T("1 file"))
	case turn.Added+turn.Deleted == 0:
		parts = append(parts, w.T("%d files", turn.Files))
	case turn.Files == 1:
		parts = append(parts, w.T("1 file, +%d -%d", turn.Added, turn.Deleted))
	default:
		parts = append(parts, w.T("%d files, +%d -%d", turn.Files, turn.Added, turn.Deleted))
	}
	apart := strings.Replace(t.apart, " ·", ink.HardBlank+"·", 1) // no line begins with it
	line := span(ink.Dim, strings.ReplaceAll(strings.Join(parts, apart), " -", ink.HardBlank+"-"))
	add := func(role ink.Role, text string) {
		if len(line) > 1 || line[0].Text != "" {
			line = append(line, span(ink.Dim, apart)...)
		}
		line = append(line, span(role, text)...)
	}
	said, role := t.standing(turn.Check)
	news := turn.Files > 0 || turn.Check.Among(turn.Calls) || role != ink.Good // a check that passed in an earlier turn may be outdated
	if len(turn.Calls) > 0 && said != "" && news {
		add(role, said)
	}
	took := strings.ReplaceAll(display.Duration(turn.Took), " ", ink.HardBlank) // keeps the unit with its number
	if turn.Longer {
		took = w.T("at least %s", took)
	}
	add(ink.Dim, took)
	return line
}

// standing describes the last check, and the changes since.
func (t turnLine) standing(c verify.Check) (said string, role ink.Role) {
	w := t.words
	if c.Command == "" {
		switch {
		case !c.Edited:
			return "", ink.Dim
		case c.Edits == 1:
			return w.T("1 edit, not checked"), ink.Warn
		}
		return w.T("%d edits, not checked", c.Edits), ink.Warn
	}
	command := sanitize.Line(c.Command, 60)
	if head, cut := strings.CutSuffix(command, "…"); cut {
		command = head + w.Signs("…")
	}
	said, role = w.T("check passed: %s", command), ink.Good
	switch {
	case c.Untold != "":
		said, role = w.T("check inconclusive: %s (%s)", command, w.Said(c.Untold)), ink.Warn
	case c.ExitCode != 0:
		said, role = w.T("check failed: %s", command), ink.Bad
	}
	since := ""
	switch all := c.Edits + c.Others; all {
	case 0:
		return said, role
	case 1:
		since = w.T("1 edit since then")
	default:
		since = w.T("%d edits since then", all)
	}
	if role == ink.Good && c.Edits > 0 {
		role = ink.Warn
	}
	return said + t.apart + since, role
}

// apart returns the separator between the parts of a line.
func (t *terminal) apart() string { return t.inv.apart() }

func (inv *invocation) apart() string {
	if inv.ascii() {
		return inv.words.T(", ")
	}
	return " · "
}

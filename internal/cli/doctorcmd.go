package cli

import (
	"cmp"
	"context"
	"strings"

	"coder/internal/app"
	"coder/internal/core/message"
	"coder/internal/core/sanitize"
)

// runDoctor checks everything that the program needs, and says what to do.
func (inv *invocation) runDoctor(ctx context.Context) (err error) {
	list, _, unread := inv.runChecks(ctx)
	if list == nil {
		return unread
	}
	bad := 0
	for _, f := range list {
		if f.State == app.StateBroken {
			bad++
		}
	}
	if inv.flags.json {
		err = inv.printJSON(doctorReport{list, bad == 0})
	} else {
		marks := map[string]string{app.StateGood: " ", app.StateNoted: "·", app.StateBroken: "✗"}
		var lines []string
		for _, f := range list {
			lines = append(lines, inv.printer.DisplaySigns(marks[f.State])+" "+
				inv.printer.T("%s: %s", inv.printer.TranslateText(f.Item), sanitize.Line(inv.printer.TranslateText(f.Detail), 0)))
			if f.Advice != "" {
				lines = append(lines, "    "+inv.printer.TranslateText(f.Advice))
			}
		}
		err = inv.printWrapped(lines...)
	}
	if err == nil && bad > 0 {
		err = &exitError{code: cmp.Or(ExitCode(unread), ExitError),
			err: message.Errorf("problems found: %d broken", bad)}
	}
	return err
}

// runChecks checks everything. unread says why the settings cannot be read; a is nil if the program cannot
// be built without them, and list is nil without a usable folder.
func (inv *invocation) runChecks(ctx context.Context) (list []app.Finding, a *app.Workspace, unread error) {
	unread = cmp.Or(inv.loadErr, inv.readFlagFiles())
	if inv.settings.Project == "" {
		return nil, nil, unread
	}
	list = []app.Finding{inv.examineTerminal()}
	a, err := app.New(inv.Env.Env, inv.flags.Options, inv.settings, func(string) {})
	if unread = cmp.Or(unread, err); a != nil {
		list = append(list, a.Examine(ctx, unread)...)
	} else {
		list = append(list, app.UnreadableSettings(unread))
	}
	for i, f := range list {
		if f.Err != nil {
			list[i].Advice = errorMessage(f.Err).String()
		}
	}
	return list, a, unread
}

// examineTerminal checks the terminal's capabilities.
func (inv *invocation) examineTerminal() app.Finding {
	term := singleLine(inv.Getenv("TERM"))
	locale := strings.ToUpper(inv.Getenv("LC_ALL") + inv.Getenv("LC_CTYPE") + inv.Getenv("LANG"))
	switch _, _, ok := inv.Terminal(); {
	case !ok:
		return app.Finding{Item: "terminal", State: app.StateNoted, Detail: "not a terminal",
			Advice: "coder -p works in pipes"}
	case term == "dumb":
		return app.Finding{Item: "terminal", State: app.StateNoted, Detail: term,
			Advice: "no cursor control: lines are read as they are"}
	case !strings.Contains(locale, "UTF"):
		return app.Finding{Item: "terminal", State: app.StateNoted, Detail: term,
			Advice: "the locale is not UTF-8: set LANG=C.UTF-8 if characters look wrong"}
	}
	return app.Finding{Item: "terminal", State: app.StateGood, Detail: term}
}

// doctorReport is the result of the checks in JSON output.
type doctorReport struct {
	Findings []app.Finding `json:"findings"`
	OK       bool          `json:"ok"`
}

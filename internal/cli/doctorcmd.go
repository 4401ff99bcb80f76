package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"coder/internal/app"
	"coder/internal/core/sanitize"
)

// runDoctor checks everything that the program needs, and says what to do.
func (inv *invocation) runDoctor(ctx context.Context) (err error) {
	list, _, unread := inv.examine(ctx)
	if list == nil {
		return unread
	}
	bad := 0
	for _, f := range list {
		if f.State == app.Broken {
			bad++
		}
	}
	if inv.flags.json {
		err = inv.printJSON(map[string]any{"ok": bad == 0, "findings": list})
	} else {
		marks := map[string]string{app.Good: " ", app.Noted: "·", app.Broken: "✗"}
		var lines []string
		for _, f := range list {
			lines = append(lines, inv.words.Signs(marks[f.State])+" "+inv.words.T("%s: %s", inv.words.Said(f.What), sanitize.Line(inv.words.Said(f.Found), 0)))
			if f.Do != "" {
				lines = append(lines, "    "+inv.words.Said(f.Do))
			}
		}
		err = inv.tell(lines...)
	}
	if err == nil && bad > 0 {
		err = &exitError{code: cmp.Or(ExitCode(unread), ExitError), text: fmt.Sprintf("problems found: %d broken", bad)}
	}
	return err
}

// examine checks everything. unread says why the settings cannot be read; a is nil if the program cannot
// be built without them, and list is nil without a usable folder.
func (inv *invocation) examine(ctx context.Context) (list []app.Finding, a *app.Workspace, unread error) {
	unread = cmp.Or(inv.loadErr, inv.readTexts())
	if inv.settings.Project == "" {
		return nil, nil, unread
	}
	list = []app.Finding{inv.examineTerminal()}
	a, err := app.New(inv.Env.Env, inv.flags.Options, inv.settings, func(string) {})
	if unread = cmp.Or(unread, err); a != nil {
		list = append(list, a.Examine(ctx, unread)...)
	} else {
		list = append(list, app.Unread(unread))
	}
	for i, f := range list {
		if f.Err != nil {
			list[i].Do = message(f.Err)
		}
	}
	return list, a, unread
}

// examineTerminal checks the terminal's capabilities.
func (inv *invocation) examineTerminal() app.Finding {
	term := oneLine(inv.Getenv("TERM"))
	locale := strings.ToUpper(inv.Getenv("LC_ALL") + inv.Getenv("LC_CTYPE") + inv.Getenv("LANG"))
	switch _, _, ok := inv.Terminal(); {
	case !ok:
		return app.Finding{What: "terminal", State: app.Noted, Found: "not a terminal", Do: "coder -p works in pipes"}
	case term == "dumb":
		return app.Finding{What: "terminal", State: app.Noted, Found: term, Do: "no cursor control: lines are read as they are"}
	case !strings.Contains(locale, "UTF"):
		return app.Finding{What: "terminal", State: app.Noted, Found: term, Do: "the locale is not UTF-8: set LANG=C.UTF-8 if characters look wrong"}
	}
	return app.Finding{What: "terminal", State: app.Good, Found: term}
}

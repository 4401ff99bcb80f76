package cli

import (
	"context"
	"errors"
	"strings"

	"coder/internal/app"
	"coder/internal/core/display"
)

// runUninstall shows what coder left on this machine and removes what you choose.
func (inv *invocation) runUninstall(ctx context.Context) error {
	fl := inv.flags
	if fl.yes && !fl.data {
		return usagef("coder uninstall --yes does not ask, so name what to remove: coder uninstall --data --yes")
	}
	all := inv.settings.Leftovers(inv.Env.Env)
	if err := inv.showLeftovers(app.Installed(inv.Env.Env), all); err != nil || len(all) == 0 {
		return err
	}
	if days := inv.settings.KeepDays(); days > 0 {
		return inputf("nothing was removed: managed settings keep sessions for %d days", days)
	}
	ask := inv.asker(ctx)
	if !fl.yes && ask == nil {
		return inv.tell(inv.words.T("Nothing was removed. coder uninstall --data --yes removes all of this."))
	}
	chosen, err := inv.choose(ctx, ask, all)
	removed := 0
	for _, l := range chosen {
		failed := l.Remove()
		if err = errors.Join(err, failed); failed == nil {
			removed++
		}
	}
	return errors.Join(inv.tell(inv.words.T(display.Form(removed, "Removed %d folder.", "Removed %d folders."), removed)), err)
}

// showLeftovers shows how to remove the program, and each folder with its data.
func (inv *invocation) showLeftovers(by app.Installation, all []app.Leftover) error {
	words, remove := inv.words, oneLine(by.Remove())
	if remove == "" {
		remove = words.T("coder does not know how it was installed: remove the file")
	}
	lines := []string{words.T("program: %s", oneLine(by.Path)), "    " + remove}
	if len(all) == 0 {
		return inv.tell(append(lines, words.T("coder has no data on this machine."))...)
	}
	lines = append(lines, words.T("data:"))
	for _, l := range all {
		about := words.T("keys, trust and indexes")
		if l.Plugins {
			about = words.T("fetched plugins")
		} else if !l.Home || l.Sessions > 0 {
			about = words.T(display.Form(l.Sessions, "%d session", "%d sessions"), l.Sessions)
		}
		lines = append(lines, "  "+oneLine(l.Dir)+"  "+about+", "+words.T(display.Form(l.Files, "%d file", "%d files"), l.Files)+", "+sizeOf(l.Bytes))
		if len(l.Stays) > 0 {
			lines = append(lines, "    "+words.T("kept: %s", oneLine(strings.Join(l.Stays, ", "))))
		}
	}
	return inv.tell(lines...)
}

// choose asks which folders to remove: all at once after --data, otherwise one by one.
func (inv *invocation) choose(ctx context.Context, ask *console, all []app.Leftover) (chosen []app.Leftover, err error) {
	if inv.flags.yes {
		return all, nil
	}
	if inv.flags.data {
		yes, err := ask.confirm(ctx, inv.words.T("Remove all of this data? [y/N] "), false)
		if err != nil || !yes {
			all = nil
		}
		return all, err
	}
	for _, l := range all {
		yes, err := ask.confirm(ctx, inv.words.T("Remove the data in %s? [y/N] ", oneLine(l.Dir)), false)
		if err != nil {
			return nil, err
		}
		if yes {
			chosen = append(chosen, l)
		}
	}
	return chosen, nil
}

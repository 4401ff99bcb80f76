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
	if fl.yes && !fl.withData {
		return usageErrorf("coder uninstall --yes does not ask, so name what to remove: coder uninstall --data --yes")
	}
	all := inv.settings.FindLeftovers(inv.Env.Env)
	if err := inv.showLeftovers(app.FindInstallation(inv.Env.Env), all); err != nil || len(all) == 0 {
		return err
	}
	if days := inv.settings.RetentionDays(); days > 0 {
		return inputErrorf("nothing was removed: managed settings keep sessions for %d days", days)
	}
	ask := inv.terminalConsole(ctx)
	if !fl.yes && ask == nil {
		return inv.printWrapped(inv.printer.T("Nothing was removed. coder uninstall --data --yes removes all of this."))
	}
	chosen, err := inv.chooseLeftovers(ctx, ask, all)
	removed := 0
	for _, l := range chosen {
		failed := l.Remove()
		if err = errors.Join(err, failed); failed == nil {
			removed++
		}
	}
	return errors.Join(inv.printWrapped(inv.printer.T(display.Plural(removed, "Removed %d folder.", "Removed %d folders."),
		removed)), err)
}

// showLeftovers shows how to remove the program, and each folder with its data.
func (inv *invocation) showLeftovers(by app.Installation, all []app.Leftover) error {
	words, remove := inv.printer, singleLine(by.RemoveCommand())
	if remove == "" {
		remove = words.T("coder does not know how it was installed: remove the file")
	}
	lines := []string{words.T("program: %s", singleLine(by.Path)), "    " + remove}
	if len(all) == 0 {
		return inv.printWrapped(append(lines, words.T("coder has no data on this machine."))...)
	}
	lines = append(lines, words.T("data:"))
	for _, l := range all {
		about := words.T("keys, trust and indexes")
		if l.Plugins {
			about = words.T("fetched plugins")
		} else if !l.Home || l.Sessions > 0 {
			about = words.T(display.Plural(l.Sessions, "%d session", "%d sessions"), l.Sessions)
		}
		lines = append(lines, "  "+singleLine(l.Dir)+"  "+about+", "+
			words.T(display.Plural(l.Files, "%d file", "%d files"), l.Files)+", "+formatSize(l.Bytes))
		if len(l.UserFiles) > 0 {
			lines = append(lines, "    "+words.T("kept: %s", singleLine(strings.Join(l.UserFiles, ", "))))
		}
	}
	return inv.printWrapped(lines...)
}

// chooseLeftovers asks which folders to remove: all at once after --data, otherwise one by one.
func (inv *invocation) chooseLeftovers(ctx context.Context, ask *console, all []app.Leftover) (chosen []app.Leftover,
	err error) {
	if inv.flags.yes {
		return all, nil
	}
	if inv.flags.withData {
		yes, err := ask.confirm(ctx, inv.printer.T("Remove all of this data? [y/N] "), false)
		if err != nil || !yes {
			all = nil
		}
		return all, err
	}
	for _, l := range all {
		yes, err := ask.confirm(ctx, inv.printer.T("Remove the data in %s? [y/N] ", singleLine(l.Dir)), false)
		if err != nil {
			return nil, err
		}
		if yes {
			chosen = append(chosen, l)
		}
	}
	return chosen, nil
}

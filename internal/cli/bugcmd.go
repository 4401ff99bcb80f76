package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"coder/internal/core/display"
	"coder/internal/core/message"
)

// runBug writes files for a bug report into a new folder, shows each file, and keeps the folder if you
// agree. It sends nothing.
func (inv *invocation) runBug(ctx context.Context) error {
	list, a, unread := inv.runChecks(ctx)
	if a == nil {
		return unread
	}
	session := ""
	if len(inv.flags.args) > 0 {
		session = inv.flags.args[0]
	}
	files, err := a.BugReport(ctx, list, session)
	if err != nil {
		return err
	}
	dir := filepath.Join(inv.Dir, "coder-bug-"+inv.Now().UTC().Format("20060102-150405"))
	ask := inv.terminalConsole(ctx)
	if !inv.flags.yes && ask == nil {
		return inputErrorf("coder bug asks before it saves anything; without a terminal add --yes")
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return message.Errorf("create a folder for the report: %w", err)
	}
	var t display.Table
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f.Name), f.Text, 0o600); err != nil {
			return errors.Join(message.Errorf("write the report: %w", err), os.RemoveAll(dir))
		}
		t.Rows = append(t.Rows, slices.Concat(display.DataCells("  "+f.Name, formatSize(int64(len(f.Text)))),
			display.TextCells(f.Description)))
	}
	err = errors.Join(inv.printWrapped(inv.printer.T("Report in %s:", singleLine(dir))), inv.printBlocks(t))
	if err == nil && !inv.flags.yes {
		yes, asked := ask.confirm(ctx,
			inv.printer.T("Keys are masked. Read the files before you send them. Keep the folder? [y/N] "), false)
		if err = asked; !yes {
			return errors.Join(err, os.RemoveAll(dir), inv.printWrapped(inv.printer.T("Removed.")))
		}
	}
	if session == "" && err == nil {
		err = inv.printWrapped(inv.printer.T("coder bug SESSION adds a session."))
	}
	return err
}

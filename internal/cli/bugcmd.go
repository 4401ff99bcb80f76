package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"coder/internal/core/display"
)

// runBug writes files for a bug report into a new folder, shows each file, and keeps the folder if you
// agree. It sends nothing.
func (inv *invocation) runBug(ctx context.Context) error {
	list, a, unread := inv.examine(ctx)
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
	ask := inv.asker(ctx)
	if !inv.flags.yes && ask == nil {
		return inputf("coder bug asks before it saves anything; without a terminal add --yes")
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("create a folder for the report: %w", err)
	}
	var t display.Table
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f.Name), f.Text, 0o600); err != nil {
			return errors.Join(fmt.Errorf("write the report: %w", err), os.RemoveAll(dir))
		}
		t.Rows = append(t.Rows, slices.Concat(display.Data("  "+f.Name, sizeOf(int64(len(f.Text)))), display.Words(f.About)))
	}
	err = errors.Join(inv.tell(inv.words.T("Report in %s:", oneLine(dir))), inv.show(t))
	if err == nil && !inv.flags.yes {
		yes, asked := ask.confirm(ctx, inv.words.T("Keys are masked. Read the files before you send them. Keep the folder? [y/N] "), false)
		if err = asked; !yes {
			return errors.Join(err, os.RemoveAll(dir), inv.tell(inv.words.T("Removed.")))
		}
	}
	if session == "" && err == nil {
		err = inv.tell(inv.words.T("coder bug SESSION adds a session."))
	}
	return err
}

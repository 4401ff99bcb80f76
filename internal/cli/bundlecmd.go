package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"

	"coder/internal/app"
	"coder/internal/core/display"
	"coder/internal/host/repofile"
)

// writeBundle writes a session to one file, for another machine.
func (inv *invocation) writeBundle(ctx context.Context, a *app.Workspace, id string) error {
	if f, ok := inv.Stdout.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return usageErrorf("a bundle is not text: write it to a file, as in coder export %s --format bundle > %s.bundle",
				id, id)
		}
	}
	left, err := a.WriteBundle(ctx, inv.Stdout, id)
	if err == nil && left > 0 {
		inv.warn(fmt.Sprintf("saved contents with keys, not exported: %d", left))
	}
	return err
}

// runImport imports a session from another machine's file.
func (inv *invocation) runImport(ctx context.Context, a *app.Workspace) error {
	name, from := inv.flags.args[0], inv.Stdin
	if name != "-" {
		data, err := repofile.ReadNamed(name, maxBundleFile)
		if err != nil {
			return inputErrorf("%v", err)
		}
		from = bytes.NewReader(data)
	}
	id, was, err := a.ImportBundle(ctx, io.LimitReader(from, maxBundleFile), inv.flags.session.NewID)
	if err != nil {
		return err
	}
	if was.UncheckedRecords > 0 {
		inv.warn(fmt.Sprintf(display.Plural(was.UncheckedRecords,
			"%d record has no checksum: it may have been changed in transit",
			"%d records have no checksum: they may have been changed in transit"), was.UncheckedRecords))
	}
	var lines []string
	if inv.flags.session.NewID == "" && id != was.Original {
		lines = append(lines, inv.printer.T("session %s already exists here", singleLine(was.Original)))
	}
	lines = append(lines,
		inv.printer.T("session %s: %d records from %s", id, was.Records, singleLine(was.From)),
		inv.printer.T("this machine did not write them: coder audit verify %s shows what is signed", id),
		inv.printer.T("approvals from there do not apply here; continue with coder -r %s", id))
	return inv.printWrapped(lines...)
}

// maxBundleFile is the largest bundle accepted, in bytes.
const maxBundleFile = 512 << 20

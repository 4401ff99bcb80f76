package cli

import (
	"context"
	"encoding/json"
	"strings"

	"coder/internal/app"
	"coder/internal/core/display"
	"coder/internal/core/sanitize"
)

// takeOver shows what another agent's settings become here, and writes it after a yes.
func (inv *invocation) takeOver(ctx context.Context, a *app.Workspace, agent string) error {
	found, err := a.ReadForeign(agent)
	if err != nil {
		return err
	}
	for _, bad := range found.Unreadable {
		inv.warn(bad)
	}
	if len(found.Files) == 0 {
		return inputErrorf("found no settings of %s", agent)
	}
	if err := inv.printWrapped(inv.tableLines(foreignTable(found))...); err != nil {
		return err
	}
	fresh := found.NewEntries()
	if len(fresh) == 0 {
		return inv.printWrapped(inv.printer.T("Nothing to take over."))
	}
	if !inv.flags.yes {
		ask := inv.terminalConsole(ctx)
		if ask == nil {
			return inputErrorf("nothing was written; coder setup --from %s --yes takes all of this over", agent)
		}
		if found, err = inv.askTakeOver(ctx, ask, found); err != nil {
			return err
		}
	}
	path, err := a.TakeOver(found)
	if err != nil {
		return err
	}
	return inv.printWrapped(inv.printer.T("Saved to %s.", path), inv.printer.T("coder setup --undo undoes this."))
}

// askTakeOver asks about what is new, and apart from it about what lets coder do more.
func (inv *invocation) askTakeOver(ctx context.Context, ask *console, f app.ForeignSettings) (app.ForeignSettings,
	error) {
	var safe, wider []app.ForeignEntry
	for _, one := range f.NewEntries() {
		if one.Widens {
			wider = append(wider, one)
		} else {
			safe = append(safe, one)
		}
	}
	f.Entries = nil
	for _, part := range []struct {
		question string
		found    []app.ForeignEntry
	}{
		{inv.printer.T(display.Plural(len(safe), "Write %d setting? [y/N] ", "Write %d settings? [y/N] "), len(safe)), safe},
		{inv.printer.T(display.Plural(len(wider), "Write %d setting that lets coder do more (marked +)? [y/N] ",
			"Write %d settings that let coder do more (marked +)? [y/N] "), len(wider)), wider},
	} {
		if len(part.found) == 0 {
			continue
		}
		yes, err := ask.confirm(ctx, part.question, false)
		if err != nil {
			return f, err
		}
		if yes {
			f.Entries = append(f.Entries, part.found...)
		}
	}
	if len(f.Entries) == 0 {
		return f, errSetupAborted
	}
	return f, nil
}

// foreignTable shows what was found: guards first, then in the order of the files.
func foreignTable(f app.ForeignSettings) display.Table {
	t := display.Table{Header: display.TextCells("", "found", "becomes", "note")}
	for _, guards := range []bool{true, false} {
		for _, one := range f.Entries {
			if guards != (one.Kind == "hook" || one.Kind == "rule" && one.Value != "allow") {
				continue
			}
			mark, becomes := "", "-"
			if one.Widens {
				mark = "+"
			}
			if one.Key != "" {
				value, _ := json.Marshal(one.Value) // it was read from JSON, or is text
				becomes = one.Key + " = " + string(value)
			}
			if (one.Kind == "hook" || one.Kind == "MCP server") && one.Key != "" { // show the command that they run
				becomes = one.Key
			}
			note := one.Note
			if one.State == "there" {
				note = "already yours"
			}
			row := display.DataCells(mark, sanitize.Line(one.Kind+" "+one.Original, 0), sanitize.Line(becomes, 0))
			t.Rows = append(t.Rows, append(row, display.TextCells(strings.TrimSpace(note))...))
		}
	}
	return t
}

// undoTakeOver makes the person's settings what they were before.
func (inv *invocation) undoTakeOver(a *app.Workspace) error {
	path, err := a.UndoTakeOver()
	if err != nil {
		return err
	}
	return inv.printWrapped(inv.printer.T("%s is as it was before.", path))
}

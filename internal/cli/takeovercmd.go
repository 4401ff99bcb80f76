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
	found, err := a.Foreign(agent)
	if err != nil {
		return err
	}
	for _, bad := range found.Bad {
		inv.warn(bad)
	}
	if len(found.Files) == 0 {
		return inputf("found no settings of %s", agent)
	}
	if err := inv.tell(inv.tableLines(foundTable(found))...); err != nil {
		return err
	}
	fresh := found.New()
	if len(fresh) == 0 {
		return inv.tell(inv.words.T("Nothing to take over."))
	}
	if !inv.flags.yes {
		ask := inv.asker(ctx)
		if ask == nil {
			return inputf("nothing was written; coder setup --from %s --yes takes all of this over", agent)
		}
		if found, err = inv.askTakeOver(ctx, ask, found); err != nil {
			return err
		}
	}
	path, err := a.TakeOver(found)
	if err != nil {
		return err
	}
	return inv.tell(inv.words.T("Saved to %s.", path), inv.words.T("coder setup --undo undoes this."))
}

// askTakeOver asks about what is new, and apart from it about what lets coder do more.
func (inv *invocation) askTakeOver(ctx context.Context, ask *console, f app.Foreign) (app.Foreign, error) {
	var safe, wider []app.Found
	for _, one := range f.New() {
		if one.Wider {
			wider = append(wider, one)
		} else {
			safe = append(safe, one)
		}
	}
	f.Found = nil
	for _, part := range []struct {
		question string
		found    []app.Found
	}{
		{inv.words.T(display.Form(len(safe), "Write %d setting? [y/N] ", "Write %d settings? [y/N] "), len(safe)), safe},
		{inv.words.T(display.Form(len(wider), "Write %d setting that lets coder do more (marked +)? [y/N] ", "Write %d settings that let coder do more (marked +)? [y/N] "), len(wider)), wider},
	} {
		if len(part.found) == 0 {
			continue
		}
		yes, err := ask.confirm(ctx, part.question, false)
		if err != nil {
			return f, err
		}
		if yes {
			f.Found = append(f.Found, part.found...)
		}
	}
	if len(f.Found) == 0 {
		return f, errNotWritten
	}
	return f, nil
}

// foundTable shows what was found: guards first, then in the order of the files.
func foundTable(f app.Foreign) display.Table {
	t := display.Table{Head: display.Words("", "found", "becomes", "note")}
	for _, guards := range []bool{true, false} {
		for _, one := range f.Found {
			if guards != (one.Kind == "hook" || one.Kind == "rule" && one.Value != "allow") {
				continue
			}
			mark, becomes := "", "-"
			if one.Wider {
				mark = "+"
			}
			if one.Key != "" {
				value, _ := json.Marshal(one.Value) // it was read from JSON, or is text
				becomes = one.Key + " = " + string(value)
			}
			if (one.Kind == "hook" || one.Kind == "MCP server") && one.Key != "" { // what they run is named
				becomes = one.Key
			}
			note := one.Note
			if one.State == "there" {
				note = "already yours"
			}
			row := display.Data(mark, sanitize.Line(one.Kind+" "+one.What, 0), sanitize.Line(becomes, 0))
			t.Rows = append(t.Rows, append(row, display.Words(strings.TrimSpace(note))...))
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
	return inv.tell(inv.words.T("%s is as it was before.", path))
}

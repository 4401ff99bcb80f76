package cli

import (
	"context"
	"fmt"

	"coder/internal/app"
	"coder/internal/core/display"
	"coder/internal/slash"
)

// runContext shows what filled a session's window, and its cost.
func (inv *invocation) runContext(ctx context.Context, a *app.Workspace) error {
	id, err := a.Store().CheckSession(ctx, inv.flags.args[0])
	if err != nil {
		return err
	}
	book, err := a.BuildLedger(ctx, id, 0)
	switch {
	case err != nil:
		return err
	case inv.flags.json:
		return inv.printJSON(book)
	case len(book.Requests) == 0:
		return inv.printWrapped(inv.printer.T("session %s has no model request, or no token counts", id))
	}
	text := fmt.Sprintf("%d tokens in the window", book.WindowTokens())
	return inv.printBlocks(append(display.Blocks{display.Text(text)}, slash.Sources(book, id)...)...)
}

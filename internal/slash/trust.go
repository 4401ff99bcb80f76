package slash

import (
	"context"
	"fmt"
	"strings"

	"coder/internal/core/display"
	"coder/internal/policy/trust"
)

// Trust shows or changes whether the folder root is trusted. Settings are read when the program starts.
// entrusts returns what they would do, a line each, and a function that trusts them as they were read;
// on error they cannot be used. The command works at any time: the card of a check points to it.
func Trust(book trust.Registry, root string, entrusts func() (rows [][]display.Cell, give func() error,
	err error)) Command {
	return Command{
		Name: "trust", IsReadOnly: true, Args: "[yes|no]", Help: "show or change whether this folder is trusted",
		Run: func(_ context.Context, c call) (outcome, error) {
			var does [][]display.Cell
			var change func() error
			switch c.Args {
			case "":
			case "no":
				change = func() error { return book.Revoke(root) }
			case "yes":
				var err error
				if does, change, err = entrusts(); err != nil {
					return usageError("nothing was trusted: %v", err)
				}
			default:
				return usageError("/trust takes yes or no, not %q", c.Args)
			}
			if change != nil {
				if err := change(); err != nil {
					return usageError("%v", err)
				}
			}
			blocks := display.Blocks{display.Text("this folder is " + TrustState(book, root))}
			files := trust.ExistingFiles(root)
			if c.Args == "yes" && len(does) == 0 {
				files = nil // they apply without trust too
			}
			if len(files) > 0 {
				blocks = append(blocks, display.Text("it has its own settings: "+strings.Join(files, ", ")))
			}
			if len(does) > 0 {
				blocks = append(blocks, display.Table{Rows: does})
			}
			if change != nil && len(files) > 0 {
				blocks = append(blocks, display.Text("settings are read when coder starts, so this applies from the next start"))
			}
			if c.Args == "yes" {
				blocks = append(blocks, display.Text("checks now run without approval"))
			}
			return show(blocks...)
		},
	}
}

// TrustState describes a folder's current trust, which may differ from that when the program started.
func TrustState(book trust.Registry, root string) string {
	now, err := book.StateOf(root)
	if err != nil {
		return fmt.Sprintf("%s (%v)", now, err)
	}
	return now.String()
}

package slash

import (
	"context"
	"fmt"
	"slices"

	"coder/internal/core/display"
)

// Status shows the session's configuration; more returns additional rows.
func Status(more func(context.Context) [][]display.Cell) Command {
	return Command{Name: "status", ShowsOnly: true, Help: "show the session's model, mode and settings",
		Run: func(ctx context.Context, c call) (outcome, error) {
			set := c.Settings()
			_, preset := c.Mode()
			rows := [][]display.Cell{
				StatusRow("model", set.Model),
				StatusRow("mode", set.Mode),
				display.TextCells("context", fmt.Sprintf("%d of %d tokens", c.ContextUsed(), set.ContextLimit)),
				StatusRow("permissions", preset),
			}
			out, _ := show(display.Table{Rows: slices.Concat(rows, more(ctx))})
			return out, ctx.Err()
		}}
}

// StatusRow returns a status row: a label and user data.
func StatusRow(what, value string) []display.Cell {
	return slices.Concat(display.TextCells(what), display.DataCells(value))
}

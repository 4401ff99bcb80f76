package slash

import (
	"context"
	"fmt"
	"slices"

	"coder/internal/core/display"
)

// Status shows what this session runs with; more is what the program adds.
func Status(more func(context.Context) [][]string) Command {
	return Command{Name: "status", Help: "show what this session runs with", Run: func(ctx context.Context, c call) (outcome, error) {
		set := c.Settings()
		_, preset := c.Mode()
		rows := [][]string{
			{"model", set.Model},
			{"mode", set.Mode},
			{"context", fmt.Sprintf("%d of %d tokens", c.ContextUsed(), set.ContextLimit)},
			{"permissions", preset},
		}
		return outcome{Text: aligned(display.Table{Rows: slices.Concat(rows, more(ctx))})}, ctx.Err()
	}}
}

package slash

import (
	"context"
	"fmt"
)

// Compact lets a summary stand for what was said, or undoes that.
func Compact() Command {
	return Command{
		Name: "compact", Args: "[FOCUS|undo]", Help: "let a summary stand for what was said, or undo that",
		Run: func(ctx context.Context, c call) (outcome, error) {
			if c.Args == "undo" {
				messages, err := c.Uncompact(ctx)
				return outcome{Text: fmt.Sprintf("%d messages are back", messages)}, err
			}
			summary, err := c.Compact(ctx, c.Args)
			return outcome{Text: summary}, err
		},
	}
}

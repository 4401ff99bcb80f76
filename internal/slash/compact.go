package slash

import (
	"context"
	"fmt"
	"strings"

	"coder/internal/agent/compact"
	"coder/internal/core/display"
)

// Compact replaces the old part of the conversation with a summary, or undoes that.
func Compact() Command {
	return Command{
		Name: "compact", Args: "[FOCUS|undo]", Help: "summarize the conversation, or undo that",
		Run: func(ctx context.Context, c call) (outcome, error) {
			if c.Args == "undo" {
				was, err := c.UndoCompact(ctx)
				dropped, shortened := compact.CompareMessages(was.Hidden, was.By)
				var said []string
				if dropped > 0 || shortened == 0 {
					said = append(said, fmt.Sprintf(display.Plural(dropped, "%d message restored", "%d messages restored"), dropped))
				}
				if shortened > 0 {
					said = append(said, fmt.Sprintf(display.Plural(shortened, "%d message restored in full",
						"%d messages restored in full"), shortened))
				}
				return outcome{Text: strings.Join(said, "\n")}, err
			}
			summary, err := c.Compact(ctx, c.Args)
			if err != nil {
				return outcome{}, err
			}
			return outcome{Text: summary, Blocks: display.Blocks{display.Code{Lang: display.LangMarkdown, Source: summary}}}, nil
		},
	}
}

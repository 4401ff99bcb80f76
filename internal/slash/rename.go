package slash

import (
	"context"
	"fmt"
	"strings"

	"coder/internal/core/sanitize"
)

// Rename gives the session a title.
func Rename(archive Archive, current string) Command {
	return Command{
		Name: "rename", ShowsOnly: true, Args: "TITLE", Help: "give this session a title",
		Run: func(ctx context.Context, c call) (outcome, error) {
			title := strings.TrimSpace(c.Args)
			if title == "" {
				return usageError("/rename needs a title: /rename TITLE")
			}
			if err := archive.Rename(ctx, current, title); err != nil {
				return usageError("%v", err)
			}
			return showText(fmt.Sprintf("renamed: %s", sanitize.Line(title, 200)))
		},
	}
}

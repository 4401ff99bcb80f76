package slash

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/tool"
)

// Copy puts an answer of the model into the clipboard; clipboard does so and says how.
func Copy(clipboard func(ctx context.Context, text string) (how string, err error)) Command {
	return Command{Name: "copy", Args: "[N]", Help: "copy the last answer, or the Nth last, to the clipboard",
		IsReadOnly: true, Run: func(ctx context.Context, c call) (outcome, error) {
			n := 1
			if c.Args != "" {
				var err error
				if n, err = strconv.Atoi(c.Args); err != nil || n < 1 {
					return usageError("/copy takes a number such as 2, not %s", c.Args)
				}
			}
			answer, left := "", n
			for _, m := range slices.Backward(c.Conversation().View()) {
				if text := strings.TrimSpace(m.Text()); m.Role == chat.Assistant && text != "" && len(m.Calls()) == 0 {
					if left--; left == 0 {
						answer = text
						break
					}
				}
			}
			if answer == "" {
				return usageError("no answer %d in this conversation", n)
			}
			how, err := clipboard(ctx, answer+"\n")
			if err != nil {
				return usageError("%v", err)
			}
			return showText(fmt.Sprintf("copied %s %s", tool.FormatCount(strings.Count(answer, "\n")+1, "line", "lines"), how))
		}}
}

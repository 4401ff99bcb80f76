package slash

import (
	"context"
	"fmt"
	"strings"
)

// Tools lists the tools the model may call.
func Tools() Command {
	return Command{Name: "tools", Help: "list the tools the model may call", Run: func(_ context.Context, c call) (outcome, error) {
		var b strings.Builder
		for s := range c.Settings().Tools.Specs() {
			about, _, _ := strings.Cut(s.Doc, "\n")
			about, _, _ = strings.Cut(about, ". ")
			fmt.Fprintf(&b, "%-15s %s\n", s.Name, strings.TrimSuffix(about, "."))
		}
		return say(strings.TrimRight(b.String(), "\n"))
	}}
}

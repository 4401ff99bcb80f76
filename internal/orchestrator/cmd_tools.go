package orchestrator

import (
	"context"
	"fmt"
	"strings"
)

func toolsCommand() command {
	return command{name: "tools", help: "list the tools the model may call", run: func(_ context.Context, in invocation) (string, error) {
		var b strings.Builder
		for s := range in.Settings().Tools.Specs() {
			about, _, _ := strings.Cut(s.Doc, "\n")
			about, _, _ = strings.Cut(about, ". ")
			fmt.Fprintf(&b, "%-15s %s\n", s.Name, strings.TrimSuffix(about, "."))
		}
		return strings.TrimRight(b.String(), "\n"), nil
	}}
}

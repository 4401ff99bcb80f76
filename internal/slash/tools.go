package slash

import (
	"context"
	"strings"

	"coder/internal/core/display"
)

// Tools lists the tools the model may call.
func Tools() Command {
	return Command{Name: "tools", Looks: true, Help: "list the tools the model may call", Run: func(_ context.Context, c call) (outcome, error) {
		t := display.Table{First: 16}
		for s := range c.Settings().Tools.Specs() {
			about, _, _ := strings.Cut(s.Doc, "\n")
			about, _, _ = strings.Cut(about, ". ")
			t.Rows = append(t.Rows, display.Data(s.Name, strings.TrimSuffix(about, ".")))
		}
		return show(t)
	}}
}

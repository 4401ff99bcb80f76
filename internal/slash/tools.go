package slash

import (
	"context"
	"strings"

	"coder/internal/core/display"
	"coder/internal/tool"
)

// Tools lists the tools the model may call.
func Tools() Command {
	return Command{Name: "tools", ShowsOnly: true, Help: "list the tools the model may call",
		Run: func(_ context.Context, c call) (outcome, error) {
			t := display.Table{FirstWidth: 16}
			for s := range c.Settings().Tools.Specs() {
				about := display.Cell{Text: tool.Describe(s.Name), Words: true}
				if about.Text == "" { // from another source
					first, _, _ := strings.Cut(s.Doc, "\n")
					first, _, _ = strings.Cut(first, ". ")
					about = display.Cell{Text: strings.TrimSuffix(first, ".")}
				}
				t.Rows = append(t.Rows, []display.Cell{{Text: s.Name}, about})
			}
			return show(t)
		}}
}

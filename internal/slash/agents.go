package slash

import (
	"context"
	"slices"

	"coder/internal/core/display"
	"coder/internal/policy/mode"
)

// Agents lists the modes, which are the agents that the user talks to, and the subagents that the model
// may use.
func Agents(others func() (items []Item, warnings []string)) Command {
	return Command{Name: "agents", ShowsOnly: true, Help: "list the agents",
		Run: func(_ context.Context, c call) (outcome, error) {
			t := display.Table{Header: display.TextCells("", "agent", "permissions", "checks")}
			now := c.Settings().Mode
			for _, name := range mode.Names() {
				m, err := mode.Lookup(name)
				if err != nil {
					continue // the names are those of the table
				}
				mark := ""
				if name == now {
					mark = "*"
				}
				t.Rows = append(t.Rows, slices.Concat(display.DataCells(mark, m.Name, m.Preset),
					display.TextCells(m.Verify.String())))
			}
			blocks := []display.Block{t}
			if more := showItems(others()); len(more) > 0 {
				blocks = append(blocks, display.Text("\nthe model may delegate to:"))
				blocks = append(blocks, more...)
			}
			return show(blocks...)
		}}
}

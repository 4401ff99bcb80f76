package slash

import (
	"context"

	"coder/internal/core/display"
	"coder/internal/policy/mode"
)

// Agents lists the modes, as agents that the person talks to, and the agents
// that the model may give work to.
func Agents(others func() (items []Item, warnings []string)) Command {
	return Command{Name: "agents", Help: "list the agents", Run: func(_ context.Context, c call) (outcome, error) {
		t := display.Table{Head: []string{"", "agent", "permissions", "checks"}}
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
			t.Rows = append(t.Rows, []string{mark, m.Name, m.Preset, m.Verify.String()})
		}
		text := aligned(t)
		items, warnings := others()
		if more := listed(items, warnings, ""); more != "" {
			text += "\n\nthe model may give work to:\n" + more
		}
		return say(text)
	}}
}

package orchestrator

import (
	"context"

	"coder/internal/profile"
	"coder/internal/show"
)

func agentsCommand() command {
	return command{name: "agents", help: "list the agents", run: func(_ context.Context, in invocation) (string, error) {
		text := aligned(in.agents())
		if in.Desk.Agents == nil {
			return text, nil
		}
		if more := listed(in.Desk.Agents(), ""); more != "" {
			text += "\n\nthe model may give work to:\n" + more
		}
		return text, nil
	}}
}

// agents are those the person talks to. The one in use is marked.
func (in invocation) agents() show.Table {
	t := show.Table{Head: []string{"", "agent", "permissions", "checks"}}
	now := in.Settings().Mode
	for _, name := range profile.Names() {
		mark := ""
		if name == now {
			mark = "*"
		}
		m, err := profile.Lookup(name)
		if err != nil {
			continue // the names are those of the table
		}
		t.Rows = append(t.Rows, []string{mark, m.Name, m.Preset, m.Verify.String()})
	}
	return t
}

package slash

import (
	"context"
	"slices"
	"strings"

	"coder/internal/core/display"
	"coder/internal/core/sanitize"
)

// helpLimit is the most shown of a user's command description.
const helpLimit = 52

// usageColumns is the width of the command column.
const usageColumns = 25

// Help lists the commands.
func Help() Command {
	return Command{Name: "help", Looks: true, Help: "list the commands", Run: func(_ context.Context, c call) (outcome, error) {
		t := display.Table{First: usageColumns}
		for _, cmd := range c.Commands() {
			if cmd.Run == nil && cmd.Prompt == nil {
				cmd.Help = sanitize.Line(cmd.Help, helpLimit)
			}
			usage := strings.TrimSpace("/" + cmd.Name + " " + cmd.Args)
			t.Rows = append(t.Rows, []display.Cell{{Text: usage}, {Text: cmd.Help, Words: !cmd.Authored}})
		}
		t.Rows = append(t.Rows, slices.Concat(display.Data("!COMMAND"), display.Words("run a shell command; its output joins the conversation")))
		return show(t, display.Text("Enter sends, Ctrl+D on an empty line quits, Esc stops a running turn, Ctrl+C quits."))
	}}
}

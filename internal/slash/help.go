package slash

import (
	"context"
	"slices"
	"strings"

	"coder/internal/core/display"
	"coder/internal/core/sanitize"
)

// maxHelp is the most shown of a user's command description.
const maxHelp = 52

// usageWidth is the width of the command column.
const usageWidth = 25

// Help lists the commands.
func Help() Command {
	return Command{Name: "help", ShowsOnly: true, Help: "list the commands",
		Run: func(_ context.Context, c call) (outcome, error) {
			t := display.Table{FirstWidth: usageWidth}
			for _, cmd := range c.Commands() {
				if cmd.Run == nil && cmd.Prompt == nil {
					cmd.Help = sanitize.Line(cmd.Help, maxHelp)
				}
				usage := strings.TrimSpace("/" + cmd.Name + " " + cmd.Args)
				t.Rows = append(t.Rows, []display.Cell{{Text: usage}, {Text: cmd.Help, Words: !cmd.IsCustom}})
			}
			t.Rows = append(t.Rows, slices.Concat(display.DataCells("!COMMAND"),
				display.TextCells("run a shell command; its output joins the conversation")))
			return show(t, display.Text("Enter sends, Ctrl+D on an empty line quits, Esc stops a running turn, Ctrl+C quits."))
		}}
}

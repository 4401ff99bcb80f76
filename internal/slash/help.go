package slash

import (
	"context"
	"fmt"
	"strings"

	"coder/internal/core/sanitize"
)

// helpLimit bounds what is said about a command that people wrote.
const helpLimit = 52

// usageColumns is how wide the column of the commands is. What a longer one does
// is said on the next line.
const usageColumns = 24

// Help lists the commands.
func Help() Command {
	return Command{Name: "help", Help: "list the commands", Run: func(_ context.Context, c call) (outcome, error) {
		var b strings.Builder
		for _, cmd := range c.Commands() {
			if cmd.Run == nil && cmd.Prompt == nil {
				cmd.Help = sanitize.Line(cmd.Help, helpLimit)
			}
			usage := strings.TrimSpace("/" + cmd.Name + " " + cmd.Args)
			if len(usage) > usageColumns {
				b.WriteString(usage + "\n")
				usage = ""
			}
			fmt.Fprintf(&b, "%-*s %s\n", usageColumns, usage, cmd.Help)
		}
		b.WriteString("!COMMAND                 run a shell command; its output joins the conversation\n")
		b.WriteString("Enter sends, Ctrl+D on an empty line leaves, Esc stops a running turn, Ctrl+C ends the program.")
		return say(b.String())
	}}
}

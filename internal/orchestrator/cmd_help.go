package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// helpLimit bounds what is said about a command that people wrote.
const helpLimit = 52

// usageColumns is how wide the column of the commands is. What a longer one does
// is said on the next line.
const usageColumns = 24

func helpCommand() command {
	return command{name: "help", help: "list the commands", run: func(_ context.Context, in invocation) (string, error) {
		var b strings.Builder
		others := in.Lore.All()
		for i, c := range others {
			others[i].Help = clip(Title(c.Help), helpLimit)
		}
		for _, c := range slices.Concat(Commands(), others) {
			usage := strings.TrimSpace("/" + c.Name + " " + c.Args)
			if len(usage) > usageColumns {
				b.WriteString(usage + "\n")
				usage = ""
			}
			fmt.Fprintf(&b, "%-*s %s\n", usageColumns, usage, c.Help)
		}
		b.WriteString("!COMMAND                 run a shell command; its output joins the conversation\n")
		b.WriteString("Enter sends, Ctrl+D on an empty line leaves, Esc stops a running turn, Ctrl+C ends the program.")
		return b.String(), nil
	}}
}

package slash

import (
	"context"
	"fmt"
	"slices"

	"coder/internal/core/display"
	"coder/internal/core/sanitize"
)

// Job is a command running in the background.
type Job struct {
	ID, Command string
	State       string // in coder's own words
	ExitCode    *int   // exit code, if it ended by itself
	Elapsed     string // how long, so far; "": it has ended
	Log         string // file with all of its output
}

// Jobs lists the background commands.
func Jobs(list func() []Job) Command {
	return Command{Name: "jobs", ShowsOnly: true, Help: "list background commands",
		Run: func(_ context.Context, c call) (outcome, error) {
			t := display.Table{Header: display.TextCells("job", "state", "runs for", "command", "output")}
			for _, j := range list() {
				state := display.Cell{Text: j.State, Words: true}
				if j.ExitCode != nil {
					state.Text = fmt.Sprintf("ended, exit %d", *j.ExitCode)
				}
				t.Rows = append(t.Rows, slices.Concat(display.DataCells(j.ID), []display.Cell{state},
					display.DataCells(j.Elapsed, sanitize.Line(j.Command, 200), j.Log)))
			}
			if len(t.Rows) == 0 {
				return showText("no background commands")
			}
			return show(t)
		}}
}

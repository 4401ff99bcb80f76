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
	Exit        *int   // exit code, if it ended by itself
	Runs        string // how long, so far; "": it has ended
	Log         string // file with all of its output
}

// Jobs lists the background commands.
func Jobs(list func() []Job) Command {
	return Command{Name: "jobs", Looks: true, Help: "list background commands", Run: func(_ context.Context, c call) (outcome, error) {
		t := display.Table{Head: display.Words("job", "state", "runs for", "command", "output")}
		for _, j := range list() {
			state := display.Cell{Text: j.State, Words: true}
			if j.Exit != nil {
				state.Text = fmt.Sprintf("ended, exit %d", *j.Exit)
			}
			t.Rows = append(t.Rows, slices.Concat(display.Data(j.ID), []display.Cell{state}, display.Data(j.Runs, sanitize.Line(j.Command, 200), j.Log)))
		}
		if len(t.Rows) == 0 {
			return say("no background commands")
		}
		return show(t)
	}}
}

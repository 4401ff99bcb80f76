package slash

import (
	"context"
	"fmt"
	"time"

	"coder/internal/core/display"
	"coder/internal/core/sanitize"
)

// Task is work that the user or the session's own model requested.
type Task struct {
	Title   string
	Status  string // in coder's own words
	Sub     bool   // a subagent does it
	Created time.Time
	Waits   display.Cell // the open question, if any
}

// tasksShown is the most tasks listed.
const tasksShown = 12

// Tasks lists the session's tasks, newest first.
func Tasks(read func(context.Context) ([]Task, error)) Command {
	return Command{Name: "tasks", Looks: true, Help: "list the tasks of this session and their state", Run: func(ctx context.Context, c call) (outcome, error) {
		all, err := read(ctx)
		if err != nil {
			return outcome{}, err
		}
		if len(all) == 0 {
			return say("no tasks yet")
		}
		t := display.Table{Head: display.Words("started", "status", "task")}
		for _, task := range all[:min(len(all), tasksShown)] {
			title := sanitize.Line(task.Title, 200)
			if task.Sub {
				title = "> " + title
			}
			t.Rows = append(t.Rows, []display.Cell{{Text: task.Created.Local().Format("2006-01-02 15:04")}, {Text: task.Status, Words: true}, {Text: title}})
			if asks := task.Waits; asks.Text != "" {
				asks.Text = sanitize.Line(asks.Text, 200)
				t.Rows = append(t.Rows, []display.Cell{{}, {Text: "open question", Words: true}, asks})
			}
		}
		if more := len(all) - tasksShown; more > 0 {
			t.Rows = append(t.Rows, display.Words("", "", fmt.Sprintf("and %d older", more)))
		}
		return show(t)
	}}
}

package slash

import (
	"context"
	"fmt"
	"time"

	"coder/internal/core/display"
	"coder/internal/core/sanitize"
)

// Task is a thing the session was asked to do, by the person or by its own model.
type Task struct {
	Title   string
	Status  string // in the program's own words
	Sub     bool   // another agent does it
	Created time.Time
	Waits   display.Cell // the question that waits for an answer, if one does
}

// tasksShown is how many tasks a list shows.
const tasksShown = 12

// Tasks lists what this session was asked to do, the newest first.
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
				t.Rows = append(t.Rows, []display.Cell{{}, {Text: "asks", Words: true}, asks})
			}
		}
		if more := len(all) - tasksShown; more > 0 {
			t.Rows = append(t.Rows, display.Words("", "", fmt.Sprintf("and %d older", more)))
		}
		return show(t)
	}}
}

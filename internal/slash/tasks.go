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
	Title      string
	Status     string // in coder's own words
	IsSubagent bool   // a subagent does it
	Created    time.Time
	Question   display.Cell // the open question, if any
}

// maxTasks is the most tasks listed.
const maxTasks = 12

// Tasks lists the session's tasks, newest first.
func Tasks(read func(context.Context) ([]Task, error)) Command {
	return Command{Name: "tasks", ShowsOnly: true, Help: "list the tasks of this session and their state",
		Run: func(ctx context.Context, c call) (outcome, error) {
			all, err := read(ctx)
			if err != nil {
				return outcome{}, err
			}
			if len(all) == 0 {
				return showText("no tasks yet")
			}
			t := display.Table{Header: display.TextCells("started", "status", "task")}
			for _, task := range all[:min(len(all), maxTasks)] {
				title := sanitize.Line(task.Title, 200)
				if task.IsSubagent {
					title = "> " + title
				}
				t.Rows = append(t.Rows, []display.Cell{{Text: task.Created.Local().Format("2006-01-02 15:04")},
					{Text: task.Status, Words: true}, {Text: title}})
				if asks := task.Question; asks.Text != "" {
					asks.Text = sanitize.Line(asks.Text, 200)
					t.Rows = append(t.Rows, []display.Cell{{}, {Text: "open question", Words: true}, asks})
				}
			}
			if more := len(all) - maxTasks; more > 0 {
				t.Rows = append(t.Rows, display.TextCells("", "", fmt.Sprintf("and %d older", more)))
			}
			return show(t)
		}}
}

package slash

import (
	"context"
	"strings"

	"coder/internal/core/event"
)

// marks show how far a todo is: they are those of the stream.
var marks = map[event.TodoStatus]string{event.TodoPending: "☐", event.TodoInProgress: "◐", event.TodoCompleted: "☑"}

// Todos shows what is to be done.
func Todos(list func() []event.Todo) Command {
	return Command{Name: "todos", Help: "show what is to be done", Run: func(context.Context, call) (outcome, error) {
		var lines []string
		for _, t := range list() {
			lines = append(lines, marks[t.Status]+" "+t.Content)
		}
		if len(lines) == 0 {
			return say("there are no todos")
		}
		return say(strings.Join(lines, "\n"))
	}}
}

package orchestrator

import (
	"context"
	"strings"

	"coder/internal/event"
)

// marks show how far a todo is: they are those of the stream.
var marks = map[event.TodoStatus]string{event.TodoPending: "☐", event.TodoInProgress: "◐", event.TodoCompleted: "☑"}

func todosCommand() command {
	return command{name: "todos", help: "show what is to be done", run: func(_ context.Context, in invocation) (string, error) {
		if in.Todos == nil {
			return "", notHere("todos")
		}
		var lines []string
		for _, t := range in.Todos() {
			lines = append(lines, marks[t.Status]+" "+t.Content)
		}
		if len(lines) == 0 {
			return "there are no todos", nil
		}
		return strings.Join(lines, "\n"), nil
	}}
}

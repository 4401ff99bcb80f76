package slash

import (
	"context"

	"coder/internal/core/display"
	"coder/internal/core/event"
)

// Todos shows the todo list.
func Todos(list func() []event.Todo) Command {
	return Command{Name: "todos", ShowsOnly: true, Help: "show the todo list",
		Run: func(context.Context, call) (outcome, error) {
			var all display.Checklist
			for _, t := range list() {
				all = append(all, display.Check{State: display.State(t.Status), Text: t.Content})
			}
			if len(all) == 0 {
				return showText("the todo list is empty")
			}
			return show(all)
		}}
}

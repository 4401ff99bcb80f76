package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"unicode"

	"coder/internal/agent/complexity"
	"coder/internal/core/event"
)

// todoTool is the tool that writes the list. Where a mode has it the list is
// begun for complex requests, so this is the one place that knows its name.
const todoTool = "todowrite"

// beginTodos starts a list of things to do for a complex request, if the mode
// keeps one and nothing is left on the list from before.
func (o *Orchestrator) beginTodos(ctx context.Context, st *turnState) error {
	if !st.set.TodoForComplex || o.Child != nil || o.Todos == nil {
		return nil
	}
	if _, there := st.set.Tools.Lookup(todoTool); !there || st.set.Tools.Off(todoTool) {
		return nil
	}
	if complex, _ := complexity.Judge(st.input); !complex {
		return nil
	}
	if slices.ContainsFunc(o.Todos(), func(t event.Todo) bool { return t.Status != event.TodoCompleted }) {
		return nil
	}
	return o.emit(ctx, st, ActorAgent, event.TodosChanged{Todos: firstTodos(st.input)})
}

// firstTodos are the steps the person numbered, or the three that any work has.
func firstTodos(input string) []event.Todo {
	steps := complexity.Steps(input)
	if len(steps) == 0 {
		steps = []string{"Understand the request and the code it concerns", "Make the changes", "Check the result"}
		if isChinese(input) {
			steps = []string{"理解需求和相关代码", "完成修改", "检查结果"}
		}
	}
	var todos []event.Todo
	for i, s := range steps {
		todos = append(todos, event.Todo{ID: fmt.Sprint(i + 1), Content: s, Status: event.TodoPending})
	}
	return todos
}

func isChinese(s string) bool {
	for _, r := range s {
		if unicode.Is(unicode.Han, r) {
			return true
		}
	}
	return false
}

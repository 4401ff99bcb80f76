// Package plan has the tools by which the model keeps a todo list,
// asks the user what only the user can decide, and submits a plan.
//
// The list is coder's own: writing it touches nothing of the user's. A written list is complete, limited in
// size and well formed: every item has a unique id, content and a known status, and at most one is in
// progress. The new list is not stored here but becomes a fact of the call; only the session's record has it.
package plan

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"sync"

	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/tool"
)

//go:embed todoread.md
var readDoc string

//go:embed todowrite.md
var writeDoc string

// effectTarget is the name of the list in effects.
const effectTarget = "todo list"

// Todos returns the current list.
type Todos interface {
	List() []event.Todo
}

// All returns every tool of this package.
func All(todos Todos) []tool.Tool { return []tool.Tool{TodoRead(todos), TodoWrite(todos)} }

type result struct {
	OK    bool         `json:"ok"`
	Todos []event.Todo `json:"todos"`
}

// TodoRead returns the tool that shows the list.
func TodoRead(todos Todos) tool.Tool {
	return tool.Func[struct{}]{
		Name: "todoread", Doc: readDoc,
		Aliases: []tool.Alias{{Dialect: tool.Sema, Name: "TodoRead"}, {Name: "read_todos"}},
		Plan: func(context.Context, struct{}) (tool.Plan, error) {
			return tool.Plan{Title: effectTarget, Effects: []tool.Effect{{Kind: tool.Read, Target: effectTarget}}}, nil
		},
		Do: func(ctx context.Context, _ struct{}, _ io.Writer) (tool.Result, error) {
			return todosResult(todos.List()), ctx.Err()
		},
	}
}

type writeArgs struct {
	Todos []todoItem `json:"todos" also:"items list tasks plan todo"`
}

// TodoWrite returns the tool that replaces the list.
func TodoWrite(todos Todos) tool.Tool {
	return tool.Func[writeArgs]{
		Name: "todowrite", Doc: writeDoc,
		Aliases: []tool.Alias{{Dialect: tool.Sema, Name: "TodoWrite"}, {Dialect: tool.CoAuthor, Name: "todoUpdate"},
			{Name: "write_todos"}, {Name: "update_todos"}},
		Plan: func(_ context.Context, a writeArgs) (tool.Plan, error) {
			list, err := checkTodos(a.Todos, todos.List())
			if err != nil {
				return tool.Plan{}, &tool.ArgumentError{Tool: "todowrite", Err: err}
			}
			return tool.Plan{Title: Summary(list), Effects: []tool.Effect{{Kind: tool.Note, Target: effectTarget}},
				Preview: todoTable(list)}, nil
		},
		Do: func(ctx context.Context, a writeArgs, _ io.Writer) (tool.Result, error) {
			list, err := checkTodos(a.Todos, todos.List())
			if err != nil {
				return tool.Result{}, err
			}
			r := todosResult(list)
			r.Events = []event.Event{event.TodosChanged{Todos: list}}
			return r, ctx.Err()
		},
	}
}

func todosResult(list []event.Todo) tool.Result {
	if list == nil {
		list = []event.Todo{}
	}
	r := tool.Result{Value: result{OK: true, Todos: list}, Summary: Summary(list)}
	if len(list) > 0 {
		r.Show = todoTable(list)
	}
	return r
}

func todoTable(list []event.Todo) display.Block {
	t := display.Table{Header: display.TextCells("status", "todo")}
	for _, todo := range list {
		t.Rows = append(t.Rows, append(display.TextCells(string(todo.Status)), display.DataCells(todo.Content)...))
	}
	return t
}

// Summary describes the progress of a list: "3 items, 1 in progress".
func Summary(list []event.Todo) string {
	count := make(map[event.TodoStatus]int)
	for _, t := range list {
		count[t.Status]++
	}
	s := fmt.Sprintf("%d items", len(list))
	if len(list) == 1 {
		s = "1 item"
	}
	for _, part := range []struct {
		status event.TodoStatus
		words  string
	}{{event.TodoInProgress, "in progress"}, {event.TodoCompleted, "completed"}} {
		if n := count[part.status]; n > 0 {
			s += fmt.Sprintf(", %d %s", n, part.words)
		}
	}
	return s
}

// TodoList is a session's list, read from its record. The zero
// Memory is an empty list. It is safe for concurrent use.
type TodoList struct {
	mu   sync.Mutex // guards the field below
	list []event.Todo
}

// Observe processes a record. Records come in order.
func (m *TodoList) Observe(r event.Record) {
	if e, ok := r.Event.(event.TodosChanged); ok {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.list = append([]event.Todo(nil), e.Todos...)
	}
}

// List returns the current list.
func (m *TodoList) List() []event.Todo {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]event.Todo(nil), m.list...)
}

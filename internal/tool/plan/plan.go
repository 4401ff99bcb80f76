// Package plan holds the tools by which the model keeps a list of what it means
// to do, asks the user what only they can decide, and hands over a plan.
//
// The list belongs to the program: writing it touches nothing of the user's. A
// list that is written is whole, bounded and well formed: every item has an id
// of its own, something to do and a known status, and at most one is in
// progress. The new list is not stored here but left as a fact of the call; the
// record of the session is the only place where it lives.
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

// target names what the tools touch, in their effects.
const target = "todo list"

// Todos knows the list as it is now.
type Todos interface {
	List() []event.Todo
}

// All returns every tool of this package.
func All(todos Todos) []tool.Tool { return []tool.Tool{TodoRead(todos), TodoWrite(todos)} }

type result struct {
	OK    bool         `json:"ok"`
	Todos []event.Todo `json:"todos"`
}

// TodoRead is the tool that tells what is on the list.
func TodoRead(todos Todos) tool.Tool {
	return tool.Func[struct{}]{
		Name: "todoread", Doc: readDoc,
		Aliases: []tool.Alias{{Dialect: tool.Sema, Name: "TodoRead"}, {Name: "read_todos"}},
		Plan: func(context.Context, struct{}) (tool.Plan, error) {
			return tool.Plan{Title: target, Effects: []tool.Effect{{Kind: tool.Read, Target: target}}}, nil
		},
		Do: func(ctx context.Context, _ struct{}, _ io.Writer) (tool.Result, error) {
			return present(todos.List()), ctx.Err()
		},
	}
}

type writeArgs struct {
	Todos []item `json:"todos" also:"items list tasks plan todo"`
}

// TodoWrite is the tool that replaces the list.
func TodoWrite(todos Todos) tool.Tool {
	return tool.Func[writeArgs]{
		Name: "todowrite", Doc: writeDoc,
		Aliases: []tool.Alias{{Dialect: tool.Sema, Name: "TodoWrite"}, {Dialect: tool.CoAuthor, Name: "todoUpdate"}, {Name: "write_todos"}, {Name: "update_todos"}},
		Plan: func(_ context.Context, a writeArgs) (tool.Plan, error) {
			list, err := check(a.Todos, todos.List())
			if err != nil {
				return tool.Plan{}, &tool.ArgumentError{Tool: "todowrite", Err: err}
			}
			return tool.Plan{Title: Summary(list), Effects: []tool.Effect{{Kind: tool.Note, Target: target}}, Preview: table(list)}, nil
		},
		Do: func(ctx context.Context, a writeArgs, _ io.Writer) (tool.Result, error) {
			list, err := check(a.Todos, todos.List())
			if err != nil {
				return tool.Result{}, err
			}
			r := present(list)
			r.Facts = []event.Event{event.TodosChanged{Todos: list}}
			return r, ctx.Err()
		},
	}
}

func present(list []event.Todo) tool.Result {
	if list == nil {
		list = []event.Todo{}
	}
	r := tool.Result{Value: result{OK: true, Todos: list}, Summary: Summary(list)}
	if len(list) > 0 {
		r.Show = table(list)
	}
	return r
}

func table(list []event.Todo) display.Block {
	t := display.Table{Head: display.Words("status", "todo")}
	for _, todo := range list {
		t.Rows = append(t.Rows, append(display.Words(string(todo.Status)), display.Data(todo.Content)...))
	}
	return t
}

// Summary tells in a few words how far a list is: "3 items, 1 in progress".
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

// Memory is the list of a session, learnt from its record. The zero Memory is
// an empty list. It is safe for concurrent use.
type Memory struct {
	mu   sync.Mutex // guards the field below
	list []event.Todo
}

// Observe takes note of a record. Records come in the order they were made.
func (m *Memory) Observe(r event.Record) {
	if e, ok := r.Event.(event.TodosChanged); ok {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.list = append([]event.Todo(nil), e.Todos...)
	}
}

// List is the list as it is now.
func (m *Memory) List() []event.Todo {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]event.Todo(nil), m.list...)
}

package plan

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"coder/internal/core/event"
	"coder/internal/core/message"
)

// The limits of a list.
const (
	maxTodos   = 100
	maxContent = 500 // characters of an item
	maxID      = 64  // bytes of an id
)

// todoItem is an entry of the list as written by a model.
type todoItem struct {
	ID       string `json:"id,omitzero" doc:"omit for a new item"`
	Content  string `json:"content"`
	Status   string `json:"status,omitzero" enum:"pending|in_progress|completed" doc:"default pending"`
	Priority string `json:"priority,omitzero" hidden:"yes" enum:"high|medium|low" doc:"how much it matters"`
}

// UnmarshalJSON accepts the item forms that models use: with a number as
// id, with the content under another name, or the content alone.
func (it *todoItem) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &it.Content) == nil {
		return nil
	}
	var w struct {
		ID                                   any
		Content, Title, Text, Task, Step     string
		Description, Status, State, Priority string
	}
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	switch id := w.ID.(type) {
	case string:
		it.ID = id
	case float64:
		it.ID = strconv.FormatFloat(id, 'f', -1, 64)
	case nil:
	default:
		return errors.New("an id is a string")
	}
	it.Content = firstNonEmpty(w.Content, w.Title, w.Text, w.Task, w.Step, w.Description)
	it.Status, it.Priority = firstNonEmpty(w.Status, w.State), w.Priority
	return nil
}

func firstNonEmpty(texts ...string) string {
	for _, s := range texts {
		if strings.TrimSpace(s) != "" {
			return s
		}
	}
	return ""
}

// checkTodos returns a well-formed list from a model's list, or an
// error. An item without an id keeps its id in before.
func checkTodos(items []todoItem, before []event.Todo) ([]event.Todo, error) {
	if len(items) > maxTodos {
		return nil, message.Errorf("%d todos are too many, the limit is %d", len(items), maxTodos)
	}
	list := make([]event.Todo, len(items))
	busy := 0
	for i, it := range items {
		todo, err := it.todo()
		if err != nil {
			return nil, message.Errorf("todo %d: %w", i+1, err)
		}
		if list[i] = todo; todo.Status == event.TodoInProgress {
			busy++
		}
	}
	if busy > 1 {
		return nil, message.Errorf("%d todos are in_progress; only one can be: the one you are working on", busy)
	}
	return list, assignIDs(list, before)
}

func (it todoItem) todo() (t event.Todo, err error) {
	t.Content = strings.Join(strings.Fields(strings.ToValidUTF8(it.Content, "\ufffd")), " ")
	t.ID, t.Priority = strings.TrimSpace(it.ID), strings.ToLower(strings.TrimSpace(it.Priority))
	n := utf8.RuneCountInString(t.Content)
	t.Status, err = parseStatus(it.Status)
	switch {
	case n == 0:
		return t, errors.New("content is empty")
	case n > maxContent:
		return t, message.Errorf("content has %d characters, the limit is %d", n, maxContent)
	case len(t.ID) > maxID:
		return t, message.Errorf("id has %d bytes, the limit is %d", len(t.ID), maxID)
	case err != nil:
		return t, err
	case !slices.Contains([]string{"", "high", "medium", "low"}, t.Priority):
		return t, message.Errorf("priority must be one of high, medium, low, not %.40q", it.Priority)
	}
	return t, nil
}

// parseStatus parses a status or a synonym.
func parseStatus(s string) (event.TodoStatus, error) {
	switch strings.ToLower(strings.NewReplacer("-", "_", " ", "_").Replace(strings.TrimSpace(s))) {
	case "pending", "", "todo", "open", "not_started":
		return event.TodoPending, nil
	case "in_progress", "inprogress", "active", "doing", "started":
		return event.TodoInProgress, nil
	case "completed", "complete", "done", "finished", "closed":
		return event.TodoCompleted, nil
	}
	return "", message.Errorf("status must be one of pending, in_progress, completed, not %.40q", s)
}

// assignIDs gives every item without an id the one it had before, or the next free number.
func assignIDs(list, before []event.Todo) error {
	taken := make(map[string]bool)
	for _, t := range list {
		if t.ID != "" && taken[t.ID] {
			return message.Errorf("two todos have the id %q", t.ID)
		}
		taken[t.ID] = true
	}
	for i := range list {
		for _, old := range before {
			if list[i].ID == "" && old.Content == list[i].Content && !taken[old.ID] {
				list[i].ID, taken[old.ID] = old.ID, true
			}
		}
	}
	for _, old := range before {
		taken[old.ID] = true // a removed item keeps its number
	}
	for i, next := 0, 1; i < len(list); i++ {
		for list[i].ID == "" {
			if id := strconv.Itoa(next); !taken[id] {
				list[i].ID, taken[id] = id, true
			}
			next++
		}
	}
	return nil
}

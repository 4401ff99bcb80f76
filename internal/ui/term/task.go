package term

import (
	"maps"
	"strings"

	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/ui/term/ink"
)

// taskView is what is known of a task while it runs.
type taskView struct {
	id, agent, parent string
	prompted          bool // what the person said has come
	bang              bool // and it was a command
	command           string
	live              bool // which runs, and what it prints is put as it comes
}

// view is the task with that id.
func (r *Renderer) view(id string) *taskView {
	t := r.tasks[id]
	if t == nil {
		t = &taskView{id: id}
		r.tasks[id] = t
	}
	return t
}

// nameAgent names the agent of a task, with a number where others of that name are at work:
// that of the call, among those, which it does the work of.
func (r *Renderer) nameAgent(t *taskView, e event.TaskCreated) {
	t.parent = e.ParentID
	from := 1
	for _, c := range r.status.calls {
		if c.task.id != e.ParentID || !strings.HasPrefix(c.title, e.AgentID+": ") {
			continue
		}
		if c == r.calls[callKey{e.ParentID, e.CallID}] {
			break
		}
		from++
	}
	t.agent = display.Apart(e.AgentID, from, func(name string) bool {
		for _, other := range r.tasks {
			if other != t && other.parent != "" && other.agent == name {
				return true
			}
		}
		return false
	})
}

// forget drops what was only of use while task ran.
func (r *Renderer) forget(task string) {
	if r.reply.task == task {
		r.endReply()
	}
	delete(r.tasks, task)
	maps.DeleteFunc(r.calls, func(k callKey, c *callView) bool {
		if k.task == task {
			r.status.end(c)
		}
		return k.task == task
	})
}

// todos shows the list as it is now, and lets the calls that are running know
// that it was shown.
func (r *Renderer) todos(rec event.Record, e event.TodosChanged) {
	for _, c := range r.calls {
		c.todos = c.todos || c.task.id == rec.Task
	}
	if r.view(rec.Task).parent != "" {
		return
	}
	if r.last == nil || r.last.task.id != rec.Task { // else it stands below the call that changed it
		r.enter(listing)
	}
	if len(e.Todos) == 0 {
		r.page.say(ink.Dim, r.t("no todos"))
	}
	var list display.Checklist
	for _, t := range e.Todos {
		list = append(list, display.Check{State: display.State(t.Status), Text: t.Content})
	}
	r.own(display.Blocks{list}, r.width())
}

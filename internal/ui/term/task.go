package term

import (
	"maps"
	"strings"

	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/ui/term/ink"
)

// taskView is the state of a running task.
type taskView struct {
	id, agent, parent string
	prompted          bool // the user's message has arrived
	bang              bool // the message was a command
	command           string
	live              bool // the command is running, and its output is shown as it comes
}

// view returns the task with that id.
func (r *Renderer) view(id string) *taskView {
	t := r.tasks[id]
	if t == nil {
		t = &taskView{id: id}
		r.tasks[id] = t
	}
	return t
}

// nameAgent names a task's agent, with a number if others of that name are running: the number of its
// call among theirs.
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

// forget drops what is only needed while task runs.
func (r *Renderer) forget(task string) {
	if r.reply.task == task {
		r.endReply()
	}
	if t := r.tasks[task]; t != nil && t.parent == "" {
		r.status.pin(nil)
	}
	delete(r.tasks, task)
	maps.DeleteFunc(r.calls, func(k callKey, c *callView) bool {
		if k.task == task {
			r.status.end(c)
		}
		return k.task == task
	})
}

// todos shows the current list: in the activity while items are open, or in the stream if nothing shows the activity. It
// marks the running calls, since they need not show it.
func (r *Renderer) todos(rec event.Record, e event.TodosChanged) {
	for _, c := range r.calls {
		c.todos = c.todos || c.task.id == rec.Task
	}
	if r.view(rec.Task).parent != "" {
		return
	}
	var list display.Checklist
	open := false
	for _, t := range e.Todos {
		c := display.Check{State: display.State(t.Status), Text: t.Content}
		list, open = append(list, c), open || c.State != display.Completed
	}
	if r.status.show != nil {
		if !open {
			list = nil
		}
		r.status.pin(list)
		return
	}
	if r.last == nil || r.last.task.id != rec.Task { // otherwise it is below the call that changed it
		r.enter(listing)
	}
	if len(e.Todos) == 0 {
		r.page.say(ink.Dim, r.t("no todos"))
	}
	r.own(display.Blocks{list}, r.width())
}

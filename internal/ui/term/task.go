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
	promptShown       bool // the user's message has arrived
	isCommand         bool // the message was a command
	command           string
	showsOutput       bool // the command is running, and its output is shown as it comes
	startedBy         *callView
}

// findTask returns the task with that id.
func (r *Renderer) findTask(id string) *taskView {
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
	if t.startedBy = r.calls[callKey{e.ParentID, e.CallID}]; t.startedBy != nil {
		t.startedBy.startsAgent = true
	}
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
	t.agent = display.UniqueName(e.AgentID, from, func(name string) bool {
		for _, other := range r.tasks {
			if other != t && other.parent != "" && other.agent == name {
				return true
			}
		}
		return false
	})
}

// forgetTask drops what is only needed while task runs.
func (r *Renderer) forgetTask(task string) {
	if r.reply.task == task {
		r.endReply()
	}
	if t := r.tasks[task]; t != nil && t.parent == "" {
		r.status.pin(nil)
	}
	delete(r.tasks, task)
	maps.DeleteFunc(r.calls, func(k callKey, c *callView) bool {
		if k.task == task {
			r.status.endCall(c)
		}
		return k.task == task
	})
}

// showTodos shows the current list: in the activity while items are open, or in the stream if nothing shows the activity. It
// marks the running calls, since they need not show it.
func (r *Renderer) showTodos(rec event.Record, e event.TodosChanged) {
	for _, c := range r.calls {
		c.todosShown = c.todosShown || c.task.id == rec.Task
	}
	if r.findTask(rec.Task).parent != "" {
		return
	}
	var list display.Checklist
	open := false
	for _, t := range e.Todos {
		c := display.Check{State: display.State(t.Status), Text: t.Content}
		list, open = append(list, c), open || c.State != display.StateCompleted
	}
	if r.status.show != nil {
		if !open {
			list = nil
		}
		r.status.pin(list)
		return
	}
	if r.lastCall == nil || r.lastCall.task.id != rec.Task { // otherwise it is below the call that changed it
		r.enterSection(sectionListing)
	}
	if len(e.Todos) == 0 {
		r.page.writeMasked(ink.Dim, r.t("no todos"))
	}
	r.writeBlocks(display.Blocks{list}, r.width())
}

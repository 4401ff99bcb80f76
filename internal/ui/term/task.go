package term

import (
	"maps"
	"regexp"
	"strings"
	"sync"

	"coder/internal/core/event"
	"coder/internal/ui/term/ink"
)

// taskView is what is known of a task while it runs.
type taskView struct {
	id, agent, parent string
	heard             bool // what the person said has come
	bang              bool // and it was a command
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

func (r *Renderer) task(rec event.Record) {
	switch e := rec.Event.(type) {
	case event.TaskCreated:
		t := r.view(rec.Task)
		t.agent, t.parent = e.AgentID, e.ParentID
	case event.TaskFailed:
		if r.view(rec.Task).parent == "" {
			r.breakOff()
			r.remark(ink.Bad, r.t("error: %s", r.o.Words.Said(e.Reason)))
		}
		r.forget(rec.Task)
	case event.TaskCompleted, event.TaskCanceled:
		r.forget(rec.Task)
	case event.StateChanged:
		r.status.set("")
		if e.Busy {
			r.status.set(r.t("working"))
		}
	}
}

// forget drops what was only of use while task ran.
func (r *Renderer) forget(task string) {
	if r.reply.task == task {
		r.endReply()
	}
	delete(r.tasks, task)
	maps.DeleteFunc(r.calls, func(k callKey, _ *callView) bool { return k.task == task })
}

// marks of a todo: done, being done, to be done; and in ASCII.
var (
	todoMarks = map[event.TodoStatus]string{event.TodoCompleted: "☑", event.TodoInProgress: "◐", event.TodoPending: "☐"}
	todoASCII = map[event.TodoStatus]string{event.TodoCompleted: "[x]", event.TodoInProgress: "[~]", event.TodoPending: "[ ]"}
	todoInk   = map[event.TodoStatus]ink.Role{event.TodoCompleted: ink.Done, event.TodoInProgress: ink.Warn, event.TodoPending: ink.Dim}
)

// TodoList is a list of todos as text, one a line. Shown by a Renderer, also
// as the output of a command, each line has the colour of its state.
func TodoList(todos []event.Todo, ascii bool) string {
	var b strings.Builder
	for _, t := range todos {
		b.WriteString(todoMark(t.Status, ascii) + " " + oneLine(t.Content, 0) + "\n")
	}
	return b.String()
}

func todoMark(s event.TodoStatus, ascii bool) string {
	if _, known := todoMarks[s]; !known {
		s = event.TodoPending
	}
	if ascii {
		return todoASCII[s]
	}
	return todoMarks[s]
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
	r.paint(TodoList(e.Todos, r.o.ASCII), 0)
}

// local shows the output of a command of the program's own.
func (r *Renderer) local(e event.LocalAdded) {
	r.endReply()
	r.enter(nothing)
	switch {
	case e.Failed:
		r.page.say(ink.Bad, r.o.Words.Said(e.Output))
	default:
		r.paint(r.o.Words.Said(e.Output), r.width())
	}
	r.section = inserted
}

// command shows what became of a command of the person's own, each part of its
// output up to sectionLines.
func (r *Renderer) command(block string) {
	r.enter(nothing)
	r.page.say(ink.Tool, "[COMMAND]")
	block, last := r.lastWord(cleaned(block))
	for line := range strings.Lines(shorten(block) + last) {
		role := ink.Plain
		switch {
		case strings.HasPrefix(line, "exit=0 "):
			role = ink.Good
		case strings.HasPrefix(line, "exit="), last != "" && line == last[1:]:
			role = ink.Bad
		}
		r.page.put(ink.Look{Role: role}, line)
	}
	r.page.fresh()
	r.section = inserted
}

// commandRan is the line of a command's report that is there if it was run.
var commandRan = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^exit=(-?\d+) duration=\d+ms`) })

// lastWord parts the line that ends a command's report from what stands above
// it, if that line is the program's own: why the command was not run, or that
// its time ran out.
func (r *Renderer) lastWord(block string) (above, last string) {
	block = strings.TrimRight(block, "\n")
	at := strings.LastIndex(block, "\n")
	ran := commandRan().FindStringSubmatch(block)
	switch line := block[at+1:]; {
	case ran == nil && at < 0:
		return r.o.Words.Said(block), ""
	case ran == nil, ran[1] == timedOut && strings.HasPrefix(line, "timed out after "):
		return block[:at], "\n" + r.o.Words.Said(line)
	}
	return block, ""
}

// timedOut is the code with which a command ends whose time ran out.
const timedOut = "124"

// sectionLines is how much of each part of a command's output is shown.
const sectionLines = 20

// shorten cuts the parts of a command's report that are too long.
func shorten(block string) string {
	marks := map[string]string{
		"stdout:": "...[output truncated for display]", "stderr:": "...[error output truncated for display]",
	}
	var kept []string
	mark, left := "", 0
	for _, line := range strings.Split(strings.TrimRight(block, "\n"), "\n") {
		m, begins := marks[line]
		switch {
		case begins && (mark == "" || line == "stderr:"):
			mark, left = m, sectionLines
			kept = append(kept, line)
		case mark == "" || left > 0:
			kept = append(kept, line)
			left--
		case left == 0:
			kept = append(kept, mark)
			left--
		}
	}
	return strings.Join(kept, "\n")
}

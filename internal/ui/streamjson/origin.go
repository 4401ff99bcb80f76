package streamjson

import (
	"slices"

	"coder/internal/core/event"
)

// origins knows which call a subtask came from: the one its record names. One
// that names none came from the newest call of the parent that runs when it is
// made, one that made no other if there is one.
type origins struct {
	running map[string][]running // calls that run, by task, oldest first
	calls   map[string]string    // the call a subtask came from
}

type running struct {
	call   string
	parent bool // it has made a subtask
}

func (o *origins) add(r event.Record) {
	switch e := r.Event.(type) {
	case event.TaskCreated:
		if e.CallID != "" {
			put(&o.calls, r.Task, e.CallID)
			return
		}
		rs := o.running[e.ParentID]
		if e.ParentID == "" || len(rs) == 0 {
			return
		}
		from := len(rs) - 1
		for i, r := range slices.Backward(rs) {
			if !r.parent {
				from = i
				break
			}
		}
		rs[from].parent = true
		put(&o.calls, r.Task, rs[from].call)
	case event.ToolCallRequested:
		o.start(r.Task, e.CallID)
	case event.ToolStarted:
		o.start(r.Task, e.CallID)
	case event.ToolCallCompleted:
		o.end(r.Task, e.CallID)
	case event.ToolFinished:
		o.end(r.Task, e.CallID)
	}
}

func (o *origins) start(task, call string) {
	if !slices.ContainsFunc(o.running[task], is(call)) {
		put(&o.running, task, append(o.running[task], running{call: call}))
	}
}

func (o *origins) end(task, call string) {
	left := slices.DeleteFunc(o.running[task], is(call))
	if len(left) == 0 {
		delete(o.running, task)
		return
	}
	o.running[task] = left
}

func is(call string) func(running) bool {
	return func(r running) bool { return r.call == call }
}

// of is the call that task came from; nil for a task of the person's own.
func (o *origins) of(task string) *string {
	if call, ok := o.calls[task]; ok {
		return &call
	}
	return nil
}

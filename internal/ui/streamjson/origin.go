package streamjson

import (
	"slices"

	"coder/internal/core/event"
)

// origins finds the call that a subtask came from: the one its record names. Otherwise it is the newest
// running call of the parent when the subtask was created, if possible one without another subtask.
type origins struct {
	running map[string][]runningCall // running calls by task, oldest first
	calls   map[string]string        // the call of each subtask
}

type runningCall struct {
	call       string
	hasSubtask bool // it has a subtask
}

func (o *origins) add(r event.Record) {
	switch e := r.Event.(type) {
	case event.TaskCreated:
		if e.CallID != "" {
			putKey(&o.calls, r.Task, e.CallID)
			return
		}
		rs := o.running[e.ParentID]
		if e.ParentID == "" || len(rs) == 0 {
			return
		}
		from := len(rs) - 1
		for i, r := range slices.Backward(rs) {
			if !r.hasSubtask {
				from = i
				break
			}
		}
		rs[from].hasSubtask = true
		putKey(&o.calls, r.Task, rs[from].call)
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
	if !slices.ContainsFunc(o.running[task], byCall(call)) {
		putKey(&o.running, task, append(o.running[task], runningCall{call: call}))
	}
}

func (o *origins) end(task, call string) {
	left := slices.DeleteFunc(o.running[task], byCall(call))
	if len(left) == 0 {
		delete(o.running, task)
		return
	}
	o.running[task] = left
}

func byCall(call string) func(runningCall) bool {
	return func(r runningCall) bool { return r.call == call }
}

// callOf returns the call that task came from; nil for the user's own task.
func (o *origins) callOf(task string) *string {
	if call, ok := o.calls[task]; ok {
		return &call
	}
	return nil
}

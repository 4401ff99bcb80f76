package events

import (
	"cmp"

	"coder/internal/core/event"
)

// rest sends the idle state once both the program and the main task are idle. A task that waits for an
// answer counts as idle when the program stops.
func (s *sema) rest() error {
	if s.busy || s.running && len(s.asked) == 0 {
		return nil
	}
	return s.tell("idle")
}

// tell sends a state, unless it was the last one sent.
func (s *sema) tell(state string) error {
	if err := s.release(); err != nil || s.state == state {
		return err
	}
	s.state = state
	return s.put("state:update", obj{"state", state})
}

func (s *sema) childTask(r event.Record) error {
	var status, content string
	switch e := r.Event.(type) {
	case event.TaskCompleted:
		status, content = "completed", e.Summary
	case event.TaskFailed:
		status, content = "failed", e.Reason
	case event.TaskCanceled:
		status, content = "interrupted", e.Reason
	default:
		return nil
	}
	s.forget(r.Task)
	return s.put("task:agent:end", obj{"taskId", r.Task, "status", status, "content", content})
}

func (s *sema) mainTask(r event.Record) error {
	switch e := r.Event.(type) {
	case event.TaskStarted:
		s.running, s.half, s.stopped = true, false, false
		return s.tell("processing")
	case event.TaskFailed:
		kind, code := cmp.Or(semaTypes[e.Code], "api_error"), e.Code
		if code == "" {
			kind, code = "fatal_error", "task_failed"
		}
		if err := s.put("session:error", obj{"type", kind, "error", obj{"code", code, "message", e.Reason}}); err != nil {
			return err
		}
	case event.TaskCompleted, event.TaskCanceled:
	default:
		return nil
	}
	s.running = false
	s.text.reset()
	s.thought.reset()
	s.forget(r.Task)
	return s.rest()
}

// interruption sends the usage so far after it, unless the partial reply does.
func (s *sema) interruption(r event.Record, e event.Interrupted) error {
	if err := s.put("session:interrupted", obj{"agentId", s.agent(r), "content", e.Text}); err != nil {
		return err
	}
	if !s.main(r) {
		return nil
	}
	s.stopped = true
	if s.half {
		return nil
	}
	return s.usage()
}

// semaTypes maps failures to their own types; every other failure of the provider is an api_error.
var semaTypes = map[string]string{
	"context_length_exceeded": "context_length_exceeded",
	"model_not_found":         "model_error",
}

package events

import (
	"cmp"

	"coder/internal/core/event"
)

// sendIdle sends the idle state once both the program and the main task are idle. A task that waits for an
// answer counts as idle when the program stops.
func (s *sema) sendIdle() error {
	if s.programRunning || s.taskRunning && len(s.openQuestions) == 0 {
		return nil
	}
	return s.sendState("idle")
}

// sendState sends a state, unless it was the last one sent.
func (s *sema) sendState(state string) error {
	if err := s.sendPending(); err != nil || s.lastState == state {
		return err
	}
	s.lastState = state
	return s.send("state:update", jsonObject{"state", state})
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
	s.forgetTask(r.Task)
	return s.send("task:agent:end", jsonObject{"taskId", r.Task, "status", status, "content", content})
}

func (s *sema) mainTask(r event.Record) error {
	switch e := r.Event.(type) {
	case event.TaskStarted:
		s.taskRunning, s.hadPartial, s.interrupted = true, false, false
		return s.sendState("processing")
	case event.TaskFailed:
		kind, code := cmp.Or(semaErrorTypes[e.Code], "api_error"), e.Code
		if code == "" {
			kind, code = "fatal_error", "task_failed"
		}
		if err := s.send("session:error", jsonObject{"type", kind, "error",
			jsonObject{"code", code, "message", e.Reason}}); err != nil {
			return err
		}
	case event.TaskCompleted, event.TaskCanceled:
	default:
		return nil
	}
	s.taskRunning = false
	s.text.reset()
	s.thought.reset()
	s.forgetTask(r.Task)
	return s.sendIdle()
}

// sendInterruption sends the usage so far after it, unless the partial reply does.
func (s *sema) sendInterruption(r event.Record, e event.Interrupted) error {
	if err := s.send("session:interrupted", jsonObject{"agentId", s.agentID(r), "content", e.Text}); err != nil {
		return err
	}
	if !s.main(r) {
		return nil
	}
	s.interrupted = true
	if s.hadPartial {
		return nil
	}
	return s.sendUsage()
}

// semaErrorTypes maps failures to their own types; every other failure of the provider is an api_error.
var semaErrorTypes = map[string]string{
	"context_length_exceeded": "context_length_exceeded",
	"model_not_found":         "model_error",
}

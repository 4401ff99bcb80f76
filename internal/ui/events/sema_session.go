package events

import "coder/internal/core/event"

type semaReady struct {
	Dir     string     `json:"workingDir"`
	Session string     `json:"sessionId"`
	Loaded  bool       `json:"historyLoaded"`
	Usage   semaTokens `json:"usage"`
	History []string   `json:"projectInputHistory"`
}

// rest tells that all is quiet, once the program and the main task both are. A
// task that waits for an answer counts as quiet when the program stops.
func (s *sema) rest() error {
	if s.busy || s.running && len(s.asked) == 0 {
		return nil
	}
	return s.tell("idle")
}

type semaState struct {
	State string `json:"state"`
}

// tell tells a state, unless it was the last one told.
func (s *sema) tell(state string) error {
	if err := s.release(); err != nil || s.state == state {
		return err
	}
	s.state = state
	return s.put("state:update", semaState{state})
}

type semaTaskStart struct {
	Task        string `json:"taskId"`
	Type        string `json:"subagent_type"`
	Description string `json:"description"`
	Prompt      string `json:"prompt"`
}

type semaTaskEnd struct {
	Task    string `json:"taskId"`
	Status  string `json:"status"`
	Content string `json:"content"`
}

func (s *sema) childTask(r event.Record) error {
	end := semaTaskEnd{Task: r.Task}
	switch e := r.Event.(type) {
	case event.TaskCompleted:
		end.Status, end.Content = "completed", e.Summary
	case event.TaskFailed:
		end.Status, end.Content = "failed", e.Reason
	case event.TaskCanceled:
		end.Status, end.Content = "interrupted", e.Reason
	default:
		return nil
	}
	s.forget(r.Task)
	return s.put("task:agent:end", end)
}

func (s *sema) mainTask(r event.Record) error {
	switch e := r.Event.(type) {
	case event.TaskStarted:
		s.running, s.half, s.stopped = true, false, false
		return s.tell("processing")
	case event.TaskFailed:
		failure := semaError{"api_error", semaErrorBody{e.Code, e.Reason}}
		switch kind, ok := semaTypes[e.Code]; {
		case e.Code == "":
			failure.Type, failure.Error.Code = "fatal_error", "task_failed"
		case ok:
			failure.Type = kind
		}
		if err := s.put("session:error", failure); err != nil {
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

type semaAgentText struct {
	Agent   string `json:"agentId"`
	Content string `json:"content"`
}

// interruption is followed by the usage so far, unless the half of a reply
// that had arrived tells it.
func (s *sema) interruption(r event.Record, e event.Interrupted) error {
	if err := s.put("session:interrupted", semaAgentText{s.agent(r), e.Text}); err != nil {
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

type semaError struct {
	Type  string        `json:"type"`
	Error semaErrorBody `json:"error"`
}

type semaErrorBody struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// semaTypes are the failures that have a type of their own; every other
// failure of the provider is an api_error.
var semaTypes = map[string]string{
	"context_length_exceeded": "context_length_exceeded",
	"model_not_found":         "model_error",
}

type semaTodo struct {
	Content    string           `json:"content"`
	Status     event.TodoStatus `json:"status"`
	ActiveForm string           `json:"activeForm"`
}

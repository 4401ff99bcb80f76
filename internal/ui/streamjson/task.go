package streamjson

import (
	"coder/internal/core/event"
)

// taskLine reports a subagent's task to a driving program, which can stop it by its id.
type taskLine struct {
	Type    string  `json:"type"`
	Subtype string  `json:"subtype"`
	Task    string  `json:"task_id"`
	Call    *string `json:"tool_use_id,omitempty"`
	Session string  `json:"session_id"`
	UUID    string  `json:"uuid"`
	// at its start
	About  string `json:"description,omitempty"`
	Kind   string `json:"task_type,omitempty"`
	Agent  string `json:"subagent_type,omitempty"`
	Prompt string `json:"prompt,omitempty"`
	// at its end: completed, failed or stopped
	Status  string  `json:"status,omitempty"`
	Output  *string `json:"output_file,omitempty"` // always null
	Summary *string `json:"summary,omitempty"`
}

// began reports the start of a subtask.
func (r *Renderer) began(rec event.Record, e event.TaskCreated) error {
	if r.o.Driven == nil || e.ParentID == "" {
		return nil
	}
	r.handed[rec.Task] = true
	return r.put(taskLine{
		Type: "system", Subtype: "task_started", Task: rec.Task, Call: r.origin.of(rec.Task), Session: r.o.Session, UUID: r.numbered(rec),
		About: e.Title, Kind: "local_agent", Agent: e.AgentID, Prompt: e.Intent,
	})
}

// ended reports the end of a subtask.
func (r *Renderer) ended(rec event.Record, status, summary string) error {
	if !r.handed[rec.Task] {
		return nil
	}
	delete(r.handed, rec.Task)
	none := ""
	return r.put(taskLine{
		Type: "system", Subtype: "task_notification", Task: rec.Task, Call: r.origin.of(rec.Task), Session: r.o.Session, UUID: r.numbered(rec),
		Status: status, Output: &none, Summary: &summary,
	})
}

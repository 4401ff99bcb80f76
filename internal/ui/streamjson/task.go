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
	Description string `json:"description,omitempty"`
	Kind        string `json:"task_type,omitempty"`
	Agent       string `json:"subagent_type,omitempty"`
	Prompt      string `json:"prompt,omitempty"`
	// at its end: completed, failed or stopped
	Status  string  `json:"status,omitempty"`
	Output  *string `json:"output_file,omitempty"` // always null
	Summary *string `json:"summary,omitempty"`
}

// sendTaskStart reports the start of a subtask.
func (r *Renderer) sendTaskStart(rec event.Record, e event.TaskCreated) error {
	if r.options.Driver == nil || e.ParentID == "" {
		return nil
	}
	r.knownTasks[rec.Task] = true
	return r.writeFitted(taskLine{
		Type: "system", Subtype: "task_started", Task: rec.Task, Call: r.origins.callOf(rec.Task), Session: r.options.Session,
		UUID:        r.recordUUID(rec),
		Description: e.Title, Kind: "local_agent", Agent: e.AgentID, Prompt: e.Intent,
	})
}

// sendTaskEnd reports the end of a subtask.
func (r *Renderer) sendTaskEnd(rec event.Record, status, summary string) error {
	if !r.knownTasks[rec.Task] {
		return nil
	}
	delete(r.knownTasks, rec.Task)
	none := ""
	return r.writeFitted(taskLine{
		Type: "system", Subtype: "task_notification", Task: rec.Task, Call: r.origins.callOf(rec.Task),
		Session: r.options.Session, UUID: r.recordUUID(rec),
		Status: status, Output: &none, Summary: &summary,
	})
}

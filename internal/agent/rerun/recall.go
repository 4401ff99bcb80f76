package rerun

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/secret"
	"coder/internal/core/uip"
	"coder/internal/tool"
	"coder/internal/tool/bash"
)

// Tools of other programs: how their names begin, by which a message gets what it names of
// theirs, which runs commands on events, and those of language servers, which answer when they are ready.
const (
	mcpToolPrefix = "mcp__"
	lspToolPrefix = "lsp_"
	resourceTool  = "mcp_resource"
	hookTool      = "hook"
)

// IsMCPTool reports whether a tool is one of another program.
func IsMCPTool(name string) bool {
	return strings.HasPrefix(name, mcpToolPrefix) || name == resourceTool
}

// isExternalCall reports whether a call reached beyond this machine's confined
// commands and files: it is not made again, and its result is on record.
func isExternalCall(e event.ToolCallRequested) bool {
	if NeedsKeys(e) || e.Tool == resourceTool || e.Tool == hookTool || strings.HasPrefix(e.Tool, lspToolPrefix) {
		return true
	}
	if _, unconfined := bash.Asks(e.Input); unconfined {
		return true
	}
	return slices.ContainsFunc(e.Effects, func(f event.Effect) bool {
		return f.Kind == event.EffectNet || f.Kind == event.EffectUnknown
	})
}

// NeedsKeys reports whether a call cannot be made again because the keys that it was made
// with are not on record. What it notes down has none.
func NeedsKeys(e event.ToolCallRequested) bool {
	return secret.HasMask(e.Input) && !event.AreHarmless(e.Effects)
}

// wasInterrupted reports whether the person interrupted while a call ran.
func wasInterrupted(e event.ToolCallCompleted) bool {
	var out struct {
		Cancelled bool `json:"cancelled"`
	}
	return json.Unmarshal(e.Output, &out) == nil && out.Cancelled
}

// RecordedResult is what came of a call that is not made again. The error is for one that
// did not come to its end.
func (f *Replayer) RecordedResult(ctx context.Context, callID string) (res tool.Result, known bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.requested[callID]
	asked, found := c.Event.(event.ToolCallRequested)
	r, done := f.recording.findResult(c)
	completed := r.Event != nil && r.Actor != event.ActorRecovery
	switch {
	case !found:
		return res, true, errDiverged
	case !completed && f.hasSubtaskRecords(callID): // what was done for it is on record
		return res, false, nil
	case !completed:
		return res, true, f.waitCutOff(ctx, c)
	case wasInterrupted(done):
		f.cancel()
		err := f.waitForEnd(ctx)
		return tool.Result{Value: done.Output}, true, errors.Join(f.workCopy.ApplyCall(context.WithoutCancel(ctx),
			done.Changes), err)
	case !isExternalCall(asked):
		return res, false, nil
	}
	res.Value, res.Failed, res.SeenFiles = json.RawMessage(f.localizePaths(string(done.Output))), done.IsError,
		make(map[string]string)
	for _, s := range done.SeenFiles {
		res.SeenFiles[s.Path] = s.Hash
	}
	return res, true, f.workCopy.ApplyCall(ctx, done.Changes)
}

// hasSubtaskRecords reports whether there is more on record of a subtask that works for a
// call, before the process under way ends.
func (f *Replayer) hasSubtaskRecords(callID string) bool {
	for stream := callID; len(f.recording.streams[stream]) > 0; stream += "+" {
		if len(f.pending[stream]) > 0 {
			return true
		}
	}
	return false
}

// waitCutOff waits with a call that the end of the process cut off. If the record goes on
// in its stream as if the call had come to its end, that is a difference.
func (f *Replayer) waitCutOff(ctx context.Context, c streamRecord) error {
	goesOn := slices.ContainsFunc(f.pending[c.stream], func(r event.Record) bool {
		switch r.Event.(type) {
		case event.ToolCallRequested, event.ToolCallCompleted, event.InteractionRequested, event.InteractionResponded:
			return false // of a call beside this one
		}
		return true
	})
	if !goesOn && f.endsEarly {
		return f.waitForEnd(ctx)
	}
	return f.diverge(c.stream, event.Record{Event: event.ToolCallCompleted{Tool: recordKey(c.Event).about,
		OutcomeUnknown: true}})
}

// upcomingRequest is the first request that is still to come of a call with an id, or else of a tool.
func (f *Replayer) upcomingRequest(id, name string) (first event.ToolCallRequested, ok bool) {
	for _, list := range f.pending {
		for _, e := range eventsOf[event.ToolCallRequested](list) {
			if e.CallID == id {
				return e, true
			}
			if e.Tool == name && !ok {
				first, ok = e, true
			}
		}
	}
	return first, ok
}

// PlannedCall is the request on record of a call that is being prepared.
func (f *Replayer) PlannedCall(ctx context.Context, name string) (event.ToolCallRequested, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.upcomingRequest(tool.CallID(ctx), name)
}

// WasAllowed reports whether a call that would be asked about now was let pass
// unasked: by a flag of that run, or because its tool, which is not there to be
// judged, was always allowed. Risky says that it may not be let pass for good.
func (f *Replayer) WasAllowed(id, name string, risky bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	e, ok := f.upcomingRequest(id, name)
	if !ok || e.Verdict != event.VerdictAllowed || e.DecidedBy != event.ActorPolicy {
		return false
	}
	switch e.AutoAllowed {
	case event.AllowanceRisks:
		return true
	case event.AllowanceWaivable:
		return !risky
	}
	// an older record has reasons for what was let pass
	return len(e.Reasons) > 0 || strings.HasPrefix(e.Tool, mcpToolPrefix)
}

// Ask answers a question as it was answered.
func (f *Replayer) Ask(ctx context.Context, q uip.Request) (uip.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, _ := f.nextRecord(f.streamNames[q.TaskID])
	a, answered := r.Event.(event.InteractionResponded)
	if !answered {
		f.cancel() // it was withdrawn, or the process ended
		return uip.Response{}, f.waitForEnd(ctx)
	}
	answer := a.Response
	asked, _ := f.requested[q.ID].Event.(event.InteractionRequested)
	answer.ID, answer.TaskID = q.ID, q.TaskID
	answer.Parts = slices.Clone(answer.Parts)
	for i, part := range answer.Parts {
		n := slices.IndexFunc(asked.Parts, func(p uip.Request) bool { return p.ID == part.ID })
		if n >= 0 && n < len(q.Parts) {
			answer.Parts[i].ID, answer.Parts[i].TaskID = q.Parts[n].ID, q.TaskID
		}
	}
	if answer.Args != nil {
		answer.Args = json.RawMessage(f.localizePaths(string(answer.Args)))
	}
	return answer, nil
}

// firstUserMessage reports whether the first of some records is a message that the person wrote. That
// they interrupted the turn is told just before its end.
func firstUserMessage(list []event.Record) (chat.Message, bool) {
	if len(list) == 0 {
		return chat.Message{}, false
	}
	m, ok := list[0].Event.(event.MessageAdded)
	if len(list) > 1 {
		if _, canceled := list[1].Event.(event.TaskCanceled); canceled && list[1].Actor == event.ActorUser {
			return chat.Message{}, false
		}
	}
	return m.Message, ok && list[0].Actor == event.ActorUser && m.Message.Role == chat.User
}

// steeringTexts is what the person said in the middle of a turn.
func (f *Replayer) steeringTexts() []chat.UserText {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m, ok := firstUserMessage(f.pending[main]); ok {
		return []chat.UserText{chat.NewUserText(chat.OriginTyped, f.localizePaths(m.Text()))}
	}
	return nil
}

// EndedCommands is what the model was told of commands in the background that had ended.
func (f *Replayer) EndedCommands() (text string, names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, _ := f.nextRecord(main)
	m, ok := r.Event.(event.MessageAdded)
	if !ok || len(m.ReminderNames) == 0 || !strings.HasPrefix(m.ReminderNames[0], event.JobReminderPrefix) {
		return "", nil
	}
	text = strings.TrimSuffix(strings.TrimPrefix(m.Message.Text(), "<reminder>\n"), "\n</reminder>")
	return f.localizePaths(text), m.ReminderNames
}

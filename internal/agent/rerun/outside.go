package rerun

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"

	"coder/internal/agent/compact"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/paths"
	"coder/internal/core/secret"
	"coder/internal/core/uip"
	"coder/internal/model/provider"
	"coder/internal/tool"
	"coder/internal/tool/bash"
)

// Stream returns the recorded reply at this place.
func (f *Replayer) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		deltas, err := []provider.Delta(nil), ctx.Err()
		if err == nil {
			deltas, err = f.nextReply(ctx, req)
		}
		for _, d := range deltas {
			if !yield(d, nil) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

var errAsRecorded = errors.New("as recorded")

func (f *Replayer) nextReply(ctx context.Context, req provider.Request) ([]provider.Delta, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	stream := f.callStream(tool.CallID(ctx))
	list := f.pending[stream]
	if len(list) == 0 && f.endsEarly { // the process ended before the reply arrived
		return nil, f.waitForEnd(ctx)
	}
	list = append(slices.Clip(list), event.Record{}, event.Record{})
	end, then := list[0], list[1]
	said, replied := event.AsReply(end.Event)
	if said.Interrupted {
		end = then
	}
	summarises := req.System == compact.SummarySystem
	switch e := list[0].Event.(type) {
	case event.ContextReplaced:
		switch summed := len(e.Messages) > 0 && compact.IsSummary(e.Messages[0]); {
		case summarises && summed:
			text := f.localizePaths(compact.SummaryText(e.Messages[0]))
			return []provider.Delta{provider.TextDelta(text), provider.Done{Stop: provider.StopEnd}}, nil
		case !summarises: // the provider rejected the request as too long
			f.window = cmp.Or(e.Window, f.window)
			return nil, &provider.Error{Kind: provider.ErrContextTooLong, Status: 400, Window: e.Window, Err: errAsRecorded}
		}
	case event.LocalAdded: // a failed /compact
		if summarises && e.Failed {
			return nil, &provider.Error{Err: errAsRecorded}
		}
	case event.MessageAdded:
		if _, canceled := then.Event.(event.TaskCanceled); canceled && then.Actor == event.ActorUser && !replied {
			end = then // the record of the interruption comes before the end
		}
	}
	_, canceled := end.Event.(event.TaskCanceled)
	failure := providerFailure(end.Event)
	switch {
	case replied && summarises: // a difference
	case replied && !said.Interrupted:
		done := provider.Done{Stop: provider.Stop(said.StopReason), Usage: said.Usage, Model: said.Model, Sent: said.Request}
		return append(f.replyDeltas(said), done), nil
	case failure != nil:
		return f.replyDeltas(said), failure
	case canceled, replied:
		f.cancel()
		return f.replyDeltas(said), ctx.Err()
	}
	return nil, f.diverge(stream, event.Record{Event: event.MessageAdded{Message: chat.TextMessage(chat.Assistant, "")}})
}

// waitForEnd waits for the end of the process, or of the turn.
func (f *Replayer) waitForEnd(ctx context.Context) error {
	f.mu.Unlock()
	defer f.mu.Lock()
	<-ctx.Done()
	return ctx.Err()
}

// callStream returns the stream of the subtask that a call started, or the session's stream for no call.
func (f *Replayer) callStream(callID string) string {
	stream := callID
	for next := stream + "+"; callID != "" && f.streamNames["\x00"+next] != ""; next += "+" {
		stream = next
	}
	return stream
}

// localizePaths returns a recorded text with the rerun's paths.
func (f *Replayer) localizePaths(text string) string {
	return paths.Map{f.recording.Root: f.workCopy.Dir()}.Text(text)
}

// replyDeltas returns a reply's parts as they arrive, without the end.
func (f *Replayer) replyDeltas(e event.MessageAdded) (list []provider.Delta) {
	calls := 0
	if e.Window > 0 {
		f.window = e.Window
		list = append(list, provider.Window(e.Window))
	}
	for _, p := range e.Message.Parts {
		switch p := p.(type) {
		case chat.Reasoning:
			list = append(list, provider.ReasoningDelta{Text: p.Text, Field: p.Field, Details: p.Details})
		case chat.Text:
			list = append(list, provider.TextDelta(f.localizePaths(string(p))))
		case chat.ToolCall:
			args := f.localizePaths(cmp.Or(p.Broken, string(p.Args)))
			list = append(list, provider.CallDelta{Index: calls, ID: p.ID, Name: p.Name, Args: args, Extra: p.Extra})
			calls++
		}
	}
	return list
}

// providerFailure returns the provider's failure that ended a task, or nil. Older records
// have only the reason.
func providerFailure(end event.Event) error {
	e, _ := end.(event.TaskFailed)
	if e.ErrorText = cmp.Or(e.ErrorText, e.Reason); e.ErrorText == "" || e.Steps > 0 {
		return nil
	}
	return &provider.Error{Err: recordedError(e)}
}

// recordedError is a provider's failure of the recorded kind.
type recordedError event.TaskFailed

func (e recordedError) Error() string        { return e.ErrorText }
func (e recordedError) Is(target error) bool { return provider.Code(target) == e.Code && e.Code != "" }

// Tools of other programs: the prefix of MCP tools, the tool that reads MCP resources, the tool of hooks,
// and the tools of language servers.
const (
	mcpToolPrefix = "mcp__"
	lspToolPrefix = "lsp_"
	resourceTool  = "mcp_resource"
	hookTool      = "hook"
)

// IsMCPTool reports whether a tool belongs to an MCP server.
func IsMCPTool(name string) bool {
	return strings.HasPrefix(name, mcpToolPrefix) || name == resourceTool
}

// isExternalCall reports whether a call used more than files and confined commands. A rerun does not
// repeat such a call and uses its recorded result.
func isExternalCall(e event.ToolCallRequested) bool {
	_, unconfined := bash.Asks(e.Input)
	reaches := func(f event.Effect) bool { return f.Kind == event.EffectNet || f.Kind == event.EffectUnknown }
	return NeedsKeys(e) || e.Tool == resourceTool || e.Tool == hookTool || strings.HasPrefix(e.Tool, lspToolPrefix) ||
		unconfined || slices.ContainsFunc(e.Effects, reaches)
}

// NeedsKeys reports whether a call cannot be repeated because the keys in its arguments are not on record.
func NeedsKeys(e event.ToolCallRequested) bool {
	return secret.HasMask(e.Input) && !event.AreHarmless(e.Effects)
}

// wasInterrupted reports whether the user interrupted while a call ran.
func wasInterrupted(e event.ToolCallCompleted) bool {
	var out struct {
		Cancelled bool `json:"cancelled"`
	}
	return json.Unmarshal(e.Output, &out) == nil && out.Cancelled
}

// RecordedResult returns the recorded result of a call that the rerun does not repeat. It returns an error
// for a call without an end on record.
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
	case !completed && f.hasSubtaskRecords(callID): // its subtask is on record
		return res, false, nil
	case !completed:
		return res, true, f.waitCutOff(ctx, c)
	case wasInterrupted(done):
		f.cancel()
		err := f.waitForEnd(ctx)
		return tool.Result{Value: done.Output}, true,
			errors.Join(f.workCopy.ApplyCall(context.WithoutCancel(ctx), done.Changes), err)
	case !isExternalCall(asked):
		return res, false, nil
	}
	res = tool.Result{Value: json.RawMessage(f.localizePaths(string(done.Output))), Failed: done.IsError,
		SeenFiles: make(map[string]string)}
	for _, s := range done.SeenFiles {
		res.SeenFiles[s.Path] = s.Hash
	}
	return res, true, f.workCopy.ApplyCall(ctx, done.Changes)
}

// hasSubtaskRecords reports whether the current process must still produce records of a call's subtask.
func (f *Replayer) hasSubtaskRecords(callID string) bool {
	for stream, list := range f.pending {
		if len(list) > 0 && stream != main && strings.TrimRight(stream, "+") == callID {
			return true
		}
	}
	return false
}

// waitCutOff blocks a call that the end of the process cut off. If the call's stream continues after the
// call on record, waitCutOff reports a difference.
func (f *Replayer) waitCutOff(ctx context.Context, c streamRecord) error {
	goesOn := slices.ContainsFunc(f.pending[c.stream], func(r event.Record) bool {
		switch r.Event.(type) {
		case event.ToolCallRequested, event.ToolCallCompleted, event.InteractionRequested, event.InteractionResponded:
			return false // of a parallel call
		}
		return true
	})
	if !goesOn && f.endsEarly {
		return f.waitForEnd(ctx)
	}
	unknown := event.ToolCallCompleted{Tool: recordKey(c.Event).about, OutcomeUnknown: true}
	return f.diverge(c.stream, event.Record{Event: unknown})
}

// upcomingRequest returns the first pending request of a call with an id, or else of a tool.
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

// PlannedCall returns the recorded request of a call that is being prepared.
func (f *Replayer) PlannedCall(ctx context.Context, name string) (event.ToolCallRequested, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.upcomingRequest(tool.CallID(ctx), name)
}

// WasAllowed reports whether a call that needs approval now ran without approval then: a flag of that
// run allowed it, or an always rule for a tool that is not available now. No always rule allows a risky call.
func (f *Replayer) WasAllowed(id, name string, risky bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	e, ok := f.upcomingRequest(id, name)
	switch {
	case !ok || e.Verdict != event.VerdictAllowed || e.DecidedBy != event.ActorPolicy:
		return false
	case e.AutoAllowed == event.AllowanceWaivable:
		return !risky
	}
	// an older record has reasons for allowed calls
	return e.AutoAllowed != "" || len(e.Reasons) > 0 || strings.HasPrefix(e.Tool, mcpToolPrefix)
}

// Ask returns the recorded answer to a question.
func (f *Replayer) Ask(ctx context.Context, q uip.Request) (uip.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, _ := f.nextRecord(f.streamNames[q.TaskID])
	a, answered := r.Event.(event.InteractionResponded)
	if !answered {
		f.cancel() // the question was withdrawn, or the process ended
		return uip.Response{}, f.waitForEnd(ctx)
	}
	answer := a.Response
	asked, _ := f.requested[q.ID].Event.(event.InteractionRequested)
	answer.ID, answer.TaskID, answer.Parts = q.ID, q.TaskID, slices.Clone(answer.Parts)
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

// firstUserMessage reports whether the first of some records is a message of the user. The record of an
// interruption comes just before the turn's end.
func firstUserMessage(list []event.Record) (m chat.Message, ok bool) {
	if len(list) == 0 {
		return m, false
	}
	e, ok := list[0].Event.(event.MessageAdded)
	if len(list) > 1 && list[1].Actor == event.ActorUser {
		_, canceled := list[1].Event.(event.TaskCanceled)
		ok = ok && !canceled
	}
	return e.Message, ok && list[0].Actor == event.ActorUser && e.Message.Role == chat.User
}

// steeringTexts returns what the user sent during a turn.
func (f *Replayer) steeringTexts() []chat.UserText {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m, ok := firstUserMessage(f.pending[main]); ok {
		return []chat.UserText{chat.NewUserText(chat.OriginTyped, f.localizePaths(m.Text()))}
	}
	return nil
}

// EndedCommands returns the recorded reports to the model about ended background commands.
func (f *Replayer) EndedCommands() (text string, names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, _ := f.nextRecord(main)
	m, _ := r.Event.(event.MessageAdded)
	if len(m.ReminderNames) == 0 || !strings.HasPrefix(m.ReminderNames[0], event.JobReminderPrefix) {
		return "", nil
	}
	text = strings.TrimSuffix(strings.TrimPrefix(m.Message.Text(), "<reminder>\n"), "\n</reminder>")
	return f.localizePaths(text), m.ReminderNames
}

// CommandText returns the text that another program produced for a command of the turn.
func (f *Replayer) CommandText(command string) (text string, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	commands := make(map[string]string) // by the task that they started
	for _, e := range eventsOf[event.TaskCreated](f.recording.streams[main]) {
		commands[e.TaskID], _, _ = strings.Cut(e.Intent, " ")
	}
	for _, r := range f.pending[main] {
		m, ok := firstUserMessage([]event.Record{r})
		if ok && strings.EqualFold(commands[r.Task], "/"+command) {
			return f.localizePaths(m.Text()), true
		}
	}
	return "", false
}

package toolrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/clip"
	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/core/message"
	"coder/internal/tool"
)

// maxResultBytes limits what one result may add to the conversation, whatever its tool's own limit.
const maxResultBytes = 256 << 10

// fileChanges returns a call's changes to files, and whether they are known.
func (r *run) fileChanges(ctx context.Context, a *admission) (changes []event.FileChange, known bool) {
	if r.Backup == nil || !a.hasRun || a.isReadOnly() || len(a.saved.Effects) == 0 {
		return nil, false
	}
	changes, err := r.Backup.ChangesSince(context.WithoutCancel(ctx), a.saved)
	if err != nil {
		r.notice(ctx, event.LevelWarn, fmt.Sprintf("could not determine what %s changed: %v", a.tool, err))
	}
	return changes, err == nil
}

// callOutcome is the outcome of a call.
type callOutcome struct {
	text           json.RawMessage // for the model
	failed, denied bool
}

// determineOutcome determines a call's outcome, and stops the turn if its error requires that.
func (r *run) determineOutcome(a *admission, res tool.Result) callOutcome {
	f := callOutcome{text: r.maskedResult(res), failed: res.Failed}
	var denied *DeniedError
	f.denied = errors.As(a.err, &denied)
	if isContextError(a.err) && !a.hasRun {
		a.err = errNotStarted
	}
	switch {
	case a.err != nil && isContextError(a.err) && res.Value != nil:
		f.text, f.failed = partialResult(f.text), true
	case a.err != nil:
		f.text, f.failed = r.Concealer.JSON(failureResult(a.err)), true
	}
	switch {
	case errors.Is(a.err, ErrDeniedAndStopped):
		r.cancel(ErrDeniedAndStopped)
	case tool.IsFatal(a.err):
		r.cancel(a.err)
	}
	f.text = a.withNote(f.text)
	return f
}

// message returns the message with a call's result for the model.
func (f callOutcome) message(c chat.ToolCall) chat.ToolResult {
	return chat.ToolResult{CallID: c.ID, Name: c.Name, Text: string(f.text), Failed: f.failed}
}

// showOutcome shows a call's outcome.
func (r *run) showOutcome(ctx context.Context, a *admission, done execution, f callOutcome) {
	err := r.emitEvent(ctx, event.ToolFinished{
		CallID: a.call.ID, Tool: a.tool, Title: a.plan().Title, Summary: resultSummary(done.result, a.err),
		Content: done.result.Show, Result: f.message(a.call), Failed: f.failed, Denied: f.denied, Duration: done.took,
	})
	if err != nil {
		r.cancel(err)
	}
}

// completeCall makes a call's outcome its one result and completes its record, on a context
// that cannot be cancelled. It shows the outcome, unless it was shown before.
func (r *run) completeCall(ctx context.Context, i int, a *admission, done execution, shown bool) Outcome {
	res := done.result
	f := r.determineOutcome(a, res)
	for _, fact := range res.Events {
		if _, spent := fact.(event.Spent); !spent && a.err != nil {
			continue
		}
		if err := r.emitEvent(ctx, fact); err != nil {
			r.cancel(err)
		}
	}
	changes, known := r.fileChanges(ctx, a)
	err := r.emitEvent(ctx, event.ToolCallCompleted{
		CallID: a.call.ID, Tool: a.tool, Author: r.Actor, TaskID: r.Task, Output: f.text,
		IsError: f.failed, DurationMs: done.took.Round(time.Millisecond).Milliseconds(), Timestamp: r.Now().UnixMilli(),
		Summary: resultSummary(res, a.err), Changes: changes, SeenFiles: seenFileStates(res.SeenFiles),
	})
	if err != nil {
		r.cancel(err)
	}
	if !shown {
		r.showOutcome(ctx, a, done, f)
	}
	result := f.message(a.call)
	if a.hasRun && r.Hooks != nil {
		result.Text = string(r.runHooksAfter(ctx, a, f.text, done.took))
	}
	out := Outcome{Index: i, Tool: a.tool, Result: result, Denied: f.denied}
	if a.err == nil {
		out.Images, out.Rebuild = res.Images, res.Rebuild
	}
	if f.denied && a.decidedBy == event.ActorUser {
		out.DeniedEffects = a.plan().Effects
	}
	if !a.hasRun {
		return out
	}
	for _, e := range a.plan().Effects {
		if e.Kind != tool.Write || !known || len(changes) > 0 {
			out.Effects = append(out.Effects, e)
		}
	}
	out.Effects = append(out.Effects, res.Effects...)
	return out
}

// seenFileStates converts the file contents that a call showed the model to records.
func seenFileStates(saw map[string]string) (list []event.FileState) {
	for _, path := range slices.Sorted(maps.Keys(saw)) {
		list = append(list, event.FileState{Path: path, Hash: saw[path]})
	}
	return list
}

// maskedResult returns a result as a JSON object, with keys masked.
func (r *run) maskedResult(res tool.Result) json.RawMessage {
	text, err := jsonx.Marshal(res.Value)
	switch {
	case err != nil:
		return failureResult(message.Errorf("result cannot be shown: %w", err))
	case len(text) > 0 && text[0] != '{':
		text, _ = jsonx.Marshal(map[string]any{"ok": true, "text": res.Value})
	}
	text = r.Concealer.JSON(text)
	if len(text) <= maxResultBytes {
		return text
	}
	text, _ = jsonx.Marshal(map[string]any{"ok": !res.Failed, "truncated": true,
		"text": clip.Truncate(string(text), maxResultBytes/2)})
	return text
}

// partialResult returns the partial result of a call that the user interrupted.
func partialResult(text json.RawMessage) json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal(text, &object) != nil {
		return failureResult(context.Canceled)
	}
	object["ok"], object["cancelled"], object["error"] = jsonx.MustMarshal(false), jsonx.MustMarshal(true),
		jsonx.MustMarshal(stoppedResult)
	return jsonx.MustMarshal(object)
}

// failureResult returns err as a JSON object for the model.
func failureResult(err error) json.RawMessage {
	w := struct {
		OK        bool   `json:"ok"`
		Error     string `json:"error"`
		Denied    bool   `json:"denied,omitempty"`
		Cancelled bool   `json:"cancelled,omitempty"`
	}{Error: err.Error()}
	var denied *DeniedError
	switch {
	case errors.As(err, &denied):
		w.Denied, w.Error = true, denied.Error()
	case isContextError(err):
		w.Cancelled, w.Error = true, stoppedResult
	case errors.Is(err, errNotStarted):
		w.Cancelled = true
	}
	return jsonx.MustMarshal(w)
}

// stoppedResult is the result for the model of a call that an interruption stopped.
const stoppedResult = "cancelled: the user interrupted while this call was running; it may have done part of its work"

var errNotStarted = errors.New("cancelled: the user interrupted before this call began; it did nothing")

// CancelledResult is the result of a call that never began because the turn ended.
func CancelledResult(c chat.ToolCall) chat.ToolResult { return FailedResult(c, errNotStarted) }

// FailedResult returns the result of a call with an error.
func FailedResult(c chat.ToolCall, err error) chat.ToolResult {
	return chat.ToolResult{CallID: c.ID, Name: c.Name, Text: string(failureResult(err)), Failed: true}
}

func resultSummary(res tool.Result, err error) string {
	switch {
	case isContextError(err) || errors.Is(err, errNotStarted):
		return "cancelled"
	case err != nil:
		return err.Error()
	}
	return res.Summary
}

func isContextError(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

func (r *run) emitEvent(ctx context.Context, e event.Event) error {
	return r.Sink.Emit(context.WithoutCancel(ctx), event.Record{Task: r.Task, Actor: r.Actor, Event: e})
}

func (r *run) notice(ctx context.Context, l event.Level, text string) {
	if err := r.emitEvent(ctx, event.Notice{Level: l, Text: text}); err != nil {
		r.cancel(err)
	}
}

// liveOutput converts a running tool's output to events.
type liveOutput struct {
	ctx    context.Context
	run    *run
	callID string
}

func (l liveOutput) Write(p []byte) (int, error) {
	if err := l.run.emitEvent(l.ctx, event.ToolOutput{CallID: l.callID, Text: string(p)}); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Draw shows a line that is overwritten in place, or the last of lines that are not shown. It ignores errors.
func (l liveOutput) Draw(line string, lines int) {
	_ = l.run.emitEvent(l.ctx, event.ToolProgress{CallID: l.callID, Line: line, Lines: lines})
}

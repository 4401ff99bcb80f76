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
	"coder/internal/tool"
)

// resultLimit limits what one result may add to the conversation, whatever its tool's own limit.
const resultLimit = 256 << 10

// changes returns a call's changes to files, and whether they are known.
func (r *run) changes(ctx context.Context, a *admission) (changes []event.FileChange, known bool) {
	if r.Keeper == nil || !a.ran || a.readOnly() || len(a.kept.Effects) == 0 {
		return nil, false
	}
	changes, err := r.Keeper.Changes(context.WithoutCancel(ctx), a.kept)
	if err != nil {
		r.notice(ctx, event.Warn, fmt.Sprintf("could not determine what %s changed: %v", a.tool, err))
	}
	return changes, err == nil
}

// fate is the outcome of a call.
type fate struct {
	text           json.RawMessage // for the model
	failed, denied bool
}

// fate determines a call's outcome, and stops the turn if its error requires that.
func (r *run) fate(a *admission, res tool.Result) fate {
	f := fate{text: r.value(res), failed: res.Failed}
	var denied *Denied
	f.denied = errors.As(a.err, &denied)
	if isContext(a.err) && !a.ran {
		a.err = errNotBegun
	}
	switch {
	case a.err != nil && isContext(a.err) && res.Value != nil:
		f.text, f.failed = stopped(f.text), true
	case a.err != nil:
		f.text, f.failed = r.Conceals.JSON(failure(a.err)), true
	}
	switch {
	case errors.Is(a.err, ErrRefused):
		r.stop(ErrRefused)
	case tool.IsFatal(a.err):
		r.stop(a.err)
	}
	f.text = a.withNote(f.text)
	return f
}

// result returns the message with a call's result for the model.
func (f fate) result(c chat.ToolCall) chat.ToolResult {
	return chat.ToolResult{CallID: c.ID, Name: c.Name, Text: string(f.text), Failed: f.failed}
}

// tell shows a call's outcome.
func (r *run) tell(ctx context.Context, a *admission, done execution, f fate) {
	err := r.emit(ctx, event.ToolFinished{
		CallID: a.call.ID, Tool: a.tool, Title: a.plan().Title, Summary: summary(done.result, a.err),
		Show: done.result.Show, Result: f.result(a.call), Failed: f.failed, Denied: f.denied, Took: done.took,
	})
	if err != nil {
		r.stop(err)
	}
}

// close makes a call's outcome its one result and completes its record, on a context
// that cannot be cancelled. It shows the outcome, unless it was shown before.
func (r *run) close(ctx context.Context, i int, a *admission, done execution, shown bool) Outcome {
	res := done.result
	f := r.fate(a, res)
	for _, fact := range res.Facts {
		if _, spent := fact.(event.Spent); !spent && a.err != nil {
			continue
		}
		if err := r.emit(ctx, fact); err != nil {
			r.stop(err)
		}
	}
	changes, known := r.changes(ctx, a)
	err := r.emit(ctx, event.ToolCallCompleted{
		CallID: a.call.ID, Tool: a.tool, Author: r.Actor, TaskID: r.Task, Output: f.text,
		IsError: f.failed, DurationMs: done.took.Round(time.Millisecond).Milliseconds(), Timestamp: r.Now().UnixMilli(), Summary: summary(res, a.err), Changes: changes, Saw: sights(res.Saw),
	})
	if err != nil {
		r.stop(err)
	}
	if !shown {
		r.tell(ctx, a, done, f)
	}
	result := f.result(a.call)
	if a.ran && r.Hooks != nil {
		result.Text = string(r.tellHooks(ctx, a, f.text, done.took))
	}
	out := Outcome{Index: i, Tool: a.tool, Result: result, Denied: f.denied}
	if a.err == nil {
		out.Images, out.Rebuild = res.Images, res.Rebuild
	}
	if f.denied && a.by == event.ActorUser {
		out.Refused = a.plan().Effects
	}
	if !a.ran {
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

// sights converts the file contents that a call showed the model to records.
func sights(saw map[string]string) (list []event.FileState) {
	for _, path := range slices.Sorted(maps.Keys(saw)) {
		list = append(list, event.FileState{Path: path, Hash: saw[path]})
	}
	return list
}

// value returns a result as a JSON object, with keys masked.
func (r *run) value(res tool.Result) json.RawMessage {
	text, err := jsonx.JSON(res.Value)
	switch {
	case err != nil:
		return failure(fmt.Errorf("result cannot be shown: %w", err))
	case len(text) > 0 && text[0] != '{':
		text, _ = jsonx.JSON(map[string]any{"ok": true, "text": res.Value})
	}
	text = r.Conceals.JSON(text)
	if len(text) <= resultLimit {
		return text
	}
	text, _ = jsonx.JSON(map[string]any{"ok": !res.Failed, "truncated": true, "text": clip.Text(string(text), resultLimit/2)})
	return text
}

// stopped returns the partial result of a call that the user interrupted.
func stopped(text json.RawMessage) json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal(text, &object) != nil {
		return failure(context.Canceled)
	}
	object["ok"], object["cancelled"], object["error"] = jsonx.Must(false), jsonx.Must(true), jsonx.Must(stoppedText)
	return jsonx.Must(object)
}

// failure returns err as a JSON object for the model.
func failure(err error) json.RawMessage {
	w := struct {
		OK        bool   `json:"ok"`
		Error     string `json:"error"`
		Denied    bool   `json:"denied,omitempty"`
		Cancelled bool   `json:"cancelled,omitempty"`
	}{Error: err.Error()}
	var denied *Denied
	switch {
	case errors.As(err, &denied):
		w.Denied, w.Error = true, denied.Error()
	case isContext(err):
		w.Cancelled, w.Error = true, stoppedText
	case errors.Is(err, errNotBegun):
		w.Cancelled = true
	}
	return jsonx.Must(w)
}

// stoppedText is the result for the model of a call that an interruption stopped.
const stoppedText = "cancelled: the user interrupted while this call was running; it may have done part of its work"

var errNotBegun = errors.New("cancelled: the user interrupted before this call began; it did nothing")

// Cancelled is the result of a call that never began because the turn ended.
func Cancelled(c chat.ToolCall) chat.ToolResult { return Failed(c, errNotBegun) }

// Failed returns the result of a call with an error.
func Failed(c chat.ToolCall, err error) chat.ToolResult {
	return chat.ToolResult{CallID: c.ID, Name: c.Name, Text: string(failure(err)), Failed: true}
}

func summary(res tool.Result, err error) string {
	switch {
	case isContext(err) || errors.Is(err, errNotBegun):
		return "cancelled"
	case err != nil:
		return err.Error()
	}
	return res.Summary
}

func isContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

func (r *run) emit(ctx context.Context, e event.Event) error {
	return r.Sink.Emit(context.WithoutCancel(ctx), event.Record{Task: r.Task, Actor: r.Actor, Event: e})
}

func (r *run) notice(ctx context.Context, l event.Level, text string) {
	if err := r.emit(ctx, event.Notice{Level: l, Text: text}); err != nil {
		r.stop(err)
	}
}

// live converts a running tool's output to events.
type live struct {
	ctx  context.Context
	run  *run
	call string
}

func (l live) Write(p []byte) (int, error) {
	if err := l.run.emit(l.ctx, event.ToolOutput{CallID: l.call, Text: string(p)}); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Draw shows a line that is overwritten in place, or the last of lines that are not shown. It ignores errors.
func (l live) Draw(line string, lines int) {
	_ = l.run.emit(l.ctx, event.ToolProgress{CallID: l.call, Line: line, Lines: lines})
}

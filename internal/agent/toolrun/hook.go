package toolrun

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"coder/internal/core/clip"
	"coder/internal/core/jsonx"
	"coder/internal/core/message"
	"coder/internal/tool"
)

// ErrStoppedByHook ends a turn because a hook said so.
var ErrStoppedByHook = errors.New("stopped by a hook")

// decidedByHook names hooks as a decider and as the source of reasons.
const decidedByHook = "hook"

func (n Note) String() string { return "a hook of " + n.Owner + " says: " + n.Text }

// runHooksBefore runs the hooks on a call, once. They may replace its arguments; the new ones
// are then judged, shown and run. It reports whether the call may be judged at all.
func (r *run) runHooksBefore(ctx context.Context, a *admission) (Ruling, bool) {
	if r.Hooks == nil {
		return Ruling{}, true
	}
	ruling, known := r.rulings[a.call.ID]
	if !known {
		var err error
		if ruling, err = r.Hooks.Before(ctx, r.Round, HookedCall{a.call.ID, a.tool, a.prepared.Args()}); err != nil {
			if ctx.Err() == nil {
				err = tool.Fatal(message.Errorf("run hooks: %w", err))
			}
			a.revoke(err)
			return Ruling{}, false
		}
		if r.rulings == nil {
			r.rulings = make(map[string]Ruling)
		}
		r.rulings[a.call.ID] = ruling
	}
	if ruling.StopReason != "" {
		r.cancel(message.Errorf("%w: %s", ErrStoppedByHook, ruling.StopReason))
		a.decidedBy = decidedByHook
		a.revoke(&DeniedError{"hook: " + ruling.StopReason})
		return ruling, false
	}
	if ruling.DenyReason != "" {
		a.decidedBy = decidedByHook
		a.revoke(&DeniedError{"hook: " + ruling.DenyReason})
		return ruling, false
	}
	if ruling.Input != nil {
		a.call.Args, a.call.Broken = ruling.Input, ""
		if off := r.prepare(ctx, a); off {
			a.revoke(&DeniedError{"hook: it changed the call to a tool that is switched off"})
		}
		a.note = "a hook of " + ruling.InputBy + " changed the arguments to " + clip.Truncate(string(ruling.Input), 500)
	}
	for _, n := range ruling.Notes {
		a.note = tool.JoinNotes(a.note, n.String())
	}
	return ruling, a.err == nil
}

// runHooksAfter runs the hooks after a call and returns the result for the model.
func (r *run) runHooksAfter(ctx context.Context, a *admission, text json.RawMessage,
	took time.Duration) json.RawMessage {
	ruling, err := r.Hooks.After(ctx, r.Round, HookedCall{a.call.ID, a.tool, a.prepared.Args()}, text, took)
	if err != nil {
		r.cancel(message.Errorf("run hooks: %w", err))
		return text
	}
	if ruling.StopReason != "" {
		r.cancel(message.Errorf("%w: %s", ErrStoppedByHook, ruling.StopReason))
	}
	if ruling.Output != nil {
		text = ruling.Output
		if text[0] != '{' {
			text = jsonx.MustMarshal(map[string]any{"ok": true, "text": text})
		}
	}
	var said []string
	if ruling.DenyReason != "" {
		said = append(said, "a hook says: "+ruling.DenyReason)
	}
	for _, n := range ruling.Notes {
		said = append(said, n.String())
	}
	return (&admission{note: strings.Join(said, "; ")}).withNote(text)
}

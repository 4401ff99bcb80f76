package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"coder/internal/agent/hooks"
	"coder/internal/agent/toolrun"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/core/uip"
)

// ErrPromptDenied reports a prompt that a hook denied.
var ErrPromptDenied = errors.New("a hook refused the prompt")

// endHooksTimeout limits hooks at the end of a session.
const endHooksTimeout = 5 * time.Second

// maxHookContinues limits how often hooks continue a turn in which the model makes no more calls.
const maxHookContinues = 3

func hookOrigin(st *turnState) hooks.Origin { return hooks.Origin{Task: st.task, Sink: st.sink} }

// callHooks returns the hooks around calls, or nil if there are none.
func (o *Orchestrator) callHooks() toolrun.Hooks {
	if !o.Hooks.Has(hooks.PreToolUse) && !o.Hooks.Has(hooks.PostToolUse) && !o.Hooks.Has(hooks.PostToolFailure) {
		return nil
	}
	return o.Hooks
}

// runPromptHooks runs the hooks before the user's prompt, and the session's start hooks before the
// first prompt, and returns what they add. The model never sees a prompt that a hook denies.
func (o *Orchestrator) runPromptHooks(ctx context.Context, st *turnState, words string) (notes []toolrun.Note,
	err error) {
	switch {
	case o.Hooks == nil:
		return nil, nil
	case o.Subtask != nil: // the prompt is the main agent's; no hook can deny it
		ruling, err := o.Hooks.Fire(ctx, hookOrigin(st), hooks.SubagentStart, []string{o.Subtask.Agent},
			map[string]any{"agent_id": o.Subtask.ID, "agent_type": o.Subtask.Agent})
		return ruling.Notes, err
	}
	if !o.prompted {
		o.prompted = true
		source := "startup"
		if len(o.Conversation.View()) > 0 {
			source = "resume"
		}
		ruling, err := o.Hooks.Fire(ctx, hookOrigin(st), hooks.SessionStart, []string{source},
			map[string]any{"source": source, "model": st.settings.Model})
		if err != nil {
			return nil, err
		}
		if ruling.DenyReason != "" { // only a prompt can be denied here, not the session
			err = o.warn(ctx, st, ruling.DenyReason)
		}
		if ruling.StopReason != "" {
			err = message.Errorf("%w: %s", toolrun.ErrStoppedByHook, ruling.StopReason)
		}
		if err != nil {
			return nil, err
		}
		notes = ruling.Notes
	}
	ruling, err := o.Hooks.Fire(ctx, hookOrigin(st), hooks.UserPromptSubmit, nil, map[string]any{"prompt": words})
	switch {
	case err != nil:
		return nil, err
	case ruling.StopReason != "":
		return nil, message.Errorf("%w: %s", toolrun.ErrStoppedByHook, ruling.StopReason)
	case ruling.DenyReason != "":
		return nil, message.Errorf("%w: %s", ErrPromptDenied, ruling.DenyReason)
	}
	return append(notes, ruling.Notes...), nil
}

// runStopHooks runs the hooks at the end of the model's work, and reports whether one continues the turn.
func (o *Orchestrator) runStopHooks(ctx context.Context, st *turnState) (again bool, err error) {
	e, names, fields := hooks.Stop, []string(nil), map[string]any{"stop_hook_active": st.hookContinued,
		"last_assistant_message": st.finalText}
	if o.Subtask != nil {
		e, names = hooks.SubagentStop, []string{o.Subtask.Agent}
		fields["agent_id"], fields["agent_type"] = o.Subtask.ID, o.Subtask.Agent
	}
	if !o.Hooks.Has(e) {
		return false, nil
	}
	ruling, err := o.Hooks.Fire(ctx, hookOrigin(st), e, names, fields)
	if err != nil || ruling.StopReason != "" || ruling.DenyReason == "" {
		return false, err
	}
	if st.hookContinues++; st.hookContinues > maxHookContinues {
		return false, o.warn(ctx, st,
			fmt.Sprintf("the turn ends: the hook %s continued it %d times in a row, and the model did nothing more",
				ruling.DeniedBy, maxHookContinues))
	}
	st.hookContinued = true
	return true, o.emit(ctx, st, ActorAgent, event.MessageAdded{Message: chat.TextMessage(chat.User,
		"[hook] "+ruling.DenyReason)})
}

// runCompactHooks asks the hooks whether a summary may replace the conversation.
func (o *Orchestrator) runCompactHooks(ctx context.Context, st *turnState, trigger, focus string) (refused string,
	err error) {
	if !o.Hooks.Has(hooks.PreCompact) {
		return "", nil
	}
	ruling, err := o.Hooks.Fire(ctx, hookOrigin(st), hooks.PreCompact, []string{trigger},
		map[string]any{"trigger": trigger, "custom_instructions": focus})
	if ruling.StopReason != "" && ruling.DenyReason == "" {
		return ruling.StopReason, err
	}
	return ruling.DenyReason, err
}

// interactor returns the turn's interactor. Hooks are notified of each question while it is open.
func (o *Orchestrator) interactor(st *turnState) uip.Interactor {
	p := o.NewInteractor(st.sink)
	if !o.Hooks.Has(hooks.Notification) {
		return p
	}
	return uip.InteractorFunc(func(ctx context.Context, q uip.Request) (uip.Response, error) {
		told, stop := context.WithCancel(ctx)
		var telling sync.WaitGroup
		defer telling.Wait()
		defer stop()
		telling.Go(func() {
			_, _ = o.Hooks.Fire(told, hookOrigin(st), hooks.Notification, []string{"permission_prompt"}, map[string]any{
				"message": q.Display.Title, "title": "coder", "notification_type": "permission_prompt",
			})
		})
		return p.Ask(ctx, q)
	})
}

// RunEndHooks runs the hooks at the end of a session with at least one
// prompt. They have little time and cannot change anything.
func (o *Orchestrator) RunEndHooks(out event.Sink) {
	if !o.prompted || !o.Hooks.Has(hooks.SessionEnd) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), endHooksTimeout)
	defer cancel()
	at := hooks.Origin{Sink: o.RecordingSink(event.SinkFunc(func(ctx context.Context, r event.Record) error {
		if n, ok := r.Event.(event.Notice); ok { // records are not shown any more
			o.Hooks.Warn(n.Text)
		}
		return out.Emit(ctx, r)
	}))}
	if _, err := o.Hooks.Fire(ctx, at, hooks.SessionEnd, []string{"other"},
		map[string]any{"reason": "other"}); errors.Is(err, context.DeadlineExceeded) {
		text := fmt.Sprintf("SessionEnd hooks were stopped after %g s", endHooksTimeout.Seconds())
		_ = at.Sink.Emit(context.WithoutCancel(ctx), event.Record{Actor: hooks.ActorHooks,
			Event: event.Notice{Level: event.LevelWarn, Text: text}})
	}
}

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
	"coder/internal/core/uip"
)

// ErrPromptRefused reports a prompt that a hook denied.
var ErrPromptRefused = errors.New("a hook refused the prompt")

// endTime limits hooks at the end of a session.
const endTime = 5 * time.Second

// maxSentOn limits how often hooks continue a turn in which the model makes no more calls.
const maxSentOn = 3

func scene(st *turnState) hooks.Scene { return hooks.Scene{Task: st.task, Sink: st.sink} }

// roundHooks returns the hooks around calls, or nil if there are none.
func (o *Orchestrator) roundHooks() toolrun.Hooks {
	if !o.Hooks.On(hooks.PreToolUse) && !o.Hooks.On(hooks.PostToolUse) && !o.Hooks.On(hooks.PostToolFailure) {
		return nil
	}
	return o.Hooks
}

// hookPrompt runs the hooks before the user's prompt, and the session's start hooks before the
// first prompt, and returns what they add. The model never sees a prompt that a hook denies.
func (o *Orchestrator) hookPrompt(ctx context.Context, st *turnState, words string) (notes []toolrun.Note, err error) {
	switch {
	case o.Hooks == nil:
		return nil, nil
	case o.Child != nil: // the prompt is the main agent's; no hook can deny it
		ruling, err := o.Hooks.Fire(ctx, scene(st), hooks.SubagentStart, []string{o.Child.Agent}, map[string]any{"agent_id": o.Child.ID, "agent_type": o.Child.Agent})
		return ruling.Notes, err
	}
	if !o.begun {
		o.begun = true
		source := "startup"
		if len(o.Talk.View()) > 0 {
			source = "resume"
		}
		ruling, err := o.Hooks.Fire(ctx, scene(st), hooks.SessionStart, []string{source}, map[string]any{"source": source, "model": st.set.Model})
		if err != nil {
			return nil, err
		}
		if ruling.Deny != "" { // only a prompt can be denied here, not the session
			err = o.warn(ctx, st, ruling.Deny)
		}
		if ruling.Stop != "" {
			err = fmt.Errorf("%w: %s", toolrun.ErrHook, ruling.Stop)
		}
		if err != nil {
			return nil, err
		}
		notes = ruling.Notes
	}
	ruling, err := o.Hooks.Fire(ctx, scene(st), hooks.UserPromptSubmit, nil, map[string]any{"prompt": words})
	switch {
	case err != nil:
		return nil, err
	case ruling.Stop != "":
		return nil, fmt.Errorf("%w: %s", toolrun.ErrHook, ruling.Stop)
	case ruling.Deny != "":
		return nil, fmt.Errorf("%w: %s", ErrPromptRefused, ruling.Deny)
	}
	return append(notes, ruling.Notes...), nil
}

// hookStop runs the hooks at the end of the model's work, and reports whether one continues the turn.
func (o *Orchestrator) hookStop(ctx context.Context, st *turnState) (again bool, err error) {
	e, names, fields := hooks.Stop, []string(nil), map[string]any{"stop_hook_active": st.sentOn, "last_assistant_message": st.final}
	if o.Child != nil {
		e, names = hooks.SubagentStop, []string{o.Child.Agent}
		fields["agent_id"], fields["agent_type"] = o.Child.ID, o.Child.Agent
	}
	if !o.Hooks.On(e) {
		return false, nil
	}
	ruling, err := o.Hooks.Fire(ctx, scene(st), e, names, fields)
	if err != nil || ruling.Stop != "" || ruling.Deny == "" {
		return false, err
	}
	if st.sentInRow++; st.sentInRow > maxSentOn {
		return false, o.warn(ctx, st, fmt.Sprintf("the turn ends: the hook %s continued it %d times in a row, and the model did nothing more", ruling.DenyBy, maxSentOn))
	}
	st.sentOn = true
	return true, o.emit(ctx, st, ActorAgent, event.MessageAdded{Message: chat.Say(chat.User, "[hook] "+ruling.Deny)})
}

// hookCompact asks the hooks whether a summary may replace the conversation.
func (o *Orchestrator) hookCompact(ctx context.Context, st *turnState, trigger, focus string) (refused string, err error) {
	if !o.Hooks.On(hooks.PreCompact) {
		return "", nil
	}
	ruling, err := o.Hooks.Fire(ctx, scene(st), hooks.PreCompact, []string{trigger}, map[string]any{"trigger": trigger, "custom_instructions": focus})
	if ruling.Stop != "" && ruling.Deny == "" {
		return ruling.Stop, err
	}
	return ruling.Deny, err
}

// person returns the turn's interactor. Hooks are notified of each question while it is open.
func (o *Orchestrator) person(st *turnState) uip.Interactor {
	p := o.Person(st.sink)
	if !o.Hooks.On(hooks.Notification) {
		return p
	}
	return uip.Func(func(ctx context.Context, q uip.Request) (uip.Response, error) {
		told, stop := context.WithCancel(ctx)
		var telling sync.WaitGroup
		defer telling.Wait()
		defer stop()
		telling.Go(func() {
			_, _ = o.Hooks.Fire(told, scene(st), hooks.Notification, []string{"permission_prompt"}, map[string]any{
				"message": q.Display.Title, "title": "coder", "notification_type": "permission_prompt",
			})
		})
		return p.Ask(ctx, q)
	})
}

// End runs the hooks at the end of a session with at least one
// prompt. They have little time and cannot change anything.
func (o *Orchestrator) End(out event.Sink) {
	if !o.begun || !o.Hooks.On(hooks.SessionEnd) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	at := hooks.Scene{Sink: o.Through(event.SinkFunc(func(ctx context.Context, r event.Record) error {
		if n, ok := r.Event.(event.Notice); ok { // records are not shown any more
			o.Hooks.Warn(n.Text)
		}
		return out.Emit(ctx, r)
	}))}
	if _, err := o.Hooks.Fire(ctx, at, hooks.SessionEnd, []string{"other"}, map[string]any{"reason": "other"}); errors.Is(err, context.DeadlineExceeded) {
		text := fmt.Sprintf("SessionEnd hooks were stopped after %g s", endTime.Seconds())
		_ = at.Sink.Emit(context.WithoutCancel(ctx), event.Record{Actor: hooks.Actor, Event: event.Notice{Level: event.Warn, Text: text}})
	}
}

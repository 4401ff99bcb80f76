package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"strings"

	tokens "coder/internal/agent/prompt"
	"coder/internal/agent/toolrun"
	"coder/internal/core/chat"
	"coder/internal/core/clip"
	"coder/internal/core/event"
	"coder/internal/model/provider"
)

// Texts in the conversation where the user interrupted it.
const (
	interruptedReply      = event.Interruption + "]"
	interruptedAmongTools = event.Interruption + " for tool use]"
)

// Limits on the prompt in a task's record: enough to recognise it. The conversation has all of it.
const (
	titleLimit  = 80
	intentLimit = 500
	// summaryLimit limits the answer in a subtask's record.
	summaryLimit = 2000
)

// emit records and shows e, and adds it to the conversation if it is a message.
func (o *Orchestrator) emit(ctx context.Context, st *turnState, actor string, e event.Event) error {
	r := event.Record{Task: st.task, Actor: o.actor(actor), Event: event.Masked(e, o.Conceals), Clean: true}
	err := st.sink.Emit(ctx, r)
	if event.Kept(err) {
		r.Seq = st.said.Swap(0) // a later rewind finds the message by it
		o.Talk.Add(r)
	}
	return err
}

// actor returns the actor for a record. In a subtask, the subagent
// replaces the main agent, and the main agent replaces the user.
func (o *Orchestrator) actor(role string) string {
	switch {
	case o.Child == nil:
		return role
	case role == ActorAgent:
		return o.Child.Agent
	}
	return ActorAgent
}

// openTask begins a task for the user's input.
func (o *Orchestrator) openTask(ctx context.Context, st *turnState, userInput string) error {
	userInput = o.Conceals.Text(userInput) // before clipping: half a key is also secret
	created := event.TaskCreated{
		Title: Title(cmp.Or(st.typed, userInput)), Intent: clip.Text(userInput, intentLimit),
		Priority: event.Foreground, AgentID: o.actor(ActorAgent), Author: o.actor(ActorUser),
	}
	if c := o.Child; c != nil {
		created.TaskID, created.ParentID, created.CallID, created.Priority = c.ID, c.Parent, c.CallID, event.Normal
		created.Title = cmp.Or(Title(c.Title), created.Title)
	} else {
		created.TaskID = o.NewID("task")
		if run := st.set.Run; run != (event.Run{}) {
			created.Run = &run
		}
	}
	st.task = created.TaskID
	if err := o.emit(ctx, st, ActorUser, created); err != nil {
		return err
	}
	return o.startTask(ctx, st, nil)
}

func (o *Orchestrator) startTask(ctx context.Context, st *turnState, run *event.Run) error {
	if err := o.emit(ctx, st, ActorAgent, event.TaskStarted{TaskID: st.task, AgentID: o.actor(ActorAgent), Author: o.actor(ActorAgent), Run: run}); err != nil {
		return err
	}
	return o.emit(ctx, st, ActorAgent, event.StateChanged{Busy: true})
}

// resumeTask completes the record of a turn's beginning, and records how the turn runs now if that changed.
func (o *Orchestrator) resumeTask(ctx context.Context, st *turnState, left Unfinished) error {
	var err error
	if run := o.otherRun(st, left); run != nil || !left.Started {
		err = o.startTask(ctx, st, run)
	} else {
		err = o.emit(ctx, st, ActorAgent, event.StateChanged{Busy: true})
	}
	if err := errors.Join(err, o.recordSystem(ctx, st)); err != nil || left.Heard {
		return err
	}
	notes, err := o.hookPrompt(ctx, st, left.Input)
	if err != nil {
		return err
	}
	return o.addSaid(ctx, st, Say(chat.From(chat.Unknown, left.Input)), notes)
}

// otherRun returns how a turn runs from now on, or nil if nothing
// changed. It ignores changes of the window and the settings file.
func (o *Orchestrator) otherRun(st *turnState, left Unfinished) *event.Run {
	now := event.Masked(event.TaskStarted{Run: &st.set.Run}, o.Conceals).(event.TaskStarted).Run
	run := *now
	run.Window, run.Config = left.Run.Window, left.Run.Config
	if o.Child != nil || run == left.Run {
		return nil
	}
	return now
}

// closeTask records the task's end according to the turn's.
func (o *Orchestrator) closeTask(ctx context.Context, st *turnState, turnErr error, interrupted bool) error {
	switch {
	case interrupted:
		return o.emit(ctx, st, ActorUser, event.TaskCanceled{TaskID: st.task, Reason: "interrupted", Author: ActorUser})
	case errors.Is(turnErr, toolrun.ErrRefused):
		return o.emit(ctx, st, ActorUser, event.TaskCanceled{TaskID: st.task, Reason: "refused", Author: ActorUser})
	case turnErr != nil:
		failed := event.TaskFailed{TaskID: st.task, Reason: turnErr.Error(), Code: provider.Code(turnErr), Author: o.actor(ActorAgent)}
		if e, ok := errors.AsType[*askError](turnErr); ok {
			failed.Says = e.why.Error()
		}
		if e, ok := errors.AsType[*stepLimitError](turnErr); ok {
			failed.Steps = e.steps
		}
		return o.emit(ctx, st, ActorAgent, failed)
	}
	done := event.TaskCompleted{TaskID: st.task, Author: o.actor(ActorAgent)}
	if o.Child != nil {
		done.Summary = clip.Text(st.final, summaryLimit)
	}
	return o.emit(ctx, st, ActorAgent, done)
}

// saveSession writes the session's snapshot. The logs are authoritative, so a failure is only a warning.
func (o *Orchestrator) saveSession(ctx context.Context, st *turnState) error {
	if err := o.Save(ctx); err != nil {
		return o.warn(ctx, st, "the session file could not be written: "+err.Error())
	}
	return nil
}

// tellUsage reports how full the context is: the provider's last count plus an estimate for newer messages.
func (o *Orchestrator) tellUsage(ctx context.Context, st *turnState) error {
	if o.Child != nil {
		return nil
	}
	used := o.contextUsed(st.set.Model, st.fixed)
	return o.emit(ctx, st, ActorAgent, event.ContextUsed{Used: used, Max: st.set.ContextLimit, Prompt: cmp.Or(o.Talk.Prompted(), used)})
}

// ContextUsed returns the number of tokens in the next request.
func (o *Orchestrator) ContextUsed() int {
	set := o.Settings()
	_, fixed := o.specs(set)
	return o.contextUsed(set.Model, fixed)
}

// contextUsed is ContextUsed for a model and the tokens before the first message.
func (o *Orchestrator) contextUsed(model string, fixed int) int {
	g := o.gauge.of(model)
	used, since := o.Talk.Estimate(tokens.MessageTokens)
	if used == 0 {
		used = int(g.factor() * float64(fixed))
	}
	return used + int(g.factor()*float64(since))
}

// markInterrupted adds to a tool's result, a JSON object, that the user interrupted there.
func markInterrupted(result string) string {
	body, ok := strings.CutSuffix(result, "}")
	if !ok {
		return result + "\n" + interruptedAmongTools
	}
	return body + `,"interrupted":"` + interruptedAmongTools + `"}`
}

// Title returns the first line of a prompt, clipped for a list.
func Title(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return clip.Text(strings.TrimSpace(line), titleLimit)
}

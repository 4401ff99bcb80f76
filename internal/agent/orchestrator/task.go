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
	interruptedReply       = event.InterruptionPrefix + "]"
	interruptedDuringTools = event.InterruptionPrefix + " for tool use]"
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
	r := event.Record{Task: st.task, Actor: o.actorFor(actor), Event: event.Mask(e, o.Concealer), Clean: true}
	err := st.sink.Emit(ctx, r)
	if event.IsSaved(err) {
		r.Seq = st.inputSeq.Swap(0) // a later rewind finds the message by it
		o.Conversation.Add(r)
	}
	return err
}

// actorFor returns the actor for a record. In a subtask, the subagent
// replaces the main agent, and the main agent replaces the user.
func (o *Orchestrator) actorFor(role string) string {
	switch {
	case o.Subtask == nil:
		return role
	case role == ActorAgent:
		return o.Subtask.Agent
	}
	return ActorAgent
}

// openTask begins a task for the user's input.
func (o *Orchestrator) openTask(ctx context.Context, st *turnState, userInput string) error {
	userInput = o.Concealer.Text(userInput) // before clipping: half a key is also secret
	created := event.TaskCreated{
		Title: Title(cmp.Or(st.typedText, userInput)), Intent: clip.Truncate(userInput, intentLimit),
		Priority: event.PriorityForeground, AgentID: o.actorFor(ActorAgent), Author: o.actorFor(ActorUser),
	}
	if c := o.Subtask; c != nil {
		created.TaskID, created.ParentID, created.CallID, created.Priority = c.ID, c.Parent, c.CallID, event.PriorityNormal
		created.Title = cmp.Or(Title(c.Title), created.Title)
	} else {
		created.TaskID = o.NewID("task")
		if run := st.settings.Run; run != (event.RunOptions{}) {
			created.Run = &run
		}
	}
	st.task = created.TaskID
	if err := o.emit(ctx, st, ActorUser, created); err != nil {
		return err
	}
	return o.startTask(ctx, st, nil)
}

func (o *Orchestrator) startTask(ctx context.Context, st *turnState, run *event.RunOptions) error {
	if err := o.emit(ctx, st, ActorAgent, event.TaskStarted{TaskID: st.task, AgentID: o.actorFor(ActorAgent),
		Author: o.actorFor(ActorAgent), Run: run}); err != nil {
		return err
	}
	return o.emit(ctx, st, ActorAgent, event.StateChanged{Busy: true})
}

// resumeTask completes the record of a turn's beginning, and records how the turn runs now if that changed.
func (o *Orchestrator) resumeTask(ctx context.Context, st *turnState, left UnfinishedTurn) error {
	var err error
	if run := o.changedRun(st, left); run != nil || !left.Started {
		err = o.startTask(ctx, st, run)
	} else {
		err = o.emit(ctx, st, ActorAgent, event.StateChanged{Busy: true})
	}
	if err := errors.Join(err, o.recordSystem(ctx, st)); err != nil || left.InputRecorded {
		return err
	}
	notes, err := o.runPromptHooks(ctx, st, left.Input)
	if err != nil {
		return err
	}
	return o.recordInput(ctx, st, TextInput(chat.NewUserText(chat.OriginUnknown, left.Input)), notes)
}

// changedRun returns how a turn runs from now on, or nil if nothing
// changed. It ignores changes of the window and the settings file.
func (o *Orchestrator) changedRun(st *turnState, left UnfinishedTurn) *event.RunOptions {
	now := event.Mask(event.TaskStarted{Run: &st.settings.Run}, o.Concealer).(event.TaskStarted).Run
	run := *now
	run.Window, run.ConfigFile = left.Run.Window, left.Run.ConfigFile
	if o.Subtask != nil || run == left.Run {
		return nil
	}
	return now
}

// closeTask records the task's end according to the turn's.
func (o *Orchestrator) closeTask(ctx context.Context, st *turnState, turnErr error, interrupted bool) error {
	switch {
	case interrupted:
		return o.emit(ctx, st, ActorUser, event.TaskCanceled{TaskID: st.task, Reason: "interrupted", Author: ActorUser})
	case errors.Is(turnErr, toolrun.ErrDeniedAndStopped):
		return o.emit(ctx, st, ActorUser, event.TaskCanceled{TaskID: st.task, Reason: "refused", Author: ActorUser})
	case turnErr != nil:
		failed := event.TaskFailed{TaskID: st.task, Reason: turnErr.Error(), Code: provider.Code(turnErr),
			Author: o.actorFor(ActorAgent)}
		if e, ok := errors.AsType[*modelError](turnErr); ok {
			failed.ErrorText = e.cause.Error()
		}
		if e, ok := errors.AsType[*stepLimitError](turnErr); ok {
			failed.Steps = e.steps
		}
		return o.emit(ctx, st, ActorAgent, failed)
	}
	done := event.TaskCompleted{TaskID: st.task, Author: o.actorFor(ActorAgent)}
	if o.Subtask != nil {
		done.Summary = clip.Truncate(st.finalText, summaryLimit)
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

// reportUsage reports how full the context is: the provider's last count plus an estimate for newer messages.
func (o *Orchestrator) reportUsage(ctx context.Context, st *turnState) error {
	if o.Subtask != nil {
		return nil
	}
	used := o.contextTokens(st.settings.Model, st.fixed)
	return o.emit(ctx, st, ActorAgent, event.ContextUsed{Used: used, Max: st.settings.ContextLimit,
		Prompt: cmp.Or(o.Conversation.PromptTokens(), used)})
}

// ContextUsed returns the number of tokens in the next request.
func (o *Orchestrator) ContextUsed() int {
	set := o.Settings()
	_, fixed := o.toolSpecs(set)
	return o.contextTokens(set.Model, fixed)
}

// contextTokens is ContextUsed for a model and the tokens before the first message.
func (o *Orchestrator) contextTokens(model string, fixed int) int {
	g := o.gauge.forModel(model)
	used, since := o.Conversation.TokenUsage(tokens.EstimateMessageTokens)
	if used == 0 {
		used = int(g.effectiveScale() * float64(fixed))
	}
	return used + int(g.effectiveScale()*float64(since))
}

// markInterrupted adds to a tool's result, a JSON object, that the user interrupted there.
func markInterrupted(result string) string {
	body, ok := strings.CutSuffix(result, "}")
	if !ok {
		return result + "\n" + interruptedDuringTools
	}
	return body + `,"interrupted":"` + interruptedDuringTools + `"}`
}

// Title returns the first line of a prompt, clipped for a list.
func Title(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return clip.Truncate(strings.TrimSpace(line), titleLimit)
}

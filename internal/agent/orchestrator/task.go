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

// What the conversation says where a person interrupted it.
const (
	interruptedReply      = event.Interruption + "]"
	interruptedAmongTools = event.Interruption + " for tool use]"
)

// Bounds of what a task's record says of the prompt: enough to know it again.
// The conversation has all of it.
const (
	titleLimit  = 80
	intentLimit = 500
	// summaryLimit bounds what the record of a subtask says of its answer.
	summaryLimit = 2000
)

// emit puts e on record and shows it. What the record says was said, the
// conversation takes in.
func (o *Orchestrator) emit(ctx context.Context, st *turnState, actor string, e event.Event) error {
	r := event.Record{Task: st.task, Actor: o.actor(actor), Event: event.Masked(e, o.Conceals), Clean: true}
	err := st.sink.Emit(ctx, r)
	if event.Kept(err) {
		r.Seq = st.said.Swap(0) // by which a later return finds it
		o.Talk.Add(r)
	}
	return err
}

// actor is who a record names. In a subtask its agent stands where else the
// main agent does, and the main agent where the person does.
func (o *Orchestrator) actor(role string) string {
	switch {
	case o.Child == nil:
		return role
	case role == ActorAgent:
		return o.Child.Agent
	}
	return ActorAgent
}

// openTask begins a task for what the person asked.
func (o *Orchestrator) openTask(ctx context.Context, st *turnState, userInput string) error {
	userInput = o.Conceals.Text(userInput) // before it is cut: half a key is one, too
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

// resumeTask brings the beginning of a turn on record where it is not, and what it is
// run with now where that is something else.
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

// otherRun is what a turn is run with from now on, nil if that is what it was: of the
// window and the settings file the last word is not the turn's.
func (o *Orchestrator) otherRun(st *turnState, left Unfinished) *event.Run {
	now := event.Masked(event.TaskStarted{Run: &st.set.Run}, o.Conceals).(event.TaskStarted).Run
	run := *now
	run.Window, run.Config = left.Run.Window, left.Run.Config
	if o.Child != nil || run == left.Run {
		return nil
	}
	return now
}

// closeTask gives the task the one end that fits how the turn went.
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

// saveSession projects the session. The logs are the truth, so a projection
// that cannot be written is worth a word and no more.
func (o *Orchestrator) saveSession(ctx context.Context, st *turnState) error {
	if err := o.Save(ctx); err != nil {
		return o.warn(ctx, st, "the session file could not be written: "+err.Error())
	}
	return nil
}

// tellUsage says how full the context is: what the provider last reported plus
// an estimate of what was added since.
func (o *Orchestrator) tellUsage(ctx context.Context, st *turnState) error {
	if o.Child != nil {
		return nil
	}
	used := o.contextUsed(st.set.Model, st.fixed)
	return o.emit(ctx, st, ActorAgent, event.ContextUsed{Used: used, Max: st.set.ContextLimit, Prompt: cmp.Or(o.Talk.Prompted(), used)})
}

// ContextUsed is the number of tokens the next request would take.
func (o *Orchestrator) ContextUsed() int {
	set := o.Settings()
	_, fixed := o.specs(set)
	return o.contextUsed(set.Model, fixed)
}

// contextUsed is that number where so many are there before anything is said.
func (o *Orchestrator) contextUsed(model string, fixed int) int {
	g := o.gauge.of(model)
	used, since := o.Talk.Estimate(tokens.MessageTokens)
	if used == 0 {
		used = int(g.factor() * float64(fixed))
	}
	return used + int(g.factor()*float64(since))
}

// markInterrupted adds to a tool's result, a JSON object, that the person
// interrupted there.
func markInterrupted(result string) string {
	body, ok := strings.CutSuffix(result, "}")
	if !ok {
		return result + "\n" + interruptedAmongTools
	}
	return body + `,"interrupted":"` + interruptedAmongTools + `"}`
}

// Title is the first line of a prompt, short enough for a list.
func Title(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return clip.Text(strings.TrimSpace(line), titleLimit)
}

package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"coder/internal/agent/toolrun"
	"coder/internal/agent/verify"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/model/provider"
	"coder/internal/tool"
)

// turnState is one turn's whole state. Steps read the Orchestrator's parts and write only here.
type turnState struct {
	set   Settings // frozen at the start of the turn
	tools []provider.ToolSpec
	fixed int // tokens of the system text and the tools, by coder's own count
	task  string
	sink  event.Sink // records, then shows
	typed string     // what the user typed, if the model gets another text
	steps int

	calls     []chat.ToolCall // of the last reply, not yet run
	doubted   bool            // these calls have no vouched record
	recorded  bool            // these calls are from the record
	settled   bool            // calls left by an earlier process have run
	answered  bool            // the model answered, and nothing followed
	check     string          // the id of a check's call that was already asked about
	work      verify.Work     // edits and checks so far
	input     string          // the user's request
	rounds    rounds          // to detect loops
	next      *tool.Rebuild   // the mode for the rest of the turn
	overrides overrides       // from the turn's command
	said      atomic.Uint64   // the sequence number of the user's last message until the conversation has it
	broke     bool            // interrupted during tools, and the model was told in a result
	final     string
	reached   touched // files that calls read or wrote, whose rules the model may not know
	fitted
	sent
	pauses
}

// fitted counts what was done to make the conversation fit.
type fitted struct {
	summaries int // summaries written in this turn
	refusals  int // rejections of requests as too long
	window    int // reported by the server with the current reply or rejection
}

// sent says how hooks continued the turn after an answer.
type sent struct {
	sentOn    bool // a hook continued it
	sentInRow int  // times in a row without a call
}

// pauses are the waits for limits to end.
type pauses struct {
	waited  time.Duration
	offered bool // the user was asked whether to wait
}

// RunTurn runs a prompt to its answer.
func (o *Orchestrator) RunTurn(ctx context.Context, userInput string, out event.Sink) (string, error) {
	return o.runTurn(ctx, Say(chat.From(chat.Unknown, userInput)), out)
}

// runTurn runs the steps of a turn in order.
func (o *Orchestrator) runTurn(ctx context.Context, said Said, out event.Sink) (string, error) {
	st, err := o.prepareTurnState(ctx, said, out)
	if err == nil {
		err = o.runLoop(ctx, st)
	}
	return st.final, o.persistStep(ctx, st, err)
}

// Unfinished is a turn that an earlier process did not finish.
type Unfinished struct {
	Task    string
	Input   string
	Started bool      // the task is recorded as started
	Heard   bool      // the input is in the conversation
	Run     event.Run // how it ran
	// Answered means that the model has answered: the rest remains, without another request. Edited lists the
	// files that the turn wrote, and Check is the call of the check that the user was being asked about, if any.
	Answered bool
	Edited   []string
	Check    string
	// Circle, which may be nil, is the question about a loop, if no request followed it.
	Circle *uip.Request
	// Doubted means that the turn's record is not vouched: its
	// calls need approval, and a command in it allows nothing.
	Doubted bool
}

// Lost reports whether the input is unknown: only its beginning is recorded, or the record is not vouched.
func (u Unfinished) Lost() bool { return !u.Heard && (len(u.Input) > intentLimit || u.Doubted) }

// Command reports whether the input was a command rather than a prompt.
// coder does not continue a command: the user may run it again. An input
// that became a prompt counts as a command until the conversation holds it.
func (u Unfinished) Command() bool {
	switch parseInput(u.Input).(type) {
	case prompt:
		return false
	case slash:
		return !u.Heard
	}
	return true
}

// ContinueTurn resumes a turn: first it records what is missing of its beginning,
// then it runs the calls without a result, then it asks the model again.
func (o *Orchestrator) ContinueTurn(ctx context.Context, left Unfinished, out event.Sink) (string, error) {
	st := o.newState(out)
	st.task, st.input, st.calls, st.doubted = left.Task, left.Input, o.Talk.Open(), left.Doubted
	st.work.Edited, st.check = left.Edited, left.Check
	ctx, err := o.resumeCommand(ctx, st, left)
	if err == nil {
		err = o.resumeTask(ctx, st, left)
	}
	if err == nil && len(st.calls) > 0 {
		o.takeIn(ctx, st)
		o.glimpse()
		st.recorded = true
		err = o.toolLoopStep(ctx, st)
		st.recorded, st.settled = false, true
	}
	if err == nil && left.Circle != nil {
		err = o.askAboutCircle(ctx, st, *left.Circle)
	}
	if err == nil {
		if st.answered = left.Answered && len(st.calls) == 0; st.answered {
			st.final = o.Talk.Answer()
		}
		err = o.runLoop(ctx, st)
	}
	return st.final, o.persistStep(ctx, st, err)
}

// runLoop alternates model and tools until the model is done and the checks pass.
func (o *Orchestrator) runLoop(ctx context.Context, st *turnState) error {
	for st.steps < st.set.MaxSteps {
		st.steps++
		if err := o.takeChanges(ctx, st); err != nil {
			return err
		}
		if err := o.reportEnded(ctx, st); err != nil {
			return err
		}
		if o.Steer != nil && (st.steps > 1 || st.settled) {
			for _, words := range o.Steer() {
				notes, err := o.hookPrompt(ctx, st, words.Text())
				if err == nil {
					err = o.addSaid(ctx, st, Say(words), notes)
				}
				if unsent := new(AttachError); errors.Is(err, ErrPromptRefused) || errors.As(err, &unsent) { // the turn continues without them
					err = o.warn(ctx, st, err.Error())
				}
				if err != nil {
					return err
				}
			}
		}
		if st.answered {
			st.answered = false
		} else if err := o.chatStep(ctx, st); err != nil {
			return err
		}
		if len(st.calls) == 0 {
			again, err := o.autoVerifyStep(ctx, st)
			if err == nil && !again {
				again, err = o.hookStop(ctx, st)
			}
			if err == nil && !again {
				again, err = o.finalStep(ctx, st)
			}
			if err != nil || !again {
				return err
			}
			continue
		}
		st.sentInRow = 0
		if err := o.toolLoopStep(ctx, st); err != nil {
			return err
		}
	}
	return &stepLimitError{st.set.MaxSteps}
}

// reportEnded tells the model how background commands ended, once for each.
func (o *Orchestrator) reportEnded(ctx context.Context, st *turnState) error {
	if o.Ended == nil || o.Child != nil || st.answered {
		return nil
	}
	text, names := o.Ended()
	if text == "" {
		return nil
	}
	return o.emit(ctx, st, ActorAgent, event.MessageAdded{Message: chat.Say(chat.User, joinReminders("", text)), Reminded: names})
}

// takeChanges applies the settings that the user changed since the last step.
func (o *Orchestrator) takeChanges(ctx context.Context, st *turnState) error {
	o.glimpse()
	if o.Changed == nil {
		return nil
	}
	mode, changed := o.Changed()
	if !changed {
		return nil
	}
	if mode != "" {
		if err := o.switchMode(ctx, st, mode); err != nil {
			return err
		}
	}
	o.freezeSettings(st)
	return o.recordSystem(ctx, st)
}

// finalStep reports whether the model must continue after its answer.
func (o *Orchestrator) finalStep(ctx context.Context, st *turnState) (again bool, err error) {
	if o.Final == nil || o.Child != nil {
		return false, nil
	}
	more, err := o.Final.Final(st.final)
	if err != nil || more == "" {
		return false, err
	}
	return true, o.emit(ctx, st, ActorAgent, event.MessageAdded{Message: chat.Say(chat.User, more)})
}

func (o *Orchestrator) newState(out event.Sink) *turnState {
	st := new(turnState)
	st.sink = o.Through(event.SinkFunc(func(ctx context.Context, r event.Record) error {
		switch e := r.Event.(type) {
		case event.MessageAdded:
			if e.Message.Role == chat.User {
				st.said.Store(r.Seq)
			}
		case event.TodosChanged:
			if r.Task == st.task { // by a call: a rewind before it restores the list
				o.Talk.Add(r)
			}
		}
		return out.Emit(ctx, r)
	}))
	o.freezeSettings(st)
	return st
}

// freezeSettings freezes the settings for the next steps.
func (o *Orchestrator) freezeSettings(st *turnState) {
	st.set, st.tools = o.Settings(), nil
	w := st.overrides
	st.set.Model = cmp.Or(w.model, st.set.Model)
	if w.without != nil {
		all := st.set.Tools
		st.set.Tools = all.Without(func(tool string) bool { return all.Off(tool) || w.without(tool) })
	}
	st.tools, st.fixed = o.specs(st.set)
}

// prepareTurnState freezes the settings, opens the task and
// records the user's input before the model sees it.
func (o *Orchestrator) prepareTurnState(ctx context.Context, said Said, out event.Sink) (*turnState, error) {
	st := o.newState(out)
	st.input = o.Conceals.Text(said.Text()) // decisions on it must be reproducible from the record
	st.typed = o.Conceals.Text(said.Typed)
	if err := o.openTask(ctx, st, said.Text()); err != nil {
		return st, err
	}
	if err := o.recordSystem(ctx, st); err != nil {
		return st, err
	}
	if err := o.beginTodos(ctx, st); err != nil {
		return st, err
	}
	notes, err := o.hookPrompt(ctx, st, said.Text())
	if err != nil {
		return st, err
	}
	return st, o.addSaid(ctx, st, said, notes)
}

// recordSystem records the system text and the tools' names if they changed.
func (o *Orchestrator) recordSystem(ctx context.Context, st *turnState) error {
	told := o.Talk.Tools()
	other := slices.ContainsFunc(st.tools, func(t provider.ToolSpec) bool { _, known := told[t.Name]; return !known })
	if st.set.System == o.Talk.System() && len(told) == len(st.tools) && !other {
		return nil
	}
	return o.emit(ctx, st, ActorAgent, event.MessageAdded{Message: chat.Say(chat.System, st.set.System), Tools: toolSizes(st.tools)})
}

// takeIn adds tools that became available since to the turn.
func (o *Orchestrator) takeIn(ctx context.Context, st *turnState) {
	offered := 0
	for range st.set.Tools.Specs() {
		offered++
	}
	changed := offered != len(st.tools)
	if st.set.Later != nil {
		more := st.set.Later(ctx, st.set.Tools, st.calls)
		changed = changed || more.Generation() != st.set.Tools.Generation()
		st.set.Tools = more
	}
	if changed {
		st.tools, st.fixed = o.specs(st.set)
	}
}

// toolLoopStep runs the last reply's calls and gives the model
// each result, even when the turn is about to end.
func (o *Orchestrator) toolLoopStep(ctx context.Context, st *turnState) error {
	if slices.ContainsFunc(st.calls, func(c chat.ToolCall) bool { _, there := st.set.Tools.Lookup(c.Name); return !there }) {
		o.takeIn(ctx, st) // the tool may be new, or about to start
	}
	calls := st.calls
	var (
		pictures []chat.Part
		results  []string
		ends     error // why the turn ends after these calls
	)
	deliver := func(keep context.Context, out toolrun.Outcome) error {
		res := out.Result
		results = append(results, res.Text)
		if out.Index == len(calls)-1 && ctx.Err() != nil {
			res.Text, st.broke = markInterrupted(res.Text), true
		}
		for _, e := range out.Effects {
			switch {
			case tool.Edits(out.Tool, e):
				st.work.Wrote(e.Target)
			case e.Kind == tool.Exec:
				st.work.Ran(e.Target, res.Failed, res.Text)
			}
		}
		for _, e := range out.Refused {
			if e.Kind == tool.Exec {
				st.work.Refused(e.Target)
			}
		}
		st.reached.add(out)
		if out.Rebuild != nil {
			st.next = out.Rebuild
		}
		if o.Final != nil && o.Child == nil {
			ends = cmp.Or(ends, o.Final.Called(out.Tool, res.Failed))
		}
		for _, img := range out.Images {
			pictures = append(pictures, img)
		}
		res = o.inRoom(keep, st, res)
		if err := o.emit(keep, st, ActorAgent, event.MessageAdded{Message: chat.Answer(res)}); err != nil {
			return err
		}
		st.calls = st.calls[1:]
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err() // interrupted before the first tool
	}
	err := o.Runner.Run(ctx, toolrun.Round{
		Task: st.task, Actor: o.actor(ActorAgent), Set: st.set.Tools, Calls: calls, Hooks: o.roundHooks(),
		Person: o.person(st), Sink: st.sink, StopOnReject: st.set.StopOnReject, Deliver: deliver, Doubted: st.doubted, Recorded: st.recorded,
	})
	st.doubted = false // the next calls are the model's own
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil && len(pictures) > 0 {
		parts := append([]chat.Part{chat.Text("Images returned by the tools above, in order:")}, pictures...)
		err = o.emit(ctx, st, ActorAgent, event.MessageAdded{Message: chat.Message{Role: chat.User, Parts: parts}})
	}
	if err == nil {
		err = o.applyRules(ctx, st)
	}
	if err = cmp.Or(err, ends); err == nil && st.next != nil {
		return o.rebuild(ctx, st)
	}
	if err == nil {
		err = o.guardLoop(ctx, st, calls, results)
	}
	return err
}

// rebuild continues in another mode: with its tools and its system text,
// and either with the same conversation or with one message instead.
func (o *Orchestrator) rebuild(ctx context.Context, st *turnState) error {
	next := st.next
	st.next = nil
	if err := o.switchMode(ctx, st, next.Mode); err != nil {
		return err
	}
	o.freezeSettings(st)
	if err := o.recordSystem(ctx, st); err != nil || next.Message == "" {
		return err
	}
	before := o.contextUsed(st.set.Model, st.fixed)
	if err := o.emit(ctx, st, ActorAgent, event.ContextReplaced{Reason: event.ModeSwitched, TokensBefore: before}); err != nil {
		return err
	}
	return o.addSaid(ctx, st, Say(chat.From(chat.Unknown, next.Message)), nil)
}

// persistStep closes every turn: calls without a result get one, the task gets its end, and
// the session's snapshot is written. Its context cannot be cancelled and has no deadline,
// so a suspended program or a slow disk cannot lose the record. A turn that waits for an
// answer stays open, to be resumed later. The turn's own error takes precedence.
func (o *Orchestrator) persistStep(ctx context.Context, st *turnState, turnErr error) error {
	interrupted := turnErr != nil && ctx.Err() != nil
	parked := errors.Is(turnErr, uip.ErrParked) && !interrupted
	ctx = context.WithoutCancel(ctx)
	var err error
	if !parked {
		err = o.closeConversation(ctx, st, turnErr, interrupted)
	}
	if st.task != "" && !parked {
		err = errors.Join(err, o.closeTask(ctx, st, turnErr, interrupted))
	}
	err = errors.Join(err, o.saveSession(ctx, st), o.emit(ctx, st, ActorAgent, event.StateChanged{Busy: false}))
	if turnErr != nil {
		return turnErr
	}
	return err
}

// closeConversation makes the conversation valid for the next request.
func (o *Orchestrator) closeConversation(ctx context.Context, st *turnState, turnErr error, interrupted bool) error {
	var errs []error
	for _, c := range o.Talk.Open() {
		res := toolrun.Cancelled(c)
		if !interrupted && turnErr != nil && !errors.Is(turnErr, toolrun.ErrRefused) {
			res = toolrun.Failed(c, fmt.Errorf("not run: %w", turnErr))
		}
		errs = append(errs, o.emit(ctx, st, ActorAgent, event.MessageAdded{Message: chat.Answer(res)}))
	}
	if !interrupted {
		return errors.Join(errs...)
	}
	text := interruptedAmongTools
	if !st.broke {
		text = interruptedReply
		errs = append(errs, o.emit(ctx, st, ActorUser, event.MessageAdded{Message: chat.Say(chat.User, text)}))
	}
	errs = append(errs, o.tellUsage(ctx, st), o.emit(ctx, st, ActorUser, event.Interrupted{Text: text}))
	return errors.Join(errs...)
}

package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"coder/internal/agent/toolrun"
	"coder/internal/agent/verify"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/core/uip"
	"coder/internal/model/provider"
	"coder/internal/tool"
)

// turnState is one turn's whole state. Steps read the Orchestrator's parts and write only here.
type turnState struct {
	settings  Settings // frozen at the start of the turn
	tools     []provider.ToolSpec
	fixed     int // tokens of the system text and the tools, by coder's own count
	task      string
	sink      event.Sink // records, then shows
	typedText string     // what the user typed, if the model gets another text
	steps     int

	calls          []chat.ToolCall // of the last reply, not yet run
	unvouched      bool            // these calls have no vouched record
	fromRecord     bool            // these calls are from the record
	settled        bool            // calls left by an earlier process have run
	answered       bool            // the model answered, and nothing followed
	checkCallID    string          // the id of a check's call that was already asked about
	work           verify.TurnWork // edits and checks so far
	input          string          // the user's request
	loops          loopDetector    // to detect loops
	nextMode       *tool.Rebuild   // the mode for the rest of the turn
	overrides      overrides       // from the turn's command
	inputSeq       atomic.Uint64   // the sequence number of the user's last message until the conversation has it
	interruptNoted bool            // interrupted during tools, and the model was told in a result
	finalText      string
	touchedFiles   touchedFiles // files that calls read or wrote, whose rules the model may not know
	fitCounts
	hookContinuation
	limitWaits
}

// fitCounts counts what was done to make the conversation fit.
type fitCounts struct {
	summaries int // summaries written in this turn
	refusals  int // rejections of requests as too long
	window    int // reported by the server with the current reply or rejection
}

// hookContinuation says how hooks continued the turn after an answer.
type hookContinuation struct {
	hookContinued bool // a hook continued it
	hookContinues int  // times in a row without a call
}

// limitWaits are the waits for limits to end.
type limitWaits struct {
	waited      time.Duration
	waitOffered bool // the user was asked whether to wait
}

// RunTurn runs a prompt to its answer.
func (o *Orchestrator) RunTurn(ctx context.Context, userInput string, out event.Sink) (string, error) {
	return o.runTurn(ctx, TextInput(chat.NewUserText(chat.OriginUnknown, userInput)), out)
}

// runTurn runs the steps of a turn in order.
func (o *Orchestrator) runTurn(ctx context.Context, said Input, out event.Sink) (string, error) {
	st, err := o.prepareTurnState(ctx, said, out)
	if err == nil {
		err = o.runLoop(ctx, st)
	}
	return st.finalText, o.closeTurn(ctx, st, err)
}

// UnfinishedTurn is a turn that an earlier process did not finish.
type UnfinishedTurn struct {
	Task          string
	Input         string
	Started       bool             // the task is recorded as started
	InputRecorded bool             // the input is in the conversation
	Run           event.RunOptions // how it ran
	// Answered means that the model has answered: the rest remains, without another request. Edited lists the
	// files that the turn wrote, and Check is the call of the check that the user was being asked about, if any.
	Answered    bool
	EditedFiles []string
	CheckCall   string
	// LoopQuestion, which may be nil, is the question about a loop, if no request followed it.
	LoopQuestion *uip.Request
	// Unvouched means that the turn's record is not vouched: its
	// calls need approval, and a command in it allows nothing.
	Unvouched bool
}

// IsInputLost reports whether the input is unknown: only its beginning is recorded, or the record is not vouched.
func (u UnfinishedTurn) IsInputLost() bool {
	return !u.InputRecorded && (len(u.Input) > intentLimit || u.Unvouched)
}

// IsCommand reports whether the input was a command rather than a prompt.
// coder does not continue a command: the user may run it again. An input
// that became a prompt counts as a command until the conversation holds it.
func (u UnfinishedTurn) IsCommand() bool {
	switch parseInput(u.Input).(type) {
	case promptInput:
		return false
	case slashInput:
		return !u.InputRecorded
	}
	return true
}

// ContinueTurn resumes a turn: first it records what is missing of its beginning,
// then it runs the calls without a result, then it asks the model again.
func (o *Orchestrator) ContinueTurn(ctx context.Context, left UnfinishedTurn, out event.Sink) (string, error) {
	st := o.newTurnState(out)
	st.task, st.input, st.calls, st.unvouched = left.Task, left.Input, o.Conversation.OpenCalls(), left.Unvouched
	st.work.EditedFiles, st.checkCallID = left.EditedFiles, left.CheckCall
	ctx, err := o.resumeCommand(ctx, st, left)
	if err == nil {
		err = o.resumeTask(ctx, st, left)
	}
	if err == nil && len(st.calls) > 0 {
		o.addLateTools(ctx, st)
		o.saveSnapshot()
		st.fromRecord = true
		err = o.toolLoopStep(ctx, st)
		st.fromRecord, st.settled = false, true
	}
	if err == nil && left.LoopQuestion != nil {
		err = o.askAboutLoop(ctx, st, *left.LoopQuestion)
	}
	if err == nil {
		if st.answered = left.Answered && len(st.calls) == 0; st.answered {
			st.finalText = o.Conversation.LastAnswer()
		}
		err = o.runLoop(ctx, st)
	}
	return st.finalText, o.closeTurn(ctx, st, err)
}

// runLoop alternates model and tools until the model is done and the checks pass.
func (o *Orchestrator) runLoop(ctx context.Context, st *turnState) error {
	for st.steps < st.settings.MaxSteps {
		st.steps++
		if err := o.applyChanges(ctx, st); err != nil {
			return err
		}
		if err := o.reportEndedCommands(ctx, st); err != nil {
			return err
		}
		if o.TakeSteering != nil && (st.steps > 1 || st.settled) {
			for _, words := range o.TakeSteering() {
				notes, err := o.runPromptHooks(ctx, st, words.Text())
				if err == nil {
					err = o.recordInput(ctx, st, TextInput(words), notes)
				}
				// the turn continues without them
				if unsent := new(AttachError); errors.Is(err, ErrPromptDenied) || errors.As(err, &unsent) {
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
				again, err = o.runStopHooks(ctx, st)
			}
			if err == nil && !again {
				again, err = o.finalStep(ctx, st)
			}
			if err != nil || !again {
				return err
			}
			continue
		}
		st.hookContinues = 0
		if err := o.toolLoopStep(ctx, st); err != nil {
			return err
		}
	}
	return &stepLimitError{st.settings.MaxSteps}
}

// reportEndedCommands tells the model how background commands ended, once for each.
func (o *Orchestrator) reportEndedCommands(ctx context.Context, st *turnState) error {
	if o.EndedCommands == nil || o.Subtask != nil || st.answered {
		return nil
	}
	text, names := o.EndedCommands()
	if text == "" {
		return nil
	}
	return o.emit(ctx, st, ActorAgent, event.MessageAdded{Message: chat.TextMessage(chat.User, joinReminders("", text)),
		ReminderNames: names})
}

// applyChanges applies the settings that the user changed since the last step.
func (o *Orchestrator) applyChanges(ctx context.Context, st *turnState) error {
	o.saveSnapshot()
	if o.TakeModeChange == nil {
		return nil
	}
	mode, changed := o.TakeModeChange()
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
	if o.FinalCheck == nil || o.Subtask != nil {
		return false, nil
	}
	more, err := o.FinalCheck.CheckAnswer(st.finalText)
	if err != nil || more == "" {
		return false, err
	}
	return true, o.emit(ctx, st, ActorAgent, event.MessageAdded{Message: chat.TextMessage(chat.User, more)})
}

func (o *Orchestrator) newTurnState(out event.Sink) *turnState {
	st := new(turnState)
	st.sink = o.RecordingSink(event.SinkFunc(func(ctx context.Context, r event.Record) error {
		switch e := r.Event.(type) {
		case event.MessageAdded:
			if e.Message.Role == chat.User {
				st.inputSeq.Store(r.Seq)
			}
		case event.TodosChanged:
			if r.Task == st.task { // by a call: a rewind before it restores the list
				o.Conversation.Add(r)
			}
		}
		return out.Emit(ctx, r)
	}))
	o.freezeSettings(st)
	return st
}

// freezeSettings freezes the settings for the next steps.
func (o *Orchestrator) freezeSettings(st *turnState) {
	st.settings, st.tools = o.Settings(), nil
	w := st.overrides
	st.settings.Model = cmp.Or(w.model, st.settings.Model)
	if w.excludesTool != nil {
		all := st.settings.Tools
		st.settings.Tools = all.Without(func(tool string) bool { return all.IsOff(tool) || w.excludesTool(tool) })
	}
	st.tools, st.fixed = o.toolSpecs(st.settings)
}

// prepareTurnState freezes the settings, opens the task and
// records the user's input before the model sees it.
func (o *Orchestrator) prepareTurnState(ctx context.Context, said Input, out event.Sink) (*turnState, error) {
	st := o.newTurnState(out)
	st.input = o.Concealer.Text(said.Text()) // decisions on it must be reproducible from the record
	st.typedText = o.Concealer.Text(said.Typed)
	if err := o.openTask(ctx, st, said.Text()); err != nil {
		return st, err
	}
	if err := o.recordSystem(ctx, st); err != nil {
		return st, err
	}
	if err := o.startTodos(ctx, st); err != nil {
		return st, err
	}
	notes, err := o.runPromptHooks(ctx, st, said.Text())
	if err != nil {
		return st, err
	}
	return st, o.recordInput(ctx, st, said, notes)
}

// recordSystem records the system text and the tools' names if they changed.
func (o *Orchestrator) recordSystem(ctx context.Context, st *turnState) error {
	told := o.Conversation.Tools()
	other := slices.ContainsFunc(st.tools, func(t provider.ToolSpec) bool { _, known := told[t.Name]; return !known })
	if st.settings.System == o.Conversation.SystemText() && len(told) == len(st.tools) && !other {
		return nil
	}
	return o.emit(ctx, st, ActorAgent, event.MessageAdded{Message: chat.TextMessage(chat.System, st.settings.System),
		Tools: toolTokens(st.tools)})
}

// addLateTools adds tools that became available since to the turn.
func (o *Orchestrator) addLateTools(ctx context.Context, st *turnState) {
	offered := 0
	for range st.settings.Tools.Specs() {
		offered++
	}
	changed := offered != len(st.tools)
	if st.settings.RefreshTools != nil {
		more := st.settings.RefreshTools(ctx, st.settings.Tools, st.calls)
		changed = changed || more.Generation() != st.settings.Tools.Generation()
		st.settings.Tools = more
	}
	if changed {
		st.tools, st.fixed = o.toolSpecs(st.settings)
	}
}

// toolLoopStep runs the last reply's calls and gives the model
// each result, even when the turn is about to end.
func (o *Orchestrator) toolLoopStep(ctx context.Context, st *turnState) error {
	if slices.ContainsFunc(st.calls, func(c chat.ToolCall) bool {
		_,
			there := st.settings.Tools.Lookup(c.Name)
		return !there
	}) {
		o.addLateTools(ctx, st) // the tool may be new, or about to start
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
			res.Text, st.interruptNoted = markInterrupted(res.Text), true
		}
		for _, e := range out.Effects {
			switch {
			case tool.ChangesFile(out.Tool, e):
				st.work.RecordWrite(e.Target)
			case e.Kind == tool.Exec:
				st.work.RecordCommand(e.Target, res.Failed, res.Text)
			}
		}
		for _, e := range out.DeniedEffects {
			if e.Kind == tool.Exec {
				st.work.RecordDenied(e.Target)
			}
		}
		st.touchedFiles.addOutcome(out)
		if out.Rebuild != nil {
			st.nextMode = out.Rebuild
		}
		if o.FinalCheck != nil && o.Subtask == nil {
			ends = cmp.Or(ends, o.FinalCheck.RecordCall(out.Tool, res.Failed))
		}
		for _, img := range out.Images {
			pictures = append(pictures, img)
		}
		res = o.fitResult(keep, st, res)
		if err := o.emit(keep, st, ActorAgent, event.MessageAdded{Message: chat.ToolMessage(res)}); err != nil {
			return err
		}
		st.calls = st.calls[1:]
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err() // interrupted before the first tool
	}
	err := o.Runner.Run(ctx, toolrun.Round{
		Task: st.task, Actor: o.actorFor(ActorAgent), Tools: st.settings.Tools, Calls: calls, Hooks: o.callHooks(),
		User: o.interactor(st), Sink: st.sink, StopOnReject: st.settings.StopOnReject, Deliver: deliver,
		Unvouched: st.unvouched, FromRecord: st.fromRecord,
	})
	st.unvouched = false // the next calls are the model's own
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
	if err = cmp.Or(err, ends); err == nil && st.nextMode != nil {
		return o.switchTurnMode(ctx, st)
	}
	if err == nil {
		err = o.handleLoop(ctx, st, calls, results)
	}
	return err
}

// switchTurnMode continues in another mode: with its tools and its system text,
// and either with the same conversation or with one message instead.
func (o *Orchestrator) switchTurnMode(ctx context.Context, st *turnState) error {
	next := st.nextMode
	st.nextMode = nil
	if err := o.switchMode(ctx, st, next.Mode); err != nil {
		return err
	}
	o.freezeSettings(st)
	if err := o.recordSystem(ctx, st); err != nil || next.Message == "" {
		return err
	}
	before := o.contextTokens(st.settings.Model, st.fixed)
	if err := o.emit(ctx, st, ActorAgent, event.ContextReplaced{Reason: event.ReplaceModeSwitched,
		TokensBefore: before}); err != nil {
		return err
	}
	return o.recordInput(ctx, st, TextInput(chat.NewUserText(chat.OriginUnknown, next.Message)), nil)
}

// closeTurn closes every turn: calls without a result get one, the task gets its end, and
// the session's snapshot is written. Its context cannot be cancelled and has no deadline,
// so a suspended program or a slow disk cannot lose the record. A turn that waits for an
// answer stays open, to be resumed later. The turn's own error takes precedence.
func (o *Orchestrator) closeTurn(ctx context.Context, st *turnState, turnErr error) error {
	interrupted := turnErr != nil && ctx.Err() != nil
	parked := errors.Is(turnErr, uip.ErrAnswerPending) && !interrupted
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
	for _, c := range o.Conversation.OpenCalls() {
		res := toolrun.CancelledResult(c)
		if !interrupted && turnErr != nil && !errors.Is(turnErr, toolrun.ErrDeniedAndStopped) {
			res = toolrun.FailedResult(c, message.Errorf("not run: %w", turnErr))
		}
		errs = append(errs, o.emit(ctx, st, ActorAgent, event.MessageAdded{Message: chat.ToolMessage(res)}))
	}
	if !interrupted {
		return errors.Join(errs...)
	}
	text := interruptedDuringTools
	if !st.interruptNoted {
		text = interruptedReply
		errs = append(errs, o.emit(ctx, st, ActorUser, event.MessageAdded{Message: chat.TextMessage(chat.User, text)}))
	}
	errs = append(errs, o.reportUsage(ctx, st), o.emit(ctx, st, ActorUser, event.Interrupted{Text: text}))
	return errors.Join(errs...)
}

package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"coder/internal/agent/orchestrator"
	"coder/internal/agent/toolrun"
	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/sanitize"
	"coder/internal/core/task"
	"coder/internal/core/uip"
)

// The choices for a turn that was cut off, and for a call with an unknown outcome.
const (
	OptionContinue    = "continue"
	OptionShowChanges = "look"
	OptionDiscard     = "drop"
	OptionRetry       = "retry"
	OptionSkip        = "skip"
)

// FileChanges are the changes to files since a call began.
type FileChanges struct {
	Files []string     // each with its change, the same in all languages
	Diff  display.Diff // of the text files
}

// AskResume asks the user what to do with the turn that an earlier process left unfinished, shows its
// doubts, and does what the user chooses. It returns text that is no choice: a new prompt to run instead.
// It resumes a turn that waits for an answer without asking: the turn's question is asked again.
func (s *Session) AskResume(ctx context.Context, out event.Sink) (answer, words string, err error) {
	t, ok := s.past.unfinishedTask()
	if !ok {
		return "", "", ErrFinished
	}
	if left := s.unfinishedTurn(t); left.IsCommand() || left.IsInputLost() {
		// it is a command, which the user may run again
		q := s.resumeQuestion(t, s.uncertainWithChanges(ctx, t))
		text := q.Display.Title + "\n" + q.Display.Description
		return "", "", errors.Join(s.showNotice(ctx, out, text), s.discardUnfinished(ctx, out))
	}
	if t.Pending == nil || t.Pending.Author == event.ActorRecovery {
		choice, err := s.askChoices(ctx, t, out)
		switch {
		case err != nil || choice.Dismissed: // decide later
			return "", "", err
		case choice.Input != "":
			return "", choice.Input, nil
		case choice.Option == OptionDiscard:
			return "", "", s.discardUnfinished(ctx, out)
		}
	}
	answer, err = s.Continue(ctx, out)
	return answer, "", err
}

// discardUnfinished closes everything left unfinished.
func (s *Session) discardUnfinished(ctx context.Context, out event.Sink) error {
	s.turnMu.Lock()
	defer s.turnMu.Unlock()
	return s.closeUnfinished(ctx, out)
}

// askChoices asks what to do with a turn, and if it continues,
// with each of its calls that have an unknown outcome.
func (s *Session) askChoices(ctx context.Context, t task.Task, out event.Sink) (uip.Response, error) {
	s.turnMu.Lock()
	defer s.turnMu.Unlock()
	sink := s.recordingSink(out)
	if t.Pending != nil { // ask an earlier recovery's question again, with the current state
		if err := sink.Emit(ctx, newWithdrawal(*t.Pending, t.ID,
			"the program ended before it was answered; asking again")); err != nil {
			return uip.Response{}, err
		}
	}
	doubts := s.uncertainWithChanges(ctx, t)
	q := s.resumeQuestion(t, doubts)
	q.Display.Description += "\n" + freeTextHint
	choice, err := s.askRecovery(ctx, sink, q, doubts)
	if err != nil || choice.Option != OptionContinue {
		return choice, err
	}
	for _, d := range doubts {
		if d.notFromModel {
			continue // nothing waits for its result
		}
		q := s.callQuestion(d)
		a, err := s.askRecovery(ctx, sink, q, []uncertainCall{d})
		if err != nil {
			return a, err
		}
		if a.Input != "" || a.Dismissed {
			return a, nil
		}
		putIn(&d.thread.past.questions, d.call.CallID, q)
		putIn(&d.thread.past.answers, q.ID, a)
	}
	return choice, nil
}

// askRecovery asks q, and repeats it with the changes while the user wants to look.
func (s *Session) askRecovery(ctx context.Context, sink event.Sink, q uip.Request,
	doubts []uncertainCall) (uip.Response, error) {
	for {
		a, err := s.broker.WithSink(sink).Ask(ctx, q)
		if err != nil || a.Option != OptionShowChanges {
			return a, err
		}
		var all strings.Builder
		diff := display.Diff{}
		for _, d := range doubts {
			all.WriteString(d.changesSince.Diff.Unified)
			diff.Added, diff.Deleted = diff.Added+d.changesSince.Diff.Added, diff.Deleted+d.changesSince.Diff.Deleted
		}
		if diff.Unified = all.String(); diff.Unified != "" {
			q.Display.Content = diff
		}
		q.ID = s.supervisor.NewID("ui") // with the same numbers, which the user has read
	}
}

// uncertainCall is a call that was running when a process ended.
type uncertainCall struct {
	thread       thread
	call         event.ToolCallRequested
	notFromModel bool // not the model's: a check, or the user's command
	changesSince FileChanges
}

// uncertainCalls returns an unfinished turn's calls with an unknown outcome.
func (s *Session) uncertainCalls(t task.Task) (all []uncertainCall) {
	for _, th := range s.unsettledThreads(t.ID) {
		open := th.conversation.OpenCalls()
		for id, req := range th.past.requested {
			_, known := th.past.completed[id]
			if known || req.TaskID != th.task || isUndoRequest(req) || th.past.isRepeatable(req) ||
				req.Verdict != event.VerdictAllowed {
				continue
			}
			asked := slices.ContainsFunc(open, func(c chat.ToolCall) bool { return c.ID == id })
			all = append(all, uncertainCall{thread: th, call: req, notFromModel: !asked})
		}
	}
	slices.SortFunc(all, func(a, b uncertainCall) int { return strings.Compare(a.call.CallID, b.call.CallID) })
	return all
}

// uncertainWithChanges returns these calls with the changes since.
func (s *Session) uncertainWithChanges(ctx context.Context, t task.Task) []uncertainCall {
	all := s.uncertainCalls(t)
	for i := range all {
		if s.engine.ChangesSince != nil {
			all[i].changesSince = s.engine.ChangesSince(ctx, all[i].call)
		}
	}
	return all
}

// freeTextHint explains text that is no choice.
const freeTextHint = "anything else you type is a new prompt and closes that turn"

// resumeQuestion returns the question of what to do with a turn.
func (s *Session) resumeQuestion(t task.Task, doubts []uncertainCall) uip.Request {
	lines := []string{fmt.Sprintf("prompt: %s", sanitize.Line(t.Intent, maxLineRunes))}
	lines = append(lines, s.runningReads()...)
	if said := s.turnStage(t, doubts); said != "" {
		lines = append(lines, said)
	}
	for _, d := range doubts {
		lines = append(lines, d.describe(), d.describeChanges())
	}
	for _, c := range s.unfinishedSubtasks() {
		lines = append(lines, fmt.Sprintf("%s was working on: %s", c.unfinished.agent,
			sanitize.Line(c.unfinished.task.Title, maxLineRunes)))
	}
	return s.recoveryQuestion(t.ID, "the last turn was interrupted", lines, doubts, OptionContinue,
		uip.Option{ID: OptionContinue, Label: "Continue the turn", Style: uip.StylePrimary},
		uip.Option{ID: OptionDiscard, Label: "Drop it", Style: uip.StyleDanger})
}

// maxLineRunes limits the length of quoted text on a line.
const maxLineRunes = 200

// runningReads lists running calls that only read: they run again.
func (s *Session) runningReads() (lines []string) {
	for _, c := range s.conversation.OpenCalls() {
		req, began := s.past.requested[c.ID]
		if _, known := s.past.completed[c.ID]; began && !known && req.ReadOnly {
			what := sanitize.Line(req.Tool+" "+strings.Join(event.Targets(req.Effects), ", "), maxLineRunes)
			lines = append(lines, fmt.Sprintf("running, read-only: %s", what))
		}
	}
	return lines
}

// turnStage says where the turn was.
func (s *Session) turnStage(t task.Task, doubts []uncertainCall) string {
	var waiting []string
	for _, c := range s.conversation.OpenCalls() {
		if _, began := s.past.requested[c.ID]; !began {
			waiting = append(waiting, sanitize.Line(c.Name+" "+cmp.Or(toolrun.CallSubject(c.Args), string(c.Args)),
				maxLineRunes))
		}
	}
	switch {
	case len(waiting) > 0:
		return fmt.Sprintf("not started: %s", strings.Join(waiting, ", "))
	case len(doubts) > 0 || len(s.conversation.OpenCalls()) > 0:
		return ""
	case !s.past.inputRecorded || t.Status == task.StatusOpen:
		return "not started"
	case s.past.isAnswered:
		return "the model had answered"
	case t.Pending != nil && t.Pending.Author == event.ActorUser:
		return "your command was waiting for approval"
	}
	return "waiting for the model, or about to ask it"
}

// describe describes the call that was running.
func (d uncertainCall) describe() string {
	what := sanitize.Line(d.call.Tool+" "+strings.Join(event.Targets(d.call.Effects), ", "), maxLineRunes)
	switch {
	case d.notFromModel && d.call.Author == orchestrator.ActorVerifier:
		return fmt.Sprintf("a check was running: %s", what)
	case d.notFromModel:
		return fmt.Sprintf("a command was running, and its outcome is unknown: %s", what)
	}
	return fmt.Sprintf("running, outcome unknown: %s", what)
}

// describeChanges describes what changed since the call began.
func (d uncertainCall) describeChanges() string {
	if len(d.changesSince.Files) == 0 {
		return "no file has changed since then"
	}
	const most = 8
	files := d.changesSince.Files
	if more := len(files) - most; more > 0 {
		files = append(slices.Clone(files[:most]), fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("changed since then: %s", strings.Join(files, ", "))
}

// callQuestion returns the question of what to do with a call. Repeating an edit that did
// not happen is harmless; for anything else, the default is to let the model look.
func (s *Session) callQuestion(d uncertainCall) uip.Request {
	best := OptionSkip
	notWrite := func(e event.Effect) bool { return e.Kind != event.EffectWrite }
	if len(d.changesSince.Files) == 0 && len(d.call.Effects) > 0 && !slices.ContainsFunc(d.call.Effects, notWrite) {
		best = OptionRetry
	}
	return s.recoveryQuestion(d.thread.task, "this call may or may not have finished",
		[]string{d.describe(), d.describeChanges(), freeTextHint}, []uncertainCall{d}, best,
		uip.Option{ID: OptionSkip, Label: "Skip it — tell the model that the outcome is unknown"},
		uip.Option{ID: OptionRetry, Label: "Run it again", Style: uip.StyleDanger},
	).BindToCall(d.call.CallID)
}

// recoveryQuestion returns a question about unfinished work. best is the default choice, and comes first.
func (s *Session) recoveryQuestion(taskID, title string, lines []string, doubts []uncertainCall, best string,
	options ...uip.Option) uip.Request {
	if slices.ContainsFunc(doubts, func(d uncertainCall) bool { return d.changesSince.Diff.Unified != "" }) {
		options = slices.Insert(options, 1, uip.Option{ID: OptionShowChanges, Label: "Show what changed first"})
	}
	i := slices.IndexFunc(options, func(o uip.Option) bool { return o.ID == best })
	options[i].Default = true
	first := options[i]
	options = slices.Insert(slices.Delete(options, i, i+1), 0, first)
	return uip.Request{
		ID: s.supervisor.NewID("ui"), TaskID: taskID, Author: event.ActorRecovery, Kind: uip.KindSelect,
		Purpose: uip.PurposeChooseStrategy,
		Display: uip.Display{Title: title, Description: strings.Join(lines, "\n"),
			Metadata: map[string]string{uip.MetaOnEnter: best}},
		Options: options,
	}
}

// isRetried reports whether the user wants to run a call again although it may have finished.
func (th thread) isRetried(callID string) bool {
	q, ok := th.past.questions[callID]
	return ok && q.Author == event.ActorRecovery && th.past.answers[q.ID].Option == OptionRetry
}

// errNotAwaited closes the record of a call whose result nothing waits for.
var errNotAwaited = errors.New("interrupted: the program ended while this was running; its outcome is unknown")

// WasUndoInterrupted reports whether an earlier process ended during an undo or redo.
func (s *Session) WasUndoInterrupted() bool {
	for id, req := range s.past.requested {
		if _, known := s.past.completed[id]; !known && isUndoRequest(req) {
			return true
		}
	}
	return false
}

// isUndoRequest reports whether a call records an undo or redo.
func isUndoRequest(req event.ToolCallRequested) bool {
	return req.Author == orchestrator.ActorUser && (req.Tool == "undo" || req.Tool == "redo")
}

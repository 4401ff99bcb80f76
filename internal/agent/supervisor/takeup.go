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
	GoOn  = "continue"
	Look  = "look"
	Drop  = "drop"
	Retry = "retry"
	Skip  = "skip"
)

// Changes are the changes to files since a call began.
type Changes struct {
	Files []string     // each with its change, the same in all languages
	Diff  display.Diff // of the text files
}

// TakeUp asks the user what to do with the turn that an earlier process left unfinished, shows its
// doubts, and does what the user chooses. It returns text that is no choice: a new prompt to run instead.
// It resumes a turn that waits for an answer without asking: the turn's question is asked again.
func (s *Session) TakeUp(ctx context.Context, out event.Sink) (answer, words string, err error) {
	t, ok := s.past.unfinished()
	if !ok {
		return "", "", ErrFinished
	}
	if left := s.left(t); left.Command() || left.Lost() {
		// it is a command, which the user may run again
		q := s.cutOff(t, s.uncertainWithChanges(ctx, t))
		text := q.Display.Title + "\n" + q.Display.Description
		return "", "", errors.Join(s.notice(ctx, out, text), s.drop(ctx, out))
	}
	if t.Pending == nil || t.Pending.Author == event.ActorRecovery {
		choice, err := s.choose(ctx, t, out)
		switch {
		case err != nil || choice.Dismissed: // decide later
			return "", "", err
		case choice.Input != "":
			return "", choice.Input, nil
		case choice.Option == Drop:
			return "", "", s.drop(ctx, out)
		}
	}
	answer, err = s.Continue(ctx, out)
	return answer, "", err
}

// drop closes everything left unfinished.
func (s *Session) drop(ctx context.Context, out event.Sink) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	return s.abandon(ctx, out)
}

// choose asks what to do with a turn, and if it continues,
// with each of its calls that have an unknown outcome.
func (s *Session) choose(ctx context.Context, t task.Task, out event.Sink) (uip.Response, error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	sink := s.through(out)
	if t.Pending != nil { // ask an earlier recovery's question again, with the current state
		if err := sink.Emit(ctx, withdrawal(*t.Pending, t.ID, "the program ended before it was answered; asking again")); err != nil {
			return uip.Response{}, err
		}
	}
	doubts := s.uncertainWithChanges(ctx, t)
	q := s.cutOff(t, doubts)
	q.Display.Description += "\n" + otherWords
	choice, err := s.askRecovery(ctx, sink, q, doubts)
	if err != nil || choice.Option != GoOn {
		return choice, err
	}
	for _, d := range doubts {
		if d.direct {
			continue // nothing waits for its result
		}
		q := s.doubtful(d)
		a, err := s.askRecovery(ctx, sink, q, []uncertainCall{d})
		if err != nil {
			return a, err
		}
		if a.Input != "" || a.Dismissed {
			return a, nil
		}
		put(&d.th.past.asked, d.call.CallID, q)
		put(&d.th.past.answered, q.ID, a)
	}
	return choice, nil
}

// askRecovery asks q, and repeats it with the changes while the user wants to look.
func (s *Session) askRecovery(ctx context.Context, sink event.Sink, q uip.Request, doubts []uncertainCall) (uip.Response, error) {
	for {
		a, err := s.broker.On(sink).Ask(ctx, q)
		if err != nil || a.Option != Look {
			return a, err
		}
		var all strings.Builder
		diff := display.Diff{}
		for _, d := range doubts {
			all.WriteString(d.since.Diff.Unified)
			diff.Added, diff.Deleted = diff.Added+d.since.Diff.Added, diff.Deleted+d.since.Diff.Deleted
		}
		if diff.Unified = all.String(); diff.Unified != "" {
			q.Display.Content = diff
		}
		q.ID = s.sup.NewID("ui") // with the same numbers, which the user has read
	}
}

// uncertainCall is a call that was running when a process ended.
type uncertainCall struct {
	th     thread
	call   event.ToolCallRequested
	direct bool // not the model's: a check, or the user's command
	since  Changes
}

// uncertainCalls returns an unfinished turn's calls with an unknown outcome.
func (s *Session) uncertainCalls(t task.Task) (all []uncertainCall) {
	for _, th := range s.threads(t.ID) {
		open := th.conversation.Open()
		for id, req := range th.past.requested {
			_, known := th.past.completed[id]
			if known || req.TaskID != th.task || takesBack(req) || th.past.repeatable(req) || req.Verdict != event.Allowed {
				continue
			}
			asked := slices.ContainsFunc(open, func(c chat.ToolCall) bool { return c.ID == id })
			all = append(all, uncertainCall{th: th, call: req, direct: !asked})
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
			all[i].since = s.engine.ChangesSince(ctx, all[i].call)
		}
	}
	return all
}

// otherWords explains text that is no choice.
const otherWords = "anything else you type is a new prompt and closes that turn"

// cutOff returns the question of what to do with a turn.
func (s *Session) cutOff(t task.Task, doubts []uncertainCall) uip.Request {
	lines := []string{fmt.Sprintf("prompt: %s", sanitize.Line(t.Intent, lineRunes))}
	lines = append(lines, s.reading()...)
	if said := s.stage(t, doubts); said != "" {
		lines = append(lines, said)
	}
	for _, d := range doubts {
		lines = append(lines, d.words(), d.changes())
	}
	for _, c := range s.unfinishedSubtasks() {
		lines = append(lines, fmt.Sprintf("%s was working on: %s", c.earlier.agent, sanitize.Line(c.earlier.task.Title, lineRunes)))
	}
	return s.recoveryQuestion(t.ID, "the last turn was interrupted", lines, doubts, GoOn,
		uip.Option{ID: GoOn, Label: "Continue the turn", Style: uip.Primary}, uip.Option{ID: Drop, Label: "Drop it", Style: uip.Danger})
}

// lineRunes limits the length of quoted text on a line.
const lineRunes = 200

// reading lists running calls that only read: they run again.
func (s *Session) reading() (lines []string) {
	for _, c := range s.conversation.Open() {
		req, began := s.past.requested[c.ID]
		if _, known := s.past.completed[c.ID]; began && !known && req.ReadOnly {
			what := sanitize.Line(req.Tool+" "+strings.Join(event.Targets(req.Effects), ", "), lineRunes)
			lines = append(lines, fmt.Sprintf("running, read-only: %s", what))
		}
	}
	return lines
}

// stage says where the turn was.
func (s *Session) stage(t task.Task, doubts []uncertainCall) string {
	var waiting []string
	for _, c := range s.conversation.Open() {
		if _, began := s.past.requested[c.ID]; !began {
			waiting = append(waiting, sanitize.Line(c.Name+" "+cmp.Or(toolrun.Named(c.Args), string(c.Args)), lineRunes))
		}
	}
	switch {
	case len(waiting) > 0:
		return fmt.Sprintf("not started: %s", strings.Join(waiting, ", "))
	case len(doubts) > 0 || len(s.conversation.Open()) > 0:
		return ""
	case !s.past.heard || t.Status == task.Open:
		return "it had not started"
	case s.past.concluded:
		return "the model had answered"
	case t.Pending != nil && t.Pending.Author == event.ActorUser:
		return "your command was waiting for approval"
	}
	return "waiting for the model, or about to ask it"
}

// words describes the call that was running.
func (d uncertainCall) words() string {
	what := sanitize.Line(d.call.Tool+" "+strings.Join(event.Targets(d.call.Effects), ", "), lineRunes)
	switch {
	case d.direct && d.call.Author == orchestrator.ActorVerifier:
		return fmt.Sprintf("a check was running: %s", what)
	case d.direct:
		return fmt.Sprintf("a command was running, and its outcome is unknown: %s", what)
	}
	return fmt.Sprintf("running, outcome unknown: %s", what)
}

// changes describes what changed since the call began.
func (d uncertainCall) changes() string {
	if len(d.since.Files) == 0 {
		return "no file has changed since then"
	}
	const most = 8
	files := d.since.Files
	if more := len(files) - most; more > 0 {
		files = append(slices.Clone(files[:most]), fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("changed since then: %s", strings.Join(files, ", "))
}

// doubtful returns the question of what to do with a call. Repeating an edit that did
// not happen is harmless; for anything else, the default is to let the model look.
func (s *Session) doubtful(d uncertainCall) uip.Request {
	best := Skip
	notWrite := func(e event.Effect) bool { return e.Kind != event.EffectWrite }
	if len(d.since.Files) == 0 && len(d.call.Effects) > 0 && !slices.ContainsFunc(d.call.Effects, notWrite) {
		best = Retry
	}
	return s.recoveryQuestion(d.th.task, "this call may or may not have finished", []string{d.words(), d.changes(), otherWords}, []uncertainCall{d}, best,
		uip.Option{ID: Skip, Label: "Skip it — tell the model that the outcome is unknown"},
		uip.Option{ID: Retry, Label: "Run it again", Style: uip.Danger},
	).ForCall(d.call.CallID)
}

// recoveryQuestion returns a question about unfinished work. best is the default choice, and comes first.
func (s *Session) recoveryQuestion(taskID, title string, lines []string, doubts []uncertainCall, best string, options ...uip.Option) uip.Request {
	if slices.ContainsFunc(doubts, func(d uncertainCall) bool { return d.since.Diff.Unified != "" }) {
		options = slices.Insert(options, 1, uip.Option{ID: Look, Label: "Show what changed first"})
	}
	i := slices.IndexFunc(options, func(o uip.Option) bool { return o.ID == best })
	options[i].Default = true
	first := options[i]
	options = slices.Insert(slices.Delete(options, i, i+1), 0, first)
	return uip.Request{
		ID: s.sup.NewID("ui"), TaskID: taskID, Author: event.ActorRecovery, Kind: uip.Select, Purpose: uip.ChooseStrategy,
		Display: uip.Display{Title: title, Description: strings.Join(lines, "\n"), Metadata: map[string]string{uip.OnEnter: best}},
		Options: options,
	}
}

// retried reports whether the user wants to run a call again although it may have finished.
func (th thread) retried(callID string) bool {
	q, ok := th.past.asked[callID]
	return ok && q.Author == event.ActorRecovery && th.past.answered[q.ID].Option == Retry
}

// errCutOff closes the record of a call whose result nothing waits for.
var errCutOff = errors.New("interrupted: the program ended while this was running; its outcome is unknown")

// CutUndo reports whether an earlier process ended during an undo or redo.
func (s *Session) CutUndo() bool {
	for id, req := range s.past.requested {
		if _, known := s.past.completed[id]; !known && takesBack(req) {
			return true
		}
	}
	return false
}

// takesBack reports whether a call records an undo or redo.
func takesBack(req event.ToolCallRequested) bool {
	return req.Author == orchestrator.ActorUser && (req.Tool == "undo" || req.Tool == "redo")
}

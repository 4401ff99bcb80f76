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

// What a person may say to a turn that was cut off, and to a call whose outcome
// nobody knows.
const (
	GoOn  = "continue"
	Look  = "look"
	Drop  = "drop"
	Retry = "retry"
	Skip  = "skip"
)

// Changes is what has changed in files since a call began.
type Changes struct {
	Files []string     // what became of each, in any language
	Diff  display.Diff // of those that are text
}

// TakeUp puts the turn that an earlier process left unfinished to the person,
// with what is uncertain about it, and does what they choose. Words that are no
// choice are returned: they are a new prompt, to be run instead. A turn that
// waits for an answer is gone on with at once: its question is put again.
func (s *Session) TakeUp(ctx context.Context, out event.Sink) (answer, words string, err error) {
	t, ok := s.past.unfinished()
	if !ok {
		return "", "", ErrFinished
	}
	if left := s.left(t); left.Command() || left.Lost() {
		// it is a command of the person's, who may run it again
		q := s.cutOff(t, s.uncertainWithChanges(ctx, t))
		text := q.Display.Title + "\n" + q.Display.Description
		return "", "", errors.Join(s.notice(ctx, out, text), s.drop(ctx, out))
	}
	if t.Pending == nil || t.Pending.Author == event.ActorRecovery {
		choice, err := s.choose(ctx, t, out)
		switch {
		case err != nil || choice.Dismissed: // to be decided later
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

// drop closes the books on what was left.
func (s *Session) drop(ctx context.Context, out event.Sink) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	return s.abandon(ctx, out)
}

// choose asks what is to become of a turn, and of each call of it whose outcome
// nobody knows if it is to go on.
func (s *Session) choose(ctx context.Context, t task.Task, out event.Sink) (uip.Response, error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	sink := s.through(out)
	if t.Pending != nil { // a question of an earlier recovery is asked anew, as things are now
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
			continue // nobody waits for what it gave
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

// askRecovery puts q, and puts it again with what changed as long as the person
// wants to look.
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
		q.ID = s.sup.NewID("ui") // with the same numbers: they have been read
	}
}

// uncertainCall is a call that was under way when a process ended.
type uncertainCall struct {
	th     thread
	call   event.ToolCallRequested
	direct bool // not asked for by the model: a check, or a command of the person's
	since  Changes
}

// uncertainCalls are the calls of an unfinished turn whose outcome nobody knows.
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

// uncertainWithChanges are the doubts with what has changed since.
func (s *Session) uncertainWithChanges(ctx context.Context, t task.Task) []uncertainCall {
	all := s.uncertainCalls(t)
	for i := range all {
		if s.engine.ChangesSince != nil {
			all[i].since = s.engine.ChangesSince(ctx, all[i].call)
		}
	}
	return all
}

// otherWords says what words are that are no choice.
const otherWords = "anything else you type is a new prompt and closes that turn"

// cutOff is the question what is to become of a turn.
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
	return s.recoveryQuestion(t.ID, "the last turn was cut off", lines, doubts, GoOn,
		uip.Option{ID: GoOn, Label: "Continue the turn", Style: uip.Primary}, uip.Option{ID: Drop, Label: "Drop it", Style: uip.Danger})
}

// lineRunes is how much of a text of others is shown on a line.
const lineRunes = 200

// reading says which calls were under way that do nothing but read: they are run again.
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

// stage is where the turn was.
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

// words say what was under way.
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

// changes say what has changed since the call began.
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

// doubtful is the question what is to become of a call. To do an edit that has
// not happened is harmless; anything else the model had better look at.
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

// recoveryQuestion is a question about what was left. Best is the choice that
// an empty answer takes, and stands first.
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

// retried reports whether the person wants a call to be run again though it may
// have been done.
func (th thread) retried(callID string) bool {
	q, ok := th.past.asked[callID]
	return ok && q.Author == event.ActorRecovery && th.past.answered[q.ID].Option == Retry
}

// errCutOff closes the record of a call that nobody waits for any more.
var errCutOff = errors.New("interrupted: the program ended while this was running; its outcome is unknown")

// CutUndo reports whether an earlier process ended while it undid or redid what
// a turn had done.
func (s *Session) CutUndo() bool {
	for id, req := range s.past.requested {
		if _, known := s.past.completed[id]; !known && takesBack(req) {
			return true
		}
	}
	return false
}

// takesBack reports whether a call is one by which undoing is on record.
func takesBack(req event.ToolCallRequested) bool {
	return req.Author == orchestrator.ActorUser && (req.Tool == "undo" || req.Tool == "redo")
}

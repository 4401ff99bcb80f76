package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/policy/mode"
	"coder/internal/record/seal"
	"coder/internal/record/timeline"
)

// Nothing that stands in a log lets anything be done unless this user's program
// wrote it there: the log lies in the workspace, where anyone may have put it.

func (s *Supervisor) notary(sessionID string) *seal.Notary {
	if s.Key == nil {
		return seal.New(nil, s.Dir, sessionID)
	}
	return seal.New(s.Key(), s.Dir, sessionID)
}

// ErrAnswered reports a question that has its answer.
var ErrAnswered = errors.New("it is already answered")

// ErrWithdrawn reports a question whose task has ended, or went on, without an
// answer.
var ErrWithdrawn = errors.New("it was withdrawn: its task has ended, or continued without it")

// withdraws returns ErrWithdrawn if r ends the task that a is for.
func withdraws(r event.Record, a uip.Response) error {
	var ended string
	switch e := r.Event.(type) {
	case event.TaskCompleted:
		ended = e.TaskID
	case event.TaskFailed:
		ended = e.TaskID
	case event.TaskCanceled:
		ended = e.TaskID
	}
	if ended != "" && ended == a.TaskID {
		return fmt.Errorf("interaction %s: %w", a.ID, ErrWithdrawn)
	}
	return nil
}

// ErrKeysGone reports a yes to a call that cannot be run any more.
var ErrKeysGone = errors.New("the keys in this call are not saved on disk, and the program that asked has ended, so a yes could not run it. Continue in a terminal (coder -r), say no, or let the program wait for the answer next time (--on-ask wait)")

// needsKeys returns ErrKeysGone if a is a yes to the question that r puts, and that is
// about a call with keys.
func needsKeys(r event.Record, a uip.Response) error {
	q, ok := r.Event.(event.InteractionRequested)
	if !ok || q.ID != a.ID {
		return nil
	}
	yes := func(q uip.Request, a uip.Response) bool {
		return q.Display.Metadata[uip.Keyed] != "" && !a.Dismissed && a.Option != "" && a.Option != uip.Reject
	}
	gone := yes(q.Request, a)
	for _, part := range q.Parts {
		gone = gone || yes(part, a) || slices.ContainsFunc(a.Parts, func(a uip.Response) bool { return a.ID == part.ID && yes(part, a) })
	}
	if gone {
		return fmt.Errorf("interaction %s: %w", a.ID, ErrKeysGone)
	}
	return nil
}

// answers returns an error if r closes the question id: see [Closed].
func answers(r event.Record, id string) error {
	if e, ok := r.Event.(event.InteractionResponded); ok && e.ID == id {
		return fmt.Errorf("interaction %s: %w", id, Closed(e.Response))
	}
	return nil
}

// Closed is how a question was closed by a: [ErrAnswered], or [ErrWithdrawn].
func Closed(a uip.Response) error {
	if withdrawn(a) {
		return ErrWithdrawn
	}
	return ErrAnswered
}

// Answered returns [ErrAnswered] if the question id of a session has its
// answer on record.
func (s *Supervisor) Answered(ctx context.Context, sessionID, id string) error {
	for r, err := range s.Store.Read(ctx, sessionID, 0, event.Domain) {
		if err = errors.Join(err, answers(r, id)); err != nil {
			return err
		}
	}
	return nil
}

// Answer puts the answer to a question that a session waits for on record, for
// whoever goes on with the session. A question has one answer: the error for
// another is [ErrAnswered], and [ErrWithdrawn] if the task did not wait for it.
func (s *Supervisor) Answer(ctx context.Context, sessionID string, a uip.Response) (err error) {
	notary := s.notary(sessionID)
	line, err := timeline.Open(ctx, s.Store, sessionID, timeline.Options{
		Now: s.Now, Seal: notary.Seal, Fold: func(r event.Record) error {
			notary.Vouches(r)
			return errors.Join(answers(r, a.ID), withdraws(r, a), needsKeys(r, a))
		},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, line.Close()) }()
	return line.Through(event.Discard).Emit(ctx, event.Record{Task: a.TaskID, Actor: a.Author, Event: event.InteractionResponded{Response: a}})
}

// modeKept is a switch of mode on record.
type modeKept struct {
	mode, preset string
	vouched      bool
}

// ignored is what of the record does not count because nobody vouches for it.
type ignored struct {
	answers, calls int
	mode           string
	changes        bool // of files, that could be undone
	unsigned       bool // a record lacks the signature that this version gives it
	foreign        bool // a record has the signature of someone else, or from elsewhere
}

// note takes in a stored record that nobody vouches for.
func (i *ignored) note(r event.Record) {
	switch e := r.Event.(type) {
	case event.ToolCallRequested:
		i.changes = i.changes || len(e.Before)+len(e.Tree) > 0
		i.unsigned = i.unsigned || r.Seal == ""
	case event.TaskCreated:
		i.unsigned = i.unsigned || r.Seal == ""
	}
	i.foreign = i.foreign || r.Seal != ""
}

// resumeMode lets the session go on in the mode it was in, unless that was yolo
// or the person chose another. A switch that nobody vouches for counts as far as
// it lets less happen unasked.
func (s *Session) resumeMode() {
	p := s.engine.Mode
	if p == nil || s.engine.ModeChosen {
		return
	}
	for _, m := range s.modes {
		now, preset := p.Current()
		yolo := m.mode == mode.Yolo || m.preset == mode.Yolo
		s.yolo = yolo && m.vouched && now.Name != mode.Yolo
		switch {
		case yolo:
		case !m.vouched && !p.Narrows(m.mode, m.preset):
			s.ignored.mode = m.mode
		default:
			s.ignored.mode = ""
			if p.Switch(m.mode) != nil || m.preset != "" && p.Preset(m.preset) != nil {
				_, _ = p.Switch(now.Name), p.Preset(preset) // of another version: as if it were not there
			}
		}
	}
}

// untrustedNotice says, in one line, that the session is not this user's and what of
// its record does not count; "" if there is nothing to say.
func (s *Session) untrustedNotice() string {
	var what []string
	say := func(is bool, text string) {
		if is {
			what = append(what, text)
		}
	}
	file := func(l event.Log) string { return l.String() + ".jsonl" }
	say(s.ignored.answers > 0, fmt.Sprintf("answers to questions in %s are ignored", file(event.Domain)))
	say(s.ignored.mode != "", fmt.Sprintf("the mode %s in %s is ignored", s.ignored.mode, file(event.Conversation)))
	say(s.ignored.calls > 0, fmt.Sprintf("calls in %s that have not run need approval", file(event.Conversation)))
	say(s.ignored.changes, "its changes so far cannot be undone")
	if len(what) == 0 && (s.past.wanted || len(s.past.tasks.All()) == 0) {
		return ""
	}
	why := s.doubt()
	switch {
	case why != "":
	case s.sup.Copied != nil && s.sup.Copied(s.ID):
		why = "it was copied from another session, and approvals there do not apply here"
	case s.ignored.unsigned && !s.ignored.foreign && s.signed:
		why = "part of it was written by an earlier version of coder, which did not sign its records"
	case s.ignored.unsigned && !s.ignored.foreign:
		why = "it was written by an earlier version of coder, which did not sign its records"
	default:
		why = "your coder did not write its log on this machine, in this folder"
	}
	return fmt.Sprintf("session %s grants nothing: %v", s.ID, strings.Join(append([]string{why}, what...), "; "))
}

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/core/uip"
	"coder/internal/policy/mode"
	"coder/internal/record/seal"
	"coder/internal/record/timeline"
)

// A recorded entry allows something only if this user's coder
// wrote it: the log is in the workspace, where anyone can write.

func (s *Supervisor) newNotary(sessionID string) *seal.Sealer {
	if s.Key == nil {
		return seal.New(nil, s.Dir, sessionID)
	}
	return seal.New(s.Key(), s.Dir, sessionID)
}

// ErrAnswered reports a question that already has an answer.
var ErrAnswered = errors.New("already answered")

// ErrWithdrawn reports a question whose task has ended, or continued, without an answer.
var ErrWithdrawn = errors.New("withdrawn: the task has ended, or continued without an answer")

// checkWithdrawn returns ErrWithdrawn if r ends the task that a is for.
func checkWithdrawn(r event.Record, a uip.Response) error {
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
		return message.Errorf("interaction %s: %w", a.ID, ErrWithdrawn)
	}
	return nil
}

// ErrKeysMissing reports a yes to a call that can no longer run.
var ErrKeysMissing = errors.New("the keys in this call are not saved on disk, and the program that asked has ended, so a yes could not run it. Continue in a terminal (coder -r), say no, or let the program wait for the answer next time (--on-ask wait)")

// checkKeys returns ErrKeysMissing if r asks the question, a is a yes to it, and its call has keys.
func checkKeys(r event.Record, a uip.Response) error {
	q, ok := r.Event.(event.InteractionRequested)
	if !ok || q.ID != a.ID {
		return nil
	}
	yes := func(q uip.Request, a uip.Response) bool {
		return q.Display.Metadata[uip.MetaHasKeys] != "" && !a.Dismissed && a.Option != "" && a.Option != uip.OptionReject
	}
	gone := yes(q.Request, a)
	for _, part := range q.Parts {
		gone = gone || yes(part, a) || slices.ContainsFunc(a.Parts,
			func(a uip.Response) bool { return a.ID == part.ID && yes(part, a) })
	}
	if gone {
		return message.Errorf("interaction %s: %w", a.ID, ErrKeysMissing)
	}
	return nil
}

// checkAnswered returns an error if r closes the question id: see [ClosedError].
func checkAnswered(r event.Record, id string) error {
	if e, ok := r.Event.(event.InteractionResponded); ok && e.ID == id {
		return message.Errorf("interaction %s: %w", id, ClosedError(e.Response))
	}
	return nil
}

// ClosedError returns how a closed a question: [ErrAnswered] or [ErrWithdrawn].
func ClosedError(a uip.Response) error {
	if isWithdrawal(a) {
		return ErrWithdrawn
	}
	return ErrAnswered
}

// CheckAnswered returns [ErrAnswered] if an answer to a session's question id is recorded.
func (s *Supervisor) CheckAnswered(ctx context.Context, sessionID, id string) error {
	for r, err := range s.Store.Read(ctx, sessionID, 0, event.LogDomain) {
		if err = errors.Join(err, checkAnswered(r, id)); err != nil {
			return err
		}
	}
	return nil
}

// Answer records the answer to a session's open question, for the process that
// continues the session. A question has only one answer: for another, the error
// is [ErrAnswered]. If the task did not wait for it, the error is [ErrWithdrawn].
func (s *Supervisor) Answer(ctx context.Context, sessionID string, a uip.Response) (err error) {
	notary := s.newNotary(sessionID)
	line, err := timeline.Open(ctx, s.Store, sessionID, timeline.Options{
		Now: s.Now, Seal: notary.Seal, Fold: func(r event.Record) error {
			notary.HasValidSeal(r)
			return errors.Join(checkAnswered(r, a.ID), checkWithdrawn(r, a), checkKeys(r, a))
		},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, line.Close()) }()
	return line.Wrap(event.Discard).Emit(ctx, event.Record{Task: a.TaskID, Actor: a.Author,
		Event: event.InteractionResponded{Response: a}})
}

// modeRecord is a recorded change of the mode.
type modeRecord struct {
	mode, preset string
	vouched      bool
}

// unvouchedParts describes the parts of the record that do not count because they are not vouched.
type unvouchedParts struct {
	answers, calls int
	mode           string
	fileChanges    bool // to files that could otherwise be undone
	unsigned       bool // a record lacks the signature that this version adds
	foreign        bool // a record's signature is another user's, machine's or folder's
}

// addRecord adds a stored record that is not vouched.
func (i *unvouchedParts) addRecord(r event.Record) {
	switch e := r.Event.(type) {
	case event.ToolCallRequested:
		i.fileChanges = i.fileChanges || len(e.Before)+len(e.Tree) > 0
		i.unsigned = i.unsigned || r.Seal == ""
	case event.TaskCreated:
		i.unsigned = i.unsigned || r.Seal == ""
	}
	i.foreign = i.foreign || r.Seal != ""
}

// resumeMode restores the session's mode, unless it was yolo or the user chose another. A
// change that is not vouched counts only if the mode then allows less without approval.
func (s *Session) resumeMode() {
	p := s.engine.Mode
	if p == nil || s.engine.ModeChosen {
		return
	}
	for _, m := range s.modeRecords {
		now, preset := p.Current()
		yolo := m.mode == mode.Yolo || m.preset == mode.Yolo
		s.lastModeYolo = yolo && m.vouched && now.Name != mode.Yolo
		switch {
		case yolo:
		case !m.vouched && !p.IsNarrower(m.mode, m.preset):
			s.unvouched.mode = m.mode
		default:
			s.unvouched.mode = ""
			if p.Switch(m.mode) != nil || m.preset != "" && p.SetPreset(m.preset) != nil {
				_, _ = p.Switch(now.Name), p.SetPreset(preset) // from another version: ignore it
			}
		}
	}
}

// untrustedNotice returns one line that says why the record is
// not vouched and which parts of it are ignored, or "".
func (s *Session) untrustedNotice() string {
	var what []string
	say := func(is bool, text string) {
		if is {
			what = append(what, text)
		}
	}
	file := func(l event.Log) string { return l.String() + ".jsonl" }
	say(s.unvouched.answers > 0, fmt.Sprintf("answers to questions in %s are ignored", file(event.LogDomain)))
	say(s.unvouched.mode != "", fmt.Sprintf("the mode %s in %s is ignored", s.unvouched.mode, file(event.LogConversation)))
	say(s.unvouched.calls > 0, fmt.Sprintf("calls in %s that have not run need approval", file(event.LogConversation)))
	say(s.unvouched.fileChanges, "changes so far cannot be undone")
	if len(what) == 0 && (s.past.creationVouched || len(s.past.tasks.All()) == 0) {
		return ""
	}
	why := s.doubtReason()
	switch {
	case why != "":
	case s.supervisor.IsCopied != nil && s.supervisor.IsCopied(s.ID):
		why = "copied from another session, whose approvals do not apply here"
	case s.unvouched.unsigned && !s.unvouched.foreign && s.hasSignedRecord:
		why = "partly written by an earlier version of coder, which did not sign records"
	case s.unvouched.unsigned && !s.unvouched.foreign:
		why = "written by an earlier version of coder, which did not sign records"
	default:
		why = "the log comes from another machine or folder"
	}
	return fmt.Sprintf("session %s grants nothing: %v", s.ID, strings.Join(append([]string{why}, what...), "; "))
}

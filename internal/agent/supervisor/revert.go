package supervisor

import (
	"context"
	"errors"

	"coder/internal/agent/orchestrator"
	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/record/undo"
)

// ErrNoUndo reports a session whose engine cannot undo.
var ErrNoUndo = errors.New("this session cannot undo")

// Undo undoes the last turn's changes to files. It is recorded like any other call, and survives a restart.
func (s *Session) Undo(ctx context.Context, c undo.Request, out event.Sink) (undo.Plan, error) {
	return s.revert(ctx, s.engine.Undo, c, out)
}

// UndoSince undoes the changes to files since a message, without changing the conversation.
// is reports whether a record is that message; if none is, the error is [ErrNoMessage].
func (s *Session) UndoSince(ctx context.Context, is func(seq uint64) bool, c undo.Request, out event.Sink) (undo.Plan,
	error) {
	for p := s.orch.Conversation.LastPrompt(); p != nil; p = p.Before {
		c.Turns = append(c.Turns, p.Task)
		if is(p.Seq) {
			plan, err := s.Undo(ctx, c, out)
			if errors.Is(err, undo.ErrNothingToUndo) {
				err = nil
			}
			return plan, err
		}
	}
	return undo.Plan{}, ErrNoMessage
}

// Redo reverts the last Undo.
func (s *Session) Redo(ctx context.Context, c undo.Request, out event.Sink) (undo.Plan, error) {
	return s.revert(ctx, s.engine.Redo, c, out)
}

// Restore sets files to the states in goals, as one call that Undo can undo.
func (s *Session) Restore(ctx context.Context, goals []undo.Goal, c undo.Request, out event.Sink) (undo.Plan, error) {
	if s.engine.Restore == nil {
		return undo.Plan{}, ErrNoUndo
	}
	return s.revert(ctx, func(ctx context.Context, c undo.Request) (undo.Plan,
		error) {
		return s.engine.Restore(ctx, c, goals)
	}, c, out)
}

func (s *Session) revert(ctx context.Context, do func(context.Context, undo.Request) (undo.Plan, error), c undo.Request,
	out event.Sink) (undo.Plan, error) {
	if do == nil {
		return undo.Plan{}, ErrNoUndo
	}
	s.turnMu.Lock()
	defer s.turnMu.Unlock()
	sink := s.recordingSink(out)
	settle := func() error { return s.closeUnfinished(ctx, out) } // after an undo, nothing remains to continue
	if c.DryRun {
		settle = func() error { return s.closeInterruptedUndo(ctx, sink) }
	}
	if err := settle(); err != nil {
		return undo.Plan{}, err
	}
	c.NewID = func() string { return s.supervisor.NewID("undo") }
	c.Emit = func(ctx context.Context, e event.Event) error {
		return sink.Emit(ctx, event.Record{Actor: orchestrator.ActorUser, Event: e})
	}
	return do(ctx, c)
}

// closeInterruptedUndo records an end for an undo in which an earlier process was killed.
func (s *Session) closeInterruptedUndo(ctx context.Context, sink event.Sink) error {
	if s.engine.InterruptedUndos == nil {
		return nil
	}
	for _, e := range s.engine.InterruptedUndos() {
		e.Timestamp = s.supervisor.Now().UnixMilli()
		if err := sink.Emit(ctx, event.Record{Actor: event.ActorRecovery, Event: e}); err != nil {
			return message.Errorf("record the end of an interrupted undo: %w", err)
		}
	}
	return nil
}

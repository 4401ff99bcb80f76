package supervisor

import (
	"context"
	"errors"
	"fmt"

	"coder/internal/agent/orchestrator"
	"coder/internal/core/event"
	"coder/internal/record/undo"
)

// ErrNoUndo reports a session whose engine cannot undo.
var ErrNoUndo = errors.New("this session cannot undo")

// Undo takes back what the last turn did to files. It is on record like any
// other call, and survives a restart.
func (s *Session) Undo(ctx context.Context, c undo.Call, out event.Sink) (undo.Report, error) {
	return s.revert(ctx, s.engine.Undo, c, out)
}

// UndoSince takes back what the turns from a message on did to files, the last
// first; the conversation stays as it is. The message is the one that is says so
// of, by its record; without one the error is [ErrNoMessage].
func (s *Session) UndoSince(ctx context.Context, is func(seq uint64) bool, c undo.Call, out event.Sink) (all []undo.Report, err error) {
	first := s.orch.Talk.Last()
	for first != nil && !is(first.Seq) {
		first = first.Before
	}
	if first == nil {
		return nil, ErrNoMessage
	}
	for p := s.orch.Talk.Last(); ; p = p.Before {
		c.Turn = p.Task
		r, err := s.Undo(ctx, c, out)
		if err != nil && !errors.Is(err, undo.ErrNothing) {
			return all, err
		}
		if all = append(all, r); p == first {
			return all, nil
		}
	}
}

// Redo takes back the last Undo.
func (s *Session) Redo(ctx context.Context, c undo.Call, out event.Sink) (undo.Report, error) {
	return s.revert(ctx, s.engine.Redo, c, out)
}

func (s *Session) revert(ctx context.Context, do func(context.Context, undo.Call) (undo.Report, error), c undo.Call, out event.Sink) (undo.Report, error) {
	if do == nil {
		return undo.Report{}, ErrNoUndo
	}
	s.turn.Lock()
	defer s.turn.Unlock()
	sink := s.through(out)
	if err := s.endUndoing(ctx, sink); err != nil {
		return undo.Report{}, err
	}
	c.NewID = func() string { return s.sup.NewID("undo") }
	c.Emit = func(ctx context.Context, e event.Event) error {
		return sink.Emit(ctx, event.Record{Actor: orchestrator.ActorUser, Event: e})
	}
	return do(ctx, c)
}

// endUndoing puts an end on record for undoing that an earlier process was killed
// in.
func (s *Session) endUndoing(ctx context.Context, sink event.Sink) error {
	if s.engine.CutOff == nil {
		return nil
	}
	for _, e := range s.engine.CutOff() {
		e.Timestamp = s.sup.Now().UnixMilli()
		if err := sink.Emit(ctx, event.Record{Actor: event.ActorRecovery, Event: e}); err != nil {
			return fmt.Errorf("record the end of an undo that was cut off: %w", err)
		}
	}
	return nil
}

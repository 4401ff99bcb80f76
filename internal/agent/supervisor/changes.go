package supervisor

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/policy/mode"
)

// changes are settings that the person changed while a turn runs, until the turn
// takes them up.
type changes struct {
	mu   sync.Mutex // guards the fields below
	any  bool
	mode string // "" if it is not to be another
}

func (c *changes) add(mode string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.any = true
	if mode != "" {
		c.mode = mode
	}
}

func (c *changes) take() (mode string, changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	mode, changed = c.mode, c.any
	c.mode, c.any = "", false
	return mode, changed
}

// Change has the session go on with other settings: in the mode, if it is not "",
// and with whatever else was changed. A turn that runs takes them up between two
// of its steps.
func (s *Session) Change(ctx context.Context, to string, out event.Sink) error {
	if to != "" {
		if _, err := mode.Lookup(to); err != nil {
			return err
		}
	}
	s.changes.add(to)
	if !s.turn.TryLock() {
		return nil
	}
	defer s.turn.Unlock()
	return s.applyChanges(ctx, out)
}

// applyChanges puts a change of the mode that no turn took up on record.
func (s *Session) applyChanges(ctx context.Context, out event.Sink) error {
	if to, _ := s.changes.take(); to != "" {
		return s.orch.SwitchMode(ctx, to, out)
	}
	return nil
}

// endChanges is the error of a turn that has ended, and what it did not take up counts from
// here on. Where it was left at a question that does not: the question is asked again as
// it stood, and not decided by a mode that was to count after it.
func (s *Session) endChanges(ctx context.Context, turnErr error, out event.Sink) error {
	if errors.Is(turnErr, uip.ErrParked) {
		s.changes.take()
		return turnErr
	}
	return cmp.Or(turnErr, s.applyChanges(context.WithoutCancel(ctx), out))
}

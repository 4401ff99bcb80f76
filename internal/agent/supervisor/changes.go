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

// settingChanges are settings that the user changed during a turn, until the turn applies them.
type settingChanges struct {
	mu      sync.Mutex // guards the fields below
	pending bool
	mode    string // "" if it is not to be another
}

func (c *settingChanges) add(mode string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = true
	if mode != "" {
		c.mode = mode
	}
}

func (c *settingChanges) takeChanges() (mode string, changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	mode, changed = c.mode, c.pending
	c.mode, c.pending = "", false
	return mode, changed
}

// ChangeSettings continues the session with changed settings, and in mode to
// if that is not "". A running turn applies them between two steps.
func (s *Session) ChangeSettings(ctx context.Context, to string, out event.Sink) error {
	if to != "" {
		if _, err := mode.Lookup(to); err != nil {
			return err
		}
	}
	s.changes.add(to)
	if !s.turnMu.TryLock() {
		return nil
	}
	defer s.turnMu.Unlock()
	return s.applyChanges(ctx, out)
}

// applyChanges applies a new mode that no turn applied.
func (s *Session) applyChanges(ctx context.Context, out event.Sink) error {
	if to, _ := s.changes.takeChanges(); to != "" {
		return s.orch.SwitchMode(ctx, to, out)
	}
	return nil
}

// finishChanges returns the error of an ended turn, and applies changes that the
// turn did not. If the turn stopped at a question, it discards them: the same
// question is asked again, and a mode meant for later must not decide it.
func (s *Session) finishChanges(ctx context.Context, turnErr error, out event.Sink) error {
	if errors.Is(turnErr, uip.ErrAnswerPending) {
		s.changes.takeChanges()
		return turnErr
	}
	return cmp.Or(turnErr, s.applyChanges(context.WithoutCancel(ctx), out))
}

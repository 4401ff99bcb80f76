package failover

import (
	"context"
	"errors"
	"sync"

	"coder/internal/record/session"
)

// Sessions wraps a store of snapshots: it reports a failed save instead of failing. The logs are
// authoritative, and if they cannot be written either, the user has been warned. Use [NewSessions].
type Sessions struct {
	session.Store
	warn func(error)

	mu     sync.Mutex // guards the field below
	failed map[string]error
}

// NewSessions wraps primary; warn is called for failed saves.
func NewSessions(primary session.Store, warn func(error)) *Sessions {
	return &Sessions{Store: primary, warn: warn, failed: make(map[string]error)}
}

// Save replaces the snapshot of snap.ID, if possible.
func (s *Sessions) Save(ctx context.Context, snap session.Snapshot) error {
	err := s.Store.Save(ctx, snap)
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	s.mu.Lock()
	delete(s.failed, snap.ID)
	if err != nil {
		s.failed[snap.ID] = err
	}
	s.mu.Unlock()
	if err != nil {
		s.warn(err)
	}
	return nil
}

// SaveError returns why a snapshot's last save failed, or nil.
func (s *Sessions) SaveError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, err := range s.failed {
		return err
	}
	return nil
}

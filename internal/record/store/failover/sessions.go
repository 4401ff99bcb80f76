package failover

import (
	"context"
	"errors"
	"sync"

	"coder/internal/record/session"
)

// Sessions wraps a store of snapshots so that one which cannot be written is
// reported instead of failing: the logs are the truth, and where they cannot be
// written either the person has been told. Use [NewSessions].
type Sessions struct {
	session.Store
	warn func(error)

	mu     sync.Mutex // guards the field below
	failed map[string]error
}

// NewSessions wraps primary; warn is told of what could not be written.
func NewSessions(primary session.Store, warn func(error)) *Sessions {
	return &Sessions{Store: primary, warn: warn, failed: make(map[string]error)}
}

// Save replaces the snapshot of snap.ID if it can.
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

// Unkept is why a snapshot that was saved last is not what is kept, or nil.
func (s *Sessions) Unkept() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, err := range s.failed {
		return err
	}
	return nil
}

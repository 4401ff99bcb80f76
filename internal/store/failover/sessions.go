package failover

import (
	"context"
	"errors"

	"coder/internal/session"
)

// NewSessions wraps primary so that a snapshot which cannot be written is
// reported to warn instead of failing: the logs are the truth, and where they
// cannot be written either the person has been told.
func NewSessions(primary session.Store, warn func(error)) session.Store {
	return sessions{primary, warn}
}

type sessions struct {
	session.Store
	warn func(error)
}

func (s sessions) Save(ctx context.Context, snap session.Snapshot) error {
	err := s.Store.Save(ctx, snap)
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	s.warn(err)
	return nil
}

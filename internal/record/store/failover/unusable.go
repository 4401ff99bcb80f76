package failover

import (
	"context"
	"fmt"
	"iter"

	"coder/internal/core/event"
	"coder/internal/record/session"
)

// Unusable is a place where sessions must not be kept: nothing is there, and
// nothing can be put there.
type Unusable struct{ Why error }

// Claim fails.
func (u Unusable) Claim(context.Context, string) (func() error, error) { return nil, u.Why }

// Append fails.
func (u Unusable) Append(context.Context, uint64, ...event.Record) error { return u.Why }

// Read yields nothing.
func (u Unusable) Read(context.Context, string, uint64, ...event.Log) iter.Seq2[event.Record, error] {
	return func(func(event.Record, error) bool) {}
}

// UnusableSessions is the same for snapshots.
type UnusableSessions struct{ Why error }

// Save fails.
func (u UnusableSessions) Save(context.Context, session.Snapshot) error { return u.Why }

// Load finds nothing.
func (u UnusableSessions) Load(_ context.Context, id string) (session.Snapshot, error) {
	return session.Snapshot{}, fmt.Errorf("session %s: %w", id, session.ErrNotFound)
}

// List yields nothing.
func (u UnusableSessions) List(context.Context) iter.Seq2[session.Head, error] {
	return func(func(session.Head, error) bool) {}
}

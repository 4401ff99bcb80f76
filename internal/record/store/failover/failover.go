// Package failover keeps a session running when it can no longer be saved. Records go to the primary
// store while that works. If primary rejects a record, it and all later ones stay in memory, and the
// user is warned once. With every decisive record, the Store tries primary again: once primary accepts
// the backlog, all is as if nothing had happened.
//
// Calls that change the world must not run from memory alone: a later process would find them on disk as
// not begun. Such records are rejected with an [*event.NotRecordableError] until primary accepts them, or until
// the user agrees to continue without a record: see [Store.Waive].
package failover

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"

	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/record/session"
)

// Options configure a Store. The zero value is valid.
type Options struct {
	// Warn is called with the reason when a session can no longer be saved. It is called during a Claim or
	// an Append, so it must not emit to a timeline over this store: it should save the reason for later.
	Warn func(error)
	// Mark tells later processes that primary does not have everything that was done in a session.
	Mark func(session string) error
}

// Store is an [event.Store] with a primary store and memory. Use [New].
type Store struct {
	primary event.Store
	o       Options

	mu       sync.Mutex // guards the fields below
	sessions map[string]*sessionState
	waived   bool
}

// New returns a Store that forwards everything to primary while primary accepts it.
func New(primary event.Store, o Options) *Store {
	return &Store{primary: primary, o: o, sessions: make(map[string]*sessionState)}
}

// sessionState is the state of a session.
type sessionState struct {
	claimed   bool
	release   func() error   // releases primary's claim; nil without a claim
	rejectErr error          // why primary rejects records; nil while it accepts them
	base      uint64         // the newest Seq in primary, once it failed
	backlog   []event.Record // the records after that
}

func (k *sessionState) newest() uint64 { return k.base + uint64(len(k.backlog)) }

// Claim claims session in primary, or only in this process if primary cannot.
func (s *Store) Claim(ctx context.Context, session string) (release func() error, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.sessions[session]
	if k == nil {
		k = new(sessionState)
		s.sessions[session] = k
	}
	if k.claimed {
		return nil, &event.ClaimedError{Session: session, Holder: "this process"}
	}
	if k.release, err = s.primary.Claim(ctx, session); err != nil {
		if isFinal(ctx, err) {
			return nil, err
		}
		s.switchToMemory(k, err, s.newest(ctx, session, k.newest()))
	}
	k.claimed = true
	return sync.OnceValue(func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if k.rejectErr != nil {
			s.catchUp(context.Background(), k, nil) // a last attempt to save all of it
		}
		k.claimed = false
		free := k.release
		k.release = nil
		if free == nil {
			return nil
		}
		return free()
	}), nil
}

// isFinal reports whether an error is an answer, not a failure of the store.
func isFinal(ctx context.Context, err error) bool {
	var claimed *event.ClaimedError
	var newer *event.NewerFormatError
	return errors.Is(err, event.ErrConflict) || errors.As(err, &claimed) || errors.As(err, &newer) || ctx.Err() != nil &&
		errors.Is(err, ctx.Err())
}

// switchToMemory switches to memory.
func (s *Store) switchToMemory(k *sessionState, why error, base uint64) { // s.mu held
	if k.rejectErr == nil {
		k.base = base
	}
	k.rejectErr = why
	if s.o.Warn != nil {
		s.o.Warn(why)
	}
}

// newest returns the newest Seq of a session in primary, which should be at least last. If primary
// cannot even be read, it returns last.
func (s *Store) newest(ctx context.Context, session string, last uint64) uint64 {
	newest := uint64(0)
	for r, err := range s.primary.Read(ctx, session, max(last, 1)-1) {
		if err != nil {
			return last
		}
		newest = r.Seq
	}
	return newest
}

// Append adds rs to primary, or to memory if primary fails.
func (s *Store) Append(ctx context.Context, last uint64, rs ...event.Record) error {
	if err := ctx.Err(); err != nil || len(rs) == 0 {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.sessions[rs[0].Session]
	if k == nil || !k.claimed {
		return event.ErrConflict
	}
	if k.rejectErr == nil {
		err := s.primary.Append(ctx, last, rs...)
		if err == nil || isFinal(ctx, err) {
			return err
		}
		if err := checkEncodable(rs); err != nil {
			return err // the records are invalid, not the store
		}
		if s.newest(ctx, rs[0].Session, last) != last {
			return event.ErrConflict
		}
		s.switchToMemory(k, err, last)
		return s.keepInMemory(k, last, rs)
	}
	if k.newest() != last || !event.AreConsecutive(last, rs) {
		return event.ErrConflict
	}
	if err := checkEncodable(rs); err != nil {
		return err
	}
	decisive := func(r event.Record) bool { return event.IsIrreversible(r.Event) } // worth another attempt to save
	if slices.ContainsFunc(rs, decisive) && s.catchUp(ctx, k, rs) {
		return nil
	}
	return s.keepInMemory(k, last, rs)
}

// catchUp tries to append the backlog and then rs to primary.
func (s *Store) catchUp(ctx context.Context, k *sessionState, rs []event.Record) bool { // s.mu held
	behind := slices.Concat(k.backlog, rs)
	if len(behind) == 0 {
		return false
	}
	if k.release == nil {
		free, err := s.primary.Claim(ctx, behind[0].Session)
		if err != nil {
			return false
		}
		k.release = free
	}
	if err := s.primary.Append(ctx, k.base, behind...); err != nil {
		return false
	}
	k.rejectErr, k.backlog = nil, nil
	return true
}

func checkEncodable(rs []event.Record) error {
	for _, r := range rs {
		if _, err := event.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

// keepInMemory keeps rs in memory, unless they announce a call that must not run then.
func (s *Store) keepInMemory(k *sessionState, last uint64, rs []event.Record) error { // s.mu held
	if k.newest() != last || !event.AreConsecutive(last, rs) {
		return event.ErrConflict
	}
	if !s.waived && slices.ContainsFunc(rs, func(r event.Record) bool { return event.ChangesWorld(r.Event) }) {
		return &event.NotRecordableError{Err: k.rejectErr}
	}
	k.backlog = append(k.backlog, rs...)
	return nil
}

// Waive lets the session continue without a record, with the user's consent. It first marks sessions
// that primary holds a part of, since calls that are open there may finish in memory. If marking fails,
// it waives nothing.
func (s *Store) Waive() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, k := range s.sessions {
		if k.rejectErr == nil || k.base == 0 || !k.claimed || s.o.Mark == nil {
			continue
		}
		if err := s.o.Mark(id); err != nil {
			return err
		}
	}
	s.waived = true
	return nil
}

// SaveError returns why some of this process's records are not in primary, or nil if all are.
func (s *Store) SaveError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.sessions {
		if k.rejectErr != nil && len(k.backlog) > 0 {
			return k.rejectErr
		}
	}
	return nil
}

// Read yields primary's records, then those in memory.
func (s *Store) Read(ctx context.Context, session string, after uint64,
	logs ...event.Log) iter.Seq2[event.Record, error] {
	return func(yield func(event.Record, error) bool) {
		var beyond sessionState // records that primary lacks
		s.mu.Lock()
		if k := s.sessions[session]; k != nil && k.rejectErr != nil {
			beyond = *k
		}
		s.mu.Unlock()
		failed := beyond.rejectErr != nil
		if !failed || after < beyond.base {
			for r, err := range s.primary.Read(ctx, session, after, logs...) {
				if err == nil && failed && r.Seq > beyond.base {
					break
				}
				if !yield(r, err) || err != nil {
					return
				}
			}
		}
		for _, r := range beyond.backlog {
			if err := ctx.Err(); err != nil {
				yield(event.Record{}, err)
				return
			}
			wanted := len(logs) == 0 || slices.Contains(logs, event.LogOf(r.Event))
			if r.Seq > after && wanted && !yield(r, nil) {
				return
			}
		}
	}
}

// Unusable is a store where sessions must not be saved: it is empty and rejects everything.
type Unusable struct{ Why error }

// Claim always fails.
func (u Unusable) Claim(context.Context, string) (func() error, error) { return nil, u.Why }

// Append always fails.
func (u Unusable) Append(context.Context, uint64, ...event.Record) error { return u.Why }

// Read yields nothing.
func (u Unusable) Read(context.Context, string, uint64, ...event.Log) iter.Seq2[event.Record, error] {
	return func(func(event.Record, error) bool) {}
}

// UnusableSessions is like [Unusable], for snapshots.
type UnusableSessions struct{ Why error }

// Save always fails.
func (u UnusableSessions) Save(context.Context, session.Snapshot) error { return u.Why }

// Load finds nothing.
func (u UnusableSessions) Load(_ context.Context, id string) (session.Snapshot, error) {
	return session.Snapshot{}, message.Errorf("session %s: %w", id, session.ErrNotFound)
}

// List yields nothing.
func (u UnusableSessions) List(context.Context) iter.Seq2[session.Head, error] {
	return func(func(session.Head, error) bool) {}
}

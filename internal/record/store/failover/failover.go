// Package failover keeps a session going when it can no longer be kept. Records
// go to the primary store for as long as that works. One that it cannot take
// stays in memory with all that follow, the person is told once, and with every
// record that matters primary is tried again: when it takes what is behind, all
// is as if nothing had happened.
//
// What changes the world is not done from memory alone: a later process would
// find its call on the disk as one that had not begun. Such records are refused
// with an [*event.UnkeptError] until primary takes them, or until the person has
// said that the work may go on without a record: see [Store.Waive].
package failover

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"coder/internal/core/event"
	"coder/internal/record/session"
)

// Options say how a store behaves. The zero value is fine.
type Options struct {
	// Warn is called with the reason when a session is no longer kept. It is
	// called in the middle of a Claim or an Append, so it must not emit to a
	// timeline over this store: let it note the reason for later.
	Warn func(error)
	// Mark leaves a mark, where a later process finds it, that what primary
	// holds of a session is not all that was done in it.
	Mark func(session string) error
}

// Store is an [event.Store]. Use [New].
type Store struct {
	primary event.Store
	o       Options

	mu       sync.Mutex // guards the fields below
	sessions map[string]*kept
	waived   bool
}

// New returns a store that passes everything to primary for as long as primary
// takes it.
func New(primary event.Store, o Options) *Store {
	return &Store{primary: primary, o: o, sessions: make(map[string]*kept)}
}

// kept is a session.
type kept struct {
	claimed bool
	free    func() error   // lets go of it in primary; nil if it is not held there
	why     error          // why primary does not take records; nil while it does
	base    uint64         // the newest Seq in primary, once it failed
	tail    []event.Record // what is beyond that
}

func (k *kept) newest() uint64 { return k.base + uint64(len(k.tail)) }

// Claim claims session in primary, and if primary cannot, in this process.
func (s *Store) Claim(ctx context.Context, session string) (release func() error, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.sessions[session]
	if k == nil {
		k = new(kept)
		s.sessions[session] = k
	}
	if k.claimed {
		return nil, &event.ClaimedError{Session: session, Holder: "this process"}
	}
	if k.free, err = s.primary.Claim(ctx, session); err != nil {
		if final(ctx, err) {
			return nil, err
		}
		s.fail(k, err, s.newest(ctx, session, k.newest()))
	}
	k.claimed = true
	return sync.OnceValue(func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if k.why != nil {
			s.catchUp(context.Background(), k, nil) // a last attempt to keep all of it
		}
		k.claimed = false
		free := k.free
		k.free = nil
		if free == nil {
			return nil
		}
		return free()
	}), nil
}

// final tells errors that are answers from errors that are failures.
func final(ctx context.Context, err error) bool {
	var claimed *event.ClaimedError
	var newer *event.NewerError
	return errors.Is(err, event.ErrConflict) || errors.As(err, &claimed) || errors.As(err, &newer) || ctx.Err() != nil && errors.Is(err, ctx.Err())
}

// fail turns to memory.
func (s *Store) fail(k *kept, why error, base uint64) { // s.mu held
	if k.why == nil {
		k.base = base
	}
	k.why = why
	if s.o.Warn != nil {
		s.o.Warn(why)
	}
}

// newest asks primary for the newest Seq of a session, which ought to be last or
// more. If primary cannot even be read, the caller's word has to do.
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

// Append adds rs to primary, or to memory where that fails.
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
	if k.why == nil {
		err := s.primary.Append(ctx, last, rs...)
		if err == nil || final(ctx, err) {
			return err
		}
		if err := encodable(rs); err != nil {
			return err // the records are to blame, not the store
		}
		if s.newest(ctx, rs[0].Session, last) != last {
			return event.ErrConflict
		}
		s.fail(k, err, last)
		return s.remember(k, last, rs)
	}
	if k.newest() != last || !event.Consecutive(last, rs) {
		return event.ErrConflict
	}
	if err := encodable(rs); err != nil {
		return err
	}
	decisive := func(r event.Record) bool { return event.Decisive(r.Event) } // worth another attempt to write
	if slices.ContainsFunc(rs, decisive) && s.catchUp(ctx, k, rs) {
		return nil
	}
	return s.remember(k, last, rs)
}

// catchUp tries to give primary what it does not have yet, and rs after that.
func (s *Store) catchUp(ctx context.Context, k *kept, rs []event.Record) bool { // s.mu held
	behind := slices.Concat(k.tail, rs)
	if len(behind) == 0 {
		return false
	}
	if k.free == nil {
		free, err := s.primary.Claim(ctx, behind[0].Session)
		if err != nil {
			return false
		}
		k.free = free
	}
	if err := s.primary.Append(ctx, k.base, behind...); err != nil {
		return false
	}
	k.why, k.tail = nil, nil
	return true
}

func encodable(rs []event.Record) error {
	for _, r := range rs {
		if _, err := event.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

// remember keeps rs in memory, unless they announce what must not be done then.
func (s *Store) remember(k *kept, last uint64, rs []event.Record) error { // s.mu held
	if k.newest() != last || !event.Consecutive(last, rs) {
		return event.ErrConflict
	}
	if !s.waived && slices.ContainsFunc(rs, func(r event.Record) bool { return event.Deed(r.Event) }) {
		return &event.UnkeptError{Err: k.why}
	}
	k.tail = append(k.tail, rs...)
	return nil
}

// Waive lets the work go on without a record: the person said so. Sessions of
// which primary holds something are marked first, since what they leave open
// there may be done from memory; if that cannot be, nothing is waived.
func (s *Store) Waive() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, k := range s.sessions {
		if k.why == nil || k.base == 0 || !k.claimed || s.o.Mark == nil {
			continue
		}
		if err := s.o.Mark(id); err != nil {
			return err
		}
	}
	s.waived = true
	return nil
}

// Unkept is why something of what this process recorded is not in primary, or
// nil if all of it is.
func (s *Store) Unkept() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.sessions {
		if k.why != nil && len(k.tail) > 0 {
			return k.why
		}
	}
	return nil
}

// Read yields what primary holds, then what memory holds.
func (s *Store) Read(ctx context.Context, session string, after uint64, logs ...event.Log) iter.Seq2[event.Record, error] {
	return func(yield func(event.Record, error) bool) {
		var beyond kept // what primary does not have
		s.mu.Lock()
		if k := s.sessions[session]; k != nil && k.why != nil {
			beyond = *k
		}
		s.mu.Unlock()
		failed := beyond.why != nil
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
		for _, r := range beyond.tail {
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

// Package failover keeps a session going when it can no longer be kept. Records
// go to the primary store for as long as that works; from the first one it
// cannot take they stay in memory, and the person is told once. What the
// primary holds stays readable, and the numbering goes on where it ended.
package failover

import (
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"sync"

	"coder/internal/event"
)

// New returns a store that passes everything to primary until primary fails,
// and then to memory. warn, which may be nil, is called once with the reason.
// It is called in the middle of a Claim or an Append, so it must not emit to a
// timeline over this store: let it note the reason for later.
func New(primary event.Store, warn func(error)) event.Store {
	return &store{primary: primary, warn: warn, claimed: make(map[string]bool), tails: make(map[string]tail)}
}

type store struct {
	primary event.Store
	warn    func(error)

	mu      sync.Mutex // guards the fields below
	failed  bool
	claimed map[string]bool
	tails   map[string]tail
}

// tail is what a session has beyond what primary holds of it.
type tail struct {
	base    uint64 // the newest Seq in primary
	records []event.Record
}

func (t tail) newest() uint64 { return t.base + uint64(len(t.records)) }

// Claim claims session in primary, and if primary cannot, in this process.
func (s *store) Claim(ctx context.Context, session string) (release func() error, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	free, err := s.primary.Claim(ctx, session)
	if err != nil && final(ctx, err) {
		return nil, err
	}
	if err != nil {
		s.fail(err)
		free = func() error { return nil }
	}
	if !s.take(session) {
		return nil, errors.Join(&event.ClaimedError{Session: session, Holder: "this process"}, free())
	}
	return sync.OnceValue(func() error { s.drop(session); return free() }), nil
}

// final tells errors that are answers from errors that are failures.
func final(ctx context.Context, err error) bool {
	var claimed *event.ClaimedError
	return errors.Is(err, event.ErrConflict) || errors.As(err, &claimed) || ctx.Err() != nil && errors.Is(err, ctx.Err())
}

func (s *store) take(session string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.claimed[session] {
		return false
	}
	s.claimed[session] = true
	return true
}

func (s *store) drop(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.claimed, session)
}

// fail turns to memory for good.
func (s *store) fail(why error) {
	s.mu.Lock()
	first := !s.failed
	s.failed = true
	s.mu.Unlock()
	if first && s.warn != nil {
		s.warn(why)
	}
}

func (s *store) inMemory() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// Append adds rs to primary, or to memory once that has failed.
func (s *store) Append(ctx context.Context, last uint64, rs ...event.Record) error {
	if err := ctx.Err(); err != nil || len(rs) == 0 {
		return err
	}
	if !s.inMemory() {
		err := s.primary.Append(ctx, last, rs...)
		if err == nil || final(ctx, err) {
			return err
		}
		if err := encodable(rs); err != nil {
			return err // the records are to blame, not the store
		}
		s.fail(err)
	}
	return s.remember(ctx, last, rs)
}

func encodable(rs []event.Record) error {
	for _, r := range rs {
		if _, err := event.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

func (s *store) remember(ctx context.Context, last uint64, rs []event.Record) error {
	if err := encodable(rs); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	session := rs[0].Session
	t, ok := s.tails[session]
	if !ok {
		t.base = s.newest(ctx, session, last)
	}
	if !s.claimed[session] || t.newest() != last {
		return event.ErrConflict
	}
	for i, r := range rs {
		if r.Session != session || r.Seq != last+1+uint64(i) {
			return event.ErrConflict
		}
	}
	t.records = append(t.records, rs...)
	s.tails[session] = t
	return nil
}

// newest asks primary for the newest Seq of session, which ought to be last.
// If primary cannot even be read, the caller's word has to do.
func (s *store) newest(ctx context.Context, session string, last uint64) uint64 {
	newest := uint64(0)
	for r, err := range s.primary.Read(ctx, session, max(last, 1)-1) {
		if err != nil {
			return last
		}
		newest = r.Seq
	}
	return newest
}

// Read yields what primary holds, then what memory holds.
func (s *store) Read(ctx context.Context, session string, after uint64, logs ...event.Log) iter.Seq2[event.Record, error] {
	return func(yield func(event.Record, error) bool) {
		s.mu.Lock()
		t, ok := s.tails[session]
		s.mu.Unlock()
		if !ok {
			t.base = math.MaxUint64
		}
		if after < t.base && !pass(s.primary.Read(ctx, session, after, logs...), t.base, yield) {
			return
		}
		for _, r := range t.records {
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

// pass yields what from yields up to the record last, and reports whether to
// go on after that.
func pass(from iter.Seq2[event.Record, error], last uint64, yield func(event.Record, error) bool) bool {
	for r, err := range from {
		if err == nil && r.Seq > last {
			return true
		}
		if !yield(r, err) || err != nil {
			return false
		}
	}
	return true
}

// Package mem saves sessions in memory, with the same guarantees as the stores on disk except that they
// end with the process. It serves tests and runs that leave nothing behind.
package mem

import (
	"context"
	"iter"
	"slices"
	"sync"

	"coder/internal/core/event"
	"coder/internal/core/message"
)

// Store is an [event.Store]. The zero value is empty and ready to use.
type Store struct {
	mu       sync.Mutex // guards the fields below
	sessions map[string]*sessionLog
}

type sessionLog struct {
	claimed bool
	records []event.Record // append-only, so readers may share it
}

// Claim makes the caller the only writer of session in this process.
func (s *Store) Claim(ctx context.Context, session string) (release func() error, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.findLog(session)
	if l.claimed {
		return nil, &event.ClaimedError{Session: session, Holder: "this process"}
	}
	l.claimed = true
	return sync.OnceValue(func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		l.claimed = false
		return nil
	}), nil
}

// Append adds rs, all of them or none.
func (s *Store) Append(ctx context.Context, last uint64, rs ...event.Record) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(rs) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.findLog(rs[0].Session)
	if !l.claimed || last != l.newest() || !event.AreConsecutive(last, rs) {
		return event.ErrConflict
	}
	for _, r := range rs {
		if event.LogOf(r.Event) == event.LogNone {
			return message.Errorf("%T is not saved", r.Event)
		}
	}
	l.records = append(l.records, rs...)
	return nil
}

// Read yields the records that session had when reading began.
func (s *Store) Read(ctx context.Context, session string, after uint64,
	logs ...event.Log) iter.Seq2[event.Record, error] {
	return func(yield func(event.Record, error) bool) {
		// Seqs are positions: the first is 1, without gaps.
		var newer []event.Record
		s.mu.Lock()
		if l := s.sessions[session]; l != nil && after < l.newest() {
			newer = l.records[after:]
		}
		s.mu.Unlock()
		for _, r := range newer {
			if err := ctx.Err(); err != nil {
				yield(event.Record{}, err)
				return
			}
			wanted := len(logs) == 0 || slices.Contains(logs, event.LogOf(r.Event))
			if wanted && !yield(r, nil) {
				return
			}
		}
	}
}

func (s *Store) findLog(session string) *sessionLog { // s.mu held
	l := s.sessions[session]
	if l == nil {
		l = new(sessionLog)
		if s.sessions == nil {
			s.sessions = make(map[string]*sessionLog)
		}
		s.sessions[session] = l
	}
	return l
}

func (l *sessionLog) newest() uint64 { return uint64(len(l.records)) }

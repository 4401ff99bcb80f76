package mem

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"sync"

	"coder/internal/core/message"
	"coder/internal/record/session"
)

// Sessions is a [session.Store] in memory. The zero value is empty and ready to use. Snapshots are
// stored without a copy: neither side may change one afterwards.
type Sessions struct {
	mu   sync.Mutex // guards byID
	byID map[string]session.Snapshot
}

// Save replaces the snapshot of s.ID.
func (ss *Sessions) Save(ctx context.Context, s session.Snapshot) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.ID == "" {
		return message.Errorf("save session: the session has no id")
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.byID == nil {
		ss.byID = make(map[string]session.Snapshot)
	}
	if s.Observed && ss.byID[s.ID].LastSeq > s.LastSeq {
		return nil
	}
	s.Observed = false
	ss.byID[s.ID] = s
	return nil
}

// Load returns the snapshot of id.
func (ss *Sessions) Load(ctx context.Context, id string) (session.Snapshot, error) {
	if err := ctx.Err(); err != nil {
		return session.Snapshot{}, err
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s, ok := ss.byID[id]
	if !ok {
		return session.Snapshot{}, message.Errorf("session %s: %w", id, session.ErrNotFound)
	}
	return s, nil
}

// List yields the heads of all sessions, last updated first.
func (ss *Sessions) List(ctx context.Context) iter.Seq2[session.Head, error] {
	return func(yield func(session.Head, error) bool) {
		ss.mu.Lock()
		heads := make([]session.Head, 0, len(ss.byID))
		for _, s := range ss.byID {
			heads = append(heads, s.Head)
		}
		ss.mu.Unlock()
		slices.SortFunc(heads, func(a, b session.Head) int {
			return cmp.Or(b.Updated.Compare(a.Updated), strings.Compare(b.ID, a.ID))
		})
		for _, h := range heads {
			if err := ctx.Err(); err != nil {
				yield(session.Head{}, err)
				return
			}
			if !yield(h, nil) {
				return
			}
		}
	}
}

package jsonl

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"slices"

	"coder/internal/core/event"
	"coder/internal/host/disk"
)

// Read yields the records that session held when the reading began, as a
// stream: it needs memory for the longest line, not for the log. In a session
// that some other process is writing, or was when it died, it ends before the
// first record that is not whole.
func (s *Store) Read(ctx context.Context, session string, after uint64, logs ...event.Log) iter.Seq2[event.Record, error] {
	return func(yield func(event.Record, error) bool) {
		if err := checkID(session); err != nil {
			yield(event.Record{}, err)
			return
		}
		r := reading{ctx: ctx, disk: s.o.Disk, dir: filepath.Join(s.dir, session), after: after, logs: logs}
		if len(logs) == 0 {
			r.logs = event.Logs
		}
		var err error
		if c := s.claimed(session); c != nil {
			err = r.ours(c, yield)
		} else {
			err = r.foreign(yield)
		}
		if err != nil {
			yield(event.Record{}, fmt.Errorf("read session %s: %w", session, err))
		}
	}
}

// reading is one call of Read. Its methods return an error only if yield has
// not said to stop.
type reading struct {
	ctx   context.Context
	disk  disk.Disk
	dir   string
	after uint64
	logs  []event.Log
}

// ours reads a session that we hold: how far it goes is known, so only the
// logs asked for are looked at, and what is not whole is an error.
func (r reading) ours(c *claim, yield func(event.Record, error) bool) error {
	sizes, last := c.sizes()
	if last <= r.after {
		return r.ctx.Err()
	}
	m := new(merge)
	defer m.close()
	for _, l := range event.Logs {
		size := sizes[place(l)]
		if size == 0 || !slices.Contains(r.logs, l) {
			continue
		}
		if err := m.open(r.disk, r.dir, l, view{decode: true, after: r.after, limit: size}); err != nil {
			return err
		}
	}
	for {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		at, err := m.next()
		if err != nil {
			return err
		}
		if err := intact(m, sizes); err != nil || at == nil {
			return err
		}
		if at.seq > r.after && !yield(at.record, nil) {
			return nil
		}
	}
}

// intact checks that a log came to its end only where it was to end.
func intact(m *merge, sizes [logCount]int64) error {
	for _, s := range m.scanners {
		if s.seq == 0 && s.end != sizes[place(s.log)] {
			return fmt.Errorf("%s log is broken at byte %d", s.log, s.end)
		}
	}
	return nil
}

// foreign reads a session that we do not hold: all three logs have to be
// looked at to know where it ends.
func (r reading) foreign(yield func(event.Record, error) bool) error {
	m, err := openAll(r.disk, r.dir, r.after, r.logs...)
	if err != nil {
		return err
	}
	defer m.close()
	for seq := uint64(1); ; seq++ {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		at, err := m.next()
		if err != nil {
			return err
		}
		if at == nil || at.seq != seq {
			return nil
		}
		if seq > r.after && slices.Contains(r.logs, at.log) && !yield(at.record, nil) {
			return nil
		}
	}
}

package jsonl

import (
	"context"
	"iter"
	"path/filepath"
	"slices"
	"time"

	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/host/disk"
)

// Read yields the records that session had when reading began, as a stream: it needs memory for the
// longest line, not for the log. If another process is writing the session, or died doing so, Read ends
// before the first incomplete record.
func (s *Store) Read(ctx context.Context, session string, after uint64,
	logs ...event.Log) iter.Seq2[event.Record, error] {
	return s.ReadWhere(ctx, session, after, nil, logs...)
}

// ReadWhere is Read for callers that can select records by the text of their lines: it only decodes and
// yields records whose line wants accepts. It may call wants from several goroutines at once.
func (s *Store) ReadWhere(ctx context.Context, session string, after uint64, wants func(line []byte) bool,
	logs ...event.Log) iter.Seq2[event.Record, error] {
	if len(logs) == 0 {
		logs = event.AllLogs
	}
	return func(yield func(event.Record, error) bool) {
		if err := checkID(session); err != nil {
			yield(event.Record{}, err)
			return
		}
		if err := s.read(ctx, session, after, wants, logs, yield); err != nil {
			yield(event.Record{}, message.Errorf("read session %s: %w", session, err))
		}
	}
}

// read returns an error only while yield wants more. For a session claimed here the extent is known: it
// reads only the requested logs, and incomplete data is an error. For others all three logs determine
// the end.
func (s *Store) read(ctx context.Context, session string, after uint64, wants func([]byte) bool, logs []event.Log,
	yield func(event.Record, error) bool) error {
	held := s.findClaim(session)
	var sizes [logCount]int64
	if held != nil {
		held.mu.Lock()
		last := held.last
		for i := range held.logs {
			sizes[i] = held.logs[i].size
		}
		held.mu.Unlock()
		if last <= after {
			return ctx.Err()
		}
	}
	m := new(logMerger)
	defer m.close()
	for _, l := range event.AllLogs {
		wanted, size := slices.Contains(logs, l), sizes[logIndex(l)]
		if held != nil && (!wanted || size == 0) {
			continue
		}
		v := readOptions{decode: wanted, after: after, limit: size, wants: wants}
		if held == nil {
			v.validStamp = func() disk.Stamp { return s.lastValidStamps(session)[logIndex(l)] }
		}
		if err := m.addLog(s.o.Disk, filepath.Join(s.dir, session), l, v); err != nil {
			return err
		}
	}
	for seq := uint64(1); ; seq++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		at, err := m.next()
		if err != nil {
			return err
		}
		for _, log := range m.scanners {
			if held != nil && log.seq == 0 && log.end != sizes[logIndex(log.log)] {
				return message.Errorf("%s log is damaged at byte %d", log.log, log.end)
			}
		}
		if at == nil || held == nil && at.seq != seq {
			if held == nil && s.o.OnTruncated != nil && (m.hasMore() ||
				s.o.Heads.openFile(filepath.Join(s.dir, session), session).readLast().Seq >= seq) {
				s.o.OnTruncated(session, seq-1)
			}
			if held == nil && !m.hasMore() {
				s.saveValidStamps(session, m)
			}
			return nil
		}
		if at.seq > after && slices.Contains(logs, at.log) && !at.skipped && !yield(at.record, nil) {
			return nil
		}
	}
}

// stamps are those of a session's logs when completely valid.
type stamps [logCount]disk.Stamp

// lastValidStamps returns the stamps of a session's logs when they were last completely valid, as seen by this
// process or an earlier one.
func (s *Store) lastValidStamps(session string) stamps {
	s.mu.Lock()
	defer s.mu.Unlock()
	whole, known := s.validStamps[session]
	if !known {
		whole = s.o.Heads.openFile(filepath.Join(s.dir, session), session).validStamps()
		s.validStamps[session] = whole
	}
	return whole
}

// minStampAge is the minimum age of a log's last change to trust its stamp: within one clock tick it may
// have been changed again.
const minStampAge = 2 * time.Second

// saveValidStamps saves that the logs of a session are completely valid.
func (s *Store) saveValidStamps(session string, m *logMerger) {
	now := time.Now()
	if s.o.Now != nil {
		now = s.o.Now()
	}
	var whole stamps
	for _, log := range m.scanners {
		if log.size >= minCachedLog && log.stamp.ChangeTime != 0 &&
			now.Sub(time.Unix(0, max(log.stamp.ModTime, log.stamp.ChangeTime))) > minStampAge {
			whole[logIndex(log.log)] = log.stamp
		}
	}
	if whole == (stamps{}) || whole == s.lastValidStamps(session) {
		return
	}
	s.mu.Lock()
	s.validStamps[session] = whole
	s.mu.Unlock()
	s.o.Heads.openFile(filepath.Join(s.dir, session), session).saveValidStamps(whole)
}

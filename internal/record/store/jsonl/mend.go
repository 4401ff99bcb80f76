package jsonl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/host/disk"
	"coder/internal/record/audit"
)

// repair determines the extent of the session, cuts off the rest, and compares what remains with the
// signed heads. A session without a head here is signed as found here, not as written here.
func (c *claim) repair(ctx context.Context, report func(Repair)) error {
	m := new(logMerger)
	defer m.close()
	repair, err := c.examine(ctx, m)
	if err != nil {
		return err
	}
	for _, s := range m.scanners {
		if err := c.repairLog(s, &repair); err != nil {
			return err
		}
	}
	head := c.currentHead(repair.Known > 0 || repair.Rewritten)
	if head.Found = c.heads.newest == 0 && c.last > 0; head.Found || head.Repaired {
		c.heads.add(head)
	}
	if c.markedInMemory = len(c.heads.existingMarks(c.dir)) > 0; c.markedInMemory {
		repair.ContinuedInMemory = true
	}
	if report != nil && (len(repair.Moved) > 0 || repair.Known > 0 || repair.Rewritten || repair.ContinuedInMemory ||
		len(repair.Earlier) > 0) {
		report(repair)
	}
	return nil
}

// examine determines the extent of the session and its problems, without changing anything.
func (c *claim) examine(ctx context.Context, m *logMerger) (Repair, error) {
	head, repair := c.heads.readLast(), Repair{Session: c.session}
	for _, l := range event.AllLogs {
		if err := m.addLog(c.disk, c.dir, l, readOptions{}); err != nil {
			return repair, err
		}
	}
	if err := c.readRecords(ctx, m, head, &repair); err != nil {
		return repair, err
	}
	repair.Last = c.last
	// A dying process leaves one incomplete line.
	beyond, torn := 0, false
	for _, s := range m.scanners {
		i := logIndex(s.log)
		switch {
		case s.hasMore() && s.seq == 0:
			repair.File = c.logs[i].path
			torn = !hasNewline(io.NewSectionReader(s.f, s.start, s.size-s.start))
			beyond++
		case s.hasMore():
			beyond++
		case repair.File == "" && head.Ends[i].Seq > c.logs[i].end.Seq:
			repair.File = c.logs[i].path
		}
	}
	repair.Cut, repair.Torn = beyond > 0, beyond == 1 && torn
	if repair.File == "" {
		repair.File = c.dir
	}
	if head.Seq > c.last {
		repair.Known = head.Seq
	}
	return repair, nil
}

// Damage returns the problems that Claim would find now, without changing anything. While another
// process writes the session, a problem counts only if a second call finds it too.
func (s *Store) Damage(ctx context.Context, session string) (Repair, error) {
	if err := checkID(session); err != nil {
		return Repair{}, err
	}
	m := new(logMerger)
	defer m.close()
	repair, err := s.newClaim(session).examine(ctx, m)
	if err != nil {
		err = message.Errorf("read session %s: %w", session, err)
	}
	return repair, err
}

// readRecords reads the records up to the first gap. Every scanner is then at the position to cut its log.
func (c *claim) readRecords(ctx context.Context, m *logMerger, head audit.Head, repair *Repair) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		at, err := m.next()
		if err != nil {
			return err
		}
		if at == nil || at.seq != c.last+1 {
			return nil
		}
		c.last = at.seq
		if at.lacksChecksum && at.seq > head.Seq {
			repair.Earlier = append(repair.Earlier, at.seq)
		}
		i := logIndex(at.log)
		end := &c.logs[i].end
		*end = audit.End{Seq: at.seq, Link: audit.LinkAfter(at.line)}
		if signed := head.Ends[i]; at.seq == signed.Seq && *end != signed {
			repair.Rewritten, repair.File = true, c.logs[i].path
		}
	}
}

func hasNewline(r io.Reader) bool {
	buf := make([]byte, readAhead)
	for {
		n, err := r.Read(buf)
		if bytes.IndexByte(buf[:n], '\n') >= 0 {
			return true
		}
		if err != nil {
			return false
		}
	}
}

// repairLog reduces a log to its complete records.
func (c *claim) repairLog(s *scanner, repair *Repair) error {
	c.logs[logIndex(s.log)].size = s.start
	if s.f == nil || s.start == s.size && !s.converted {
		return nil
	}
	from := s.start
	if s.converted {
		from = 0
		repair.Converted = true
		if !repair.Cut {
			repair.File = s.f.Name()
		}
	}
	path, err := c.moveAside(io.NewSectionReader(s.f, from, s.size-from), s.log)
	if err != nil {
		return message.Errorf("set aside the end of the %s log: %w", s.log, err)
	}
	if s.converted {
		path := c.logs[logIndex(s.log)].path
		lines := &crStripper{from: io.NewSectionReader(s.f, 0, s.start)}
		err := disk.Replace(c.disk, path+".tmp", path, fileMode, func(f disk.File) error { return c.writeNew(f, lines) })
		if err == nil {
			c.logs[logIndex(s.log)].size = lines.n
		}
	} else {
		err = c.truncateLog(s)
	}
	if err != nil {
		return message.Errorf("truncate the %s log: %w", s.log, err)
	}
	repair.Moved = append(repair.Moved, MovedPart{Log: s.log, Bytes: s.size - from, Path: path})
	return nil
}

// moveAside copies what is about to be cut into the first unused torn file. The copy is synced before the
// log is shortened.
func (c *claim) moveAside(tail io.Reader, log event.Log) (path string, err error) {
	var f disk.File
	for n := 1; n == 1 || errors.Is(err, fs.ErrExist); n++ {
		path = filepath.Join(c.dir, fmt.Sprintf("torn-%d-%s.jsonl", n, log))
		f, err = c.disk.Open(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	}
	if err != nil {
		return "", err
	}
	if err := errors.Join(c.writeNew(f, tail), f.Close()); err != nil {
		return "", errors.Join(err, c.disk.Remove(path))
	}
	return path, nil
}

// writeNew writes a new file of the session.
func (c *claim) writeNew(f disk.File, from io.Reader) error {
	_, err := io.Copy(f, from)
	if err == nil && c.fsync != FsyncNever {
		err = errors.Join(f.Sync(), disk.SyncDirs(c.disk, c.dir))
	}
	return err
}

func (c *claim) truncateLog(s *scanner) error {
	f, err := c.disk.Open(c.logs[logIndex(s.log)].path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	err = f.Truncate(s.start)
	if err == nil && c.fsync != FsyncNever {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// crStripper reads text without carriage returns: in a log they only occur at line ends.
type crStripper struct {
	from io.Reader
	n    int64 // bytes so far
}

func (u *crStripper) Read(p []byte) (int, error) {
	n, err := u.from.Read(p)
	kept := p[:0]
	for _, b := range p[:n] {
		if b != '\r' {
			kept = append(kept, b)
		}
	}
	u.n += int64(len(kept))
	return len(kept), err
}

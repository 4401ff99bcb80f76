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
	"coder/internal/host/disk"
	"coder/internal/record/audit"
)

// mend determines the extent of the session, cuts off the rest, and compares what remains with the
// signed heads. A session without a head here is signed as found here, not as written here.
func (c *claim) mend(ctx context.Context, report func(Repair)) error {
	m := new(merge)
	defer m.close()
	repair, err := c.examine(ctx, m)
	if err != nil {
		return err
	}
	for _, s := range m.scanners {
		if err := c.mendLog(s, &repair); err != nil {
			return err
		}
	}
	head := c.head(repair.Known > 0 || repair.Rewritten)
	if head.Found = c.heads.newest == 0 && c.last > 0; head.Found || head.Mended {
		c.heads.add(head)
	}
	if c.apart = len(c.heads.marks(c.dir)) > 0; c.apart {
		repair.Apart = true
	}
	if report != nil && (len(repair.Aside) > 0 || repair.Known > 0 || repair.Rewritten || repair.Apart || len(repair.Earlier) > 0) {
		report(repair)
	}
	return nil
}

// examine determines the extent of the session and its problems, without changing anything.
func (c *claim) examine(ctx context.Context, m *merge) (Repair, error) {
	head, repair := c.heads.last(), Repair{Session: c.session}
	for _, l := range event.Logs {
		if err := m.open(c.disk, c.dir, l, view{}); err != nil {
			return repair, err
		}
	}
	if err := c.recall(ctx, m, head, &repair); err != nil {
		return repair, err
	}
	repair.Last = c.last
	// A dying process leaves one incomplete line.
	beyond, torn := 0, false
	for _, s := range m.scanners {
		i := place(s.log)
		switch {
		case s.more() && s.seq == 0:
			repair.File = c.logs[i].path
			torn = !hasNewline(io.NewSectionReader(s.f, s.start, s.size-s.start))
			beyond++
		case s.more():
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
	m := new(merge)
	defer m.close()
	repair, err := s.unread(session).examine(ctx, m)
	if err != nil {
		err = fmt.Errorf("read session %s: %w", session, err)
	}
	return repair, err
}

// recall reads the records up to the first gap. Every scanner is then at the position to cut its log.
func (c *claim) recall(ctx context.Context, m *merge, head audit.Head, repair *Repair) error {
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
		if at.odd && at.seq > head.Seq {
			repair.Earlier = append(repair.Earlier, at.seq)
		}
		i := place(at.log)
		end := &c.logs[i].end
		*end = audit.End{Seq: at.seq, Link: audit.After(at.line)}
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

// mendLog reduces a log to its complete records.
func (c *claim) mendLog(s *scanner, repair *Repair) error {
	c.logs[place(s.log)].size = s.start
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
	path, err := c.setAside(io.NewSectionReader(s.f, from, s.size-from), s.log)
	if err != nil {
		return fmt.Errorf("set aside the end of the %s log: %w", s.log, err)
	}
	if s.converted {
		path := c.logs[place(s.log)].path
		lines := &unixLines{from: io.NewSectionReader(s.f, 0, s.start)}
		err := disk.Replace(c.disk, path+".tmp", path, fileMode, func(f disk.File) error { return c.fill(f, lines) })
		if err == nil {
			c.logs[place(s.log)].size = lines.n
		}
	} else {
		err = c.shorten(s)
	}
	if err != nil {
		return fmt.Errorf("truncate the %s log: %w", s.log, err)
	}
	repair.Aside = append(repair.Aside, Aside{Log: s.log, Bytes: s.size - from, Path: path})
	return nil
}

// setAside copies what is about to be cut into the first unused torn file. The copy is synced before the
// log is shortened.
func (c *claim) setAside(tail io.Reader, log event.Log) (path string, err error) {
	var f disk.File
	for n := 1; n == 1 || errors.Is(err, fs.ErrExist); n++ {
		path = filepath.Join(c.dir, fmt.Sprintf("torn-%d-%s.jsonl", n, log))
		f, err = c.disk.Open(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	}
	if err != nil {
		return "", err
	}
	if err := errors.Join(c.fill(f, tail), f.Close()); err != nil {
		return "", errors.Join(err, c.disk.Remove(path))
	}
	return path, nil
}

// fill writes a new file of the session.
func (c *claim) fill(f disk.File, from io.Reader) error {
	_, err := io.Copy(f, from)
	if err == nil && c.fsync != Never {
		err = errors.Join(f.Sync(), disk.SyncDirs(c.disk, c.dir))
	}
	return err
}

func (c *claim) shorten(s *scanner) error {
	f, err := c.disk.Open(c.logs[place(s.log)].path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	err = f.Truncate(s.start)
	if err == nil && c.fsync != Never {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// unixLines reads text without carriage returns: in a log they only occur at line ends.
type unixLines struct {
	from io.Reader
	n    int64 // bytes so far
}

func (u *unixLines) Read(p []byte) (int, error) {
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

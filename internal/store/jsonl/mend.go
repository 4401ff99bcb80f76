package jsonl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"coder/internal/audit"
	"coder/internal/event"
)

// mend finds out how far the session goes and cuts off what lies beyond.
func (c *claim) mend(ctx context.Context, report func(Repair)) error {
	m, err := openAll(c.dir, 0)
	if err != nil {
		return err
	}
	defer m.close()
	if err := c.recall(ctx, m); err != nil {
		return err
	}
	for _, s := range m.scanners {
		c.logs[place(s.log)].size = s.start
		if s.start == s.size || s.f == nil {
			continue
		}
		repair, err := c.cut(s)
		if err != nil {
			return err
		}
		if report != nil {
			report(repair)
		}
	}
	return nil
}

// recall goes through the records up to the first gap. Every scanner then
// stands where its log is to be cut.
func (c *claim) recall(ctx context.Context, m *merge) error {
	var lastAudit []byte
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		at, err := m.next()
		if err != nil {
			return err
		}
		if at == nil || at.seq != c.last+1 {
			break
		}
		c.last = at.seq
		if at.log == event.Audit {
			lastAudit = append(lastAudit[:0], at.line...)
		}
	}
	if lastAudit != nil {
		c.prev = audit.Hash(lastAudit)
	}
	return nil
}

// cut moves the end of a log into a file of its own. The copy is safe before
// the log is made shorter.
func (c *claim) cut(s *scanner) (Repair, error) {
	path, err := c.setAside(io.NewSectionReader(s.f, s.start, s.size-s.start), s.log)
	if err != nil {
		return Repair{}, fmt.Errorf("set aside the end of the %s log: %w", s.log, err)
	}
	if err := c.shorten(s); err != nil {
		return Repair{}, fmt.Errorf("cut the %s log: %w", s.log, err)
	}
	return Repair{Session: c.session, Log: s.log, Last: c.last, Bytes: s.size - s.start, Path: path}, nil
}

func (c *claim) setAside(tail io.Reader, log event.Log) (path string, err error) {
	f, err := createTorn(c.dir, log)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(f, tail)
	if err == nil && c.fsync != Never {
		err = errors.Join(f.Sync(), syncDirs(c.dir))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// createTorn makes the first torn file of log that is not there yet.
func createTorn(dir string, log event.Log) (*os.File, error) {
	for n := 1; ; n++ {
		name := filepath.Join(dir, fmt.Sprintf("torn-%d-%s.jsonl", n, log))
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
}

func (c *claim) shorten(s *scanner) error {
	f, err := os.OpenFile(logPath(c.dir, s.log), os.O_WRONLY|noFollow, 0)
	if err != nil {
		return err
	}
	err = f.Truncate(s.start)
	if err == nil && c.fsync != Never {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

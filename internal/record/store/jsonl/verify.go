package jsonl

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/host/disk"
	"coder/internal/record/audit"
)

// Verify checks that the logs of session are unchanged: see [audit.Verify]. A session in use may be
// ahead of its heads, so it reads the heads first.
func (s *Store) Verify(session string) (audit.Report, error) {
	if err := checkID(session); err != nil {
		return audit.Report{}, err
	}
	dir := filepath.Join(s.dir, session)
	heads, err := s.o.Heads.openFile(dir, session).readAll(0)
	if err != nil {
		return audit.Report{}, message.Errorf("read the signatures: %w", err)
	}
	var sources []audit.Source
	for _, l := range event.AllLogs {
		f, err := os.OpenFile(Path(dir, l), os.O_RDONLY|disk.NoFollow, 0)
		if errors.Is(err, fs.ErrNotExist) {
			sources = append(sources, audit.Source{Log: l, Name: Path(dir, l), Data: strings.NewReader("")})
			continue
		}
		if err != nil {
			return audit.Report{}, err
		}
		defer f.Close()
		sources = append(sources, audit.Source{Log: l, Name: f.Name(), Data: io.Reader(f)})
	}
	return audit.Verify(sources, heads)
}

// MarkImported records that what is written into the claimed session comes from elsewhere and was not
// done here.
func (s *Store) MarkImported(session string) {
	if c := s.findClaim(session); c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.imported = true
		c.heads.add(c.currentHead(false))
	}
}

// MarkInMemory records that session continues in memory from here on, so that its logs are known to be
// incomplete. The mark is removed when the logs are complete again, or when a later process has settled
// their open calls.
func (s *Store) MarkInMemory(session string) error {
	if err := checkID(session); err != nil {
		return err
	}
	dir := filepath.Join(s.dir, session)
	if c := s.findClaim(session); c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.markedInMemory = true
	}
	err, heads := createEmpty(s.o.Disk, filepath.Join(dir, markName)), s.o.Heads.openFile(dir, session)
	if err == nil || heads.base == "" {
		return err
	}
	// The mark goes beside the heads if it cannot go beside the logs.
	if other := os.MkdirAll(heads.Dir, dirMode); other != nil {
		return errors.Join(err, other)
	}
	if other := createEmpty(disk.System, heads.base+markFile); other != nil {
		return errors.Join(err, other)
	}
	return nil
}

package jsonl

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"coder/internal/core/event"
	"coder/internal/host/disk"
)

// Format is the format of sessions that this program writes. It upgrades and continues sessions of lower
// formats, and only reads those of higher ones.
//
// In format 1 the audit log is audit.jsonl. From format 2 on, the audit log of format N is
// audit.N.jsonl, and audit.jsonl is a link to it. Programs that only know format 1 open no log that is a
// link, so they refuse the session immediately, while users and their scripts can still read
// audit.jsonl.
const Format = 2

const firstFormat = 1 // the format without a number

// Path returns the path of a log of the session in dir.
func Path(dir string, l event.Log) string {
	if l == event.LogAudit {
		return auditPath(dir, FormatOf(dir))
	}
	return logPath(dir, l)
}

func logPath(dir string, l event.Log) string { return filepath.Join(dir, l.String()+".jsonl") }

// FormatOf returns the format of the session in dir.
func FormatOf(dir string) int {
	link := logPath(dir, event.LogAudit)
	if target, err := os.Readlink(link); err == nil {
		var n int
		if _, err := fmt.Sscanf(target, "audit.%d.jsonl", &n); err == nil && n > firstFormat &&
			target == filepath.Base(auditPath(dir, n)) {
			return n
		}
		return firstFormat // a planted link, which nothing follows
	}
	if _, err := os.Lstat(link); err == nil {
		return firstFormat
	}
	if _, err := os.Lstat(auditPath(dir, Format)); err == nil {
		return Format // the link is missing
	}
	return firstFormat
}

func auditPath(dir string, format int) string {
	if format == firstFormat {
		return logPath(dir, event.LogAudit)
	}
	return filepath.Join(dir, fmt.Sprintf("%s.%d.jsonl", event.LogAudit, format))
}

// checkFormat returns an error if only newer programs may write to the session, or nil.
func checkFormat(dir, session string) error {
	n := FormatOf(dir)
	if n <= Format {
		return nil
	}
	e := &event.NewerFormatError{Session: session, Format: n, SupportedFormat: Format}
	if f, err := disk.System.Open(filepath.Join(dir, "lock"), os.O_RDONLY, 0); err == nil {
		e.Writer = readHolder(f).Version
		_ = f.Close()
	}
	return e
}

// upgrade converts a claimed session to [Format]. On a file system without links it keeps its format.
func (c *claim) upgrade() error {
	link, own := logPath(c.dir, event.LogAudit), auditPath(c.dir, Format)
	old := &c.logs[logIndex(event.LogAudit)]
	switch _, err := os.Readlink(link); {
	case err == nil: // already this format, or a planted link, which is detected on opening
		return nil
	case old.path == link:
		if _, err := os.Lstat(own); err == nil {
			return nil // both exist: neither may replace the other
		}
		if _, err := os.Lstat(link); err == nil {
			if err := c.disk.Rename(link, own); err != nil {
				return err
			}
		}
	}
	err := c.disk.Symlink(filepath.Base(own), link)
	if err == nil {
		old.path = own
		c.markDirChanged()
		return nil
	}
	if old.path == link {
		if back := c.disk.Rename(own, link); back != nil && !errors.Is(back, fs.ErrNotExist) {
			return errors.Join(err, back)
		}
	}
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EINVAL) {
		return nil
	}
	return err
}

package jsonl

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"coder/internal/audit"
	"coder/internal/event"
)

// claim is a session that this process writes.
type claim struct {
	session, dir string
	lock         *fileLock
	fsync        Fsync

	mu           sync.Mutex // guards the fields below
	last         uint64
	prev         string // hash of the last audit line
	logs         [logCount]logFile
	unsyncedDirs bool // names of files were made that may not be on the disk
	closed       bool
}

const logCount = 3

// place is where a log stands among the three.
func place(l event.Log) int { return int(l) - int(event.Domain) }

// logFile is one log being written. What is beyond size does not count.
type logFile struct {
	path  string
	f     *os.File // nil until first written
	size  int64
	dirty bool // written since the last sync
}

func newClaim(session, dir string, lock *fileLock, fsync Fsync) *claim {
	c := &claim{session: session, dir: dir, lock: lock, fsync: fsync}
	for _, l := range event.Logs {
		c.logs[place(l)].path = logPath(dir, l)
	}
	return c
}

func logPath(dir string, l event.Log) string { return filepath.Join(dir, l.String()+".jsonl") }

func (c *claim) append(last uint64, rs []event.Record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || last != c.last || !consecutive(last, rs) {
		return event.ErrConflict
	}
	b, err := encode(rs, c.prev)
	if err != nil {
		return err
	}
	if err := c.write(b); err != nil {
		return errors.Join(err, c.takeBack(b))
	}
	for i := range c.logs {
		c.logs[i].size += int64(len(b.lines[i]))
	}
	c.last, c.prev = rs[len(rs)-1].Seq, b.prev
	return nil
}

func consecutive(last uint64, rs []event.Record) bool {
	for i, r := range rs {
		if r.Session != rs[0].Session || r.Seq != last+1+uint64(i) {
			return false
		}
	}
	return true
}

// batch is what one Append adds to each log.
type batch struct {
	lines    [logCount][]byte
	first    int // the log of the first record
	decisive bool
	prev     string // hash of the last audit line, these included
}

func encode(rs []event.Record, prev string) (batch, error) {
	b := batch{prev: prev, first: place(event.LogOf(rs[0].Event))}
	for _, r := range rs {
		log, prev := event.LogOf(r.Event), ""
		if log == event.Audit {
			prev = b.prev
		}
		line, err := event.Encode(r, prev)
		if err != nil {
			return batch{}, err
		}
		if log == event.Audit {
			b.prev = audit.Hash(line)
		}
		to := &b.lines[place(log)]
		if *to == nil {
			*to = append(line, '\n') // most batches have one line
		} else {
			*to = append(append(*to, line...), '\n')
		}
		b.decisive = b.decisive || event.Decisive(r.Event)
	}
	return b, nil
}

// write puts b into the files. The log of the first record comes last: should
// the process die in between, the others begin after a gap.
func (c *claim) write(b batch) error {
	for i := range c.logs {
		if i == b.first {
			continue
		}
		if err := c.writeLog(i, b.lines[i]); err != nil {
			return err
		}
	}
	if err := c.writeLog(b.first, b.lines[b.first]); err != nil {
		return err
	}
	if c.fsync == Always || c.fsync == Decisions && b.decisive {
		return c.sync()
	}
	return nil
}

func (c *claim) writeLog(i int, lines []byte) error {
	if len(lines) == 0 {
		return nil
	}
	l := &c.logs[i]
	if l.f == nil {
		f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|noFollow, fileMode)
		if err != nil {
			return err
		}
		l.f = f
		c.unsyncedDirs = c.unsyncedDirs || l.size == 0
	}
	l.dirty = true
	_, err := l.f.WriteAt(lines, l.size)
	return err
}

// takeBack undoes a write of b that did not succeed.
func (c *claim) takeBack(b batch) error {
	var errs []error
	for i := range c.logs {
		if l := &c.logs[i]; l.f != nil && len(b.lines[i]) > 0 {
			errs = append(errs, l.f.Truncate(l.size))
		}
	}
	return errors.Join(errs...)
}

func (c *claim) sync() error {
	for i := range c.logs {
		l := &c.logs[i]
		if !l.dirty {
			continue
		}
		if err := l.f.Sync(); err != nil {
			return err
		}
		l.dirty = false
	}
	if !c.unsyncedDirs {
		return nil
	}
	if err := syncDirs(c.dir, filepath.Dir(c.dir), filepath.Dir(filepath.Dir(c.dir))); err != nil {
		return err
	}
	c.unsyncedDirs = false
	return nil
}

// syncDirs makes sure of the names in dirs, on systems where that can be done.
func syncDirs(dirs ...string) error {
	for _, dir := range dirs {
		if err := syncDir(dir); err != nil && !cannotSync(err) {
			return err
		}
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func cannotSync(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EINVAL)
}

func (c *claim) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	var errs []error
	for i := range c.logs {
		if f := c.logs[i].f; f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(append(errs, c.lock.release())...)
}

// sizes tells how far the logs go, for a reader.
func (c *claim) sizes() (sizes [logCount]int64, last uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.logs {
		sizes[i] = c.logs[i].size
	}
	return sizes, c.last
}

// makeDir makes dir, and what it stands in where that is missing. isNew tells
// that dir itself was not there.
func makeDir(dir string) (isNew bool, err error) {
	err = os.Mkdir(dir, dirMode)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(dir), dirMode); err != nil {
			return false, err
		}
		err = os.Mkdir(dir, dirMode)
	}
	if !errors.Is(err, fs.ErrExist) {
		return err == nil, err
	}
	info, err := os.Lstat(dir)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open session", Path: dir, Err: syscall.ENOTDIR}
	}
	return false, err
}

package jsonl

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"coder/internal/core/event"
	"coder/internal/host/disk"
	"coder/internal/record/audit"
)

// claim is a session that this process writes.
type claim struct {
	session, dir string
	disk         disk.Disk
	lock         *fileLock
	fsync        Fsync
	heads        *headFile
	dirSyncer    *disk.DirSyncer

	mu             sync.Mutex // guards the fields below
	last           uint64
	logs           [logCount]logFile
	unsynced       []string // folders whose names may not be synced
	ahead          *aheadSync
	brokenErr      error // why the state of the disk is unknown
	imported       bool  // what is written comes from elsewhere
	markedInMemory bool  // marked as continued in memory
	closed         bool
}

const logCount = 3

// logIndex returns the index of a log among the three.
func logIndex(l event.Log) int { return int(l) - int(event.LogDomain) }

// logFile is one log being written. Bytes beyond size do not count.
type logFile struct {
	path  string
	f     disk.File // nil until first written
	size  int64
	end   audit.End // newest record
	dirty bool      // written since the last sync
}

func (c *claim) appendRecords(last uint64, rs []event.Record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || last != c.last || !event.AreConsecutive(last, rs) {
		return event.ErrConflict
	}
	if c.brokenErr != nil {
		return c.brokenErr
	}
	b := batch{first: logIndex(event.LogOf(rs[0].Event))}
	for i := range c.logs {
		b.ends[i] = c.logs[i].end
	}
	for _, r := range rs {
		line, err := event.Encode(r)
		if err != nil {
			return err
		}
		i := logIndex(event.LogOf(r.Event))
		line, link := audit.AddChecksum(line, b.ends[i].Link)
		b.ends[i] = audit.End{Seq: r.Seq, Link: link}
		if b.lines[i] == nil {
			b.lines[i] = append(line, '\n') // most batches have one line per log
		} else {
			b.lines[i] = append(append(b.lines[i], line...), '\n')
		}
		if event.IsIrreversible(r.Event) {
			b.decisive = true
			_, call := r.Event.(event.ToolCallRequested)
			b.hasDecision = b.hasDecision || !call
		}
	}
	if err := c.write(b); err != nil {
		var errs []error
		for i := range c.logs {
			if l := &c.logs[i]; l.f != nil && len(b.lines[i]) > 0 {
				errs = append(errs, l.f.Truncate(l.size))
			}
		}
		if undone := errors.Join(errs...); undone != nil {
			c.brokenErr = err // what was written may or may not be there
		}
		return err
	}
	for i := range c.logs {
		c.logs[i].size += int64(len(b.lines[i]))
		c.logs[i].end = b.ends[i]
	}
	c.last = rs[len(rs)-1].Seq
	if b.hasDecision || last == 0 { // sign that it began here, and the extent of the logs
		c.heads.add(c.currentHead(false))
	}
	if b.hasDecision {
		// The logs are complete again: remove the marks.
		if c.markedInMemory {
			var errs []error
			for _, path := range c.heads.existingMarks(c.dir) {
				errs = append(errs, c.disk.Remove(path))
			}
			c.markedInMemory = errors.Join(errs...) != nil
		}
	}
	return nil
}

// currentHead returns the current extent of the logs.
func (c *claim) currentHead(mended bool) audit.Head {
	h := audit.Head{Seq: c.last, Repaired: mended, Imported: c.imported}
	for i := range c.logs {
		h.Ends[i] = c.logs[i].end
	}
	return h
}

// batch is what one Append adds to each log.
type batch struct {
	lines       [logCount][]byte
	ends        [logCount]audit.End // of the logs, including these lines
	first       int                 // log of the first record
	decisive    bool                // must be synced before anyone acts on it
	hasDecision bool                // contains a decision or an end, not only calls
}

// write writes b to the files. The log of the first record comes last: if the process dies in between,
// the others begin after a gap.
func (c *claim) write(b batch) error {
	for n := range logCount {
		i := (b.first + 1 + n) % logCount
		if err := c.writeLog(i, b.lines[i]); err != nil {
			return err
		}
	}
	if c.fsync == FsyncNever || c.fsync == FsyncDecisions && !b.decisive {
		return nil
	}
	if err := c.dirSyncer.Sync(); err != nil { // sync first what the record says is done
		return err
	}
	if err := c.syncLogs(); err != nil {
		c.brokenErr = err // the system may have dropped unwritten data
		return err
	}
	c.finishAhead()
	err := disk.SyncDirs(c.disk, c.unsynced...)
	if err == nil {
		c.unsynced = nil
	}
	return err
}

// syncLogs syncs the written logs, all at once: a file system then often commits them in one step.
func (c *claim) syncLogs() error {
	var errs [logCount]error
	var all sync.WaitGroup
	for i := range c.logs {
		if l := &c.logs[i]; l.dirty {
			all.Go(func() { errs[i] = l.f.Sync() })
		}
	}
	all.Wait()
	for i := range c.logs {
		c.logs[i].dirty = c.logs[i].dirty && errs[i] != nil
	}
	return errors.Join(errs[:]...)
}

// aheadSync is a sync of folders that has begun before a record needs it.
type aheadSync struct {
	dirs []string
	done chan struct{}
	err  error // valid once done is closed
}

// syncAhead begins to sync the folders of a new session, so that the first record that needs them does not wait.
func (c *claim) syncAhead() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.ahead != nil || c.fsync == FsyncNever || len(c.unsynced) == 0 {
		return
	}
	a := &aheadSync{dirs: c.unsynced, done: make(chan struct{})}
	c.ahead, c.unsynced = a, nil
	go func() {
		defer close(a.done)
		a.err = disk.SyncDirs(c.disk, a.dirs...)
	}()
}

// finishAhead waits for the sync that began ahead. If it failed, its folders are unsynced again.
func (c *claim) finishAhead() {
	if c.ahead == nil {
		return
	}
	if <-c.ahead.done; c.ahead.err != nil {
		c.unsynced = append(c.ahead.dirs, c.unsynced...)
	}
	c.ahead = nil
}

// markDirChanged records that the session's folder has new names.
func (c *claim) markDirChanged() {
	if !slices.Contains(c.unsynced, c.dir) {
		c.unsynced = append(c.unsynced, c.dir)
	}
}

func (c *claim) writeLog(i int, lines []byte) error {
	if len(lines) == 0 {
		return nil
	}
	l := &c.logs[i]
	if l.f == nil {
		f, err := c.disk.Open(l.path, os.O_WRONLY|os.O_CREATE, fileMode)
		if err != nil {
			return err
		}
		l.f = f
		if l.size == 0 {
			c.markDirChanged()
		}
	}
	l.dirty = true
	n, err := l.f.WriteAt(lines, l.size)
	if err == nil && n < len(lines) {
		err = io.ErrShortWrite
	}
	return err
}

func (c *claim) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.brokenErr == nil {
		c.heads.add(c.currentHead(false))
	}
	c.finishAhead()
	var errs []error
	if c.fsync != FsyncNever {
		errs = append(errs, c.dirSyncer.Sync())
	}
	if c.heads.f != nil {
		errs = append(errs, c.heads.f.Close())
	}
	for i := range c.logs {
		if f := c.logs[i].f; f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(append(errs, c.lock.release())...)
}

// makeDir creates dir and its missing parents. isNew reports that dir did not exist.
func makeDir(d disk.Disk, dir string) (isNew bool, err error) {
	err = d.Mkdir(dir, dirMode)
	if errors.Is(err, fs.ErrNotExist) {
		if err := disk.MkdirAll(d, filepath.Dir(dir), dirMode); err != nil {
			return false, err
		}
		err = d.Mkdir(dir, dirMode)
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

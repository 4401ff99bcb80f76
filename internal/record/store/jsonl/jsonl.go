// Package jsonl saves sessions in human-readable, append-only files: one JSON object per line.
//
//	<dir>/<session>/events.jsonl         user and agent
//	<dir>/<session>/audit.2.jsonl        agent and world; audit.jsonl links to it (see [Format])
//	<dir>/<session>/conversation.jsonl   agent and model
//	<dir>/<session>/lock                 who writes now
//	<dir>/<session>/owner                the same, on a file system without locks
//	<dir>/<session>/torn-<n>-<log>.jsonl what was torn or damaged, set aside
//	<dir>/<session>/apart                the session continued in memory
//
// The three logs are one: their records are numbered together, and a reader gets everything that merges
// without a gap. Every line has a checksum of itself and of the earlier ones (see package audit). A
// writer that dies during an Append leaves a torn line or a gap. The next [Store.Claim] cuts there, sets
// aside what it cut if a checksum is invalid, and reports it. An acknowledged record is never beyond a
// place where a writer died, nothing is ever deleted, and a session that was never claimed can still be
// read. The extent of the logs is also saved elsewhere, signed: see [Heads].
//
// Append is atomic for running processes: it undoes everything if it fails. After a crash during Append,
// the session has none of the records, or the first few.
package jsonl

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/host/disk"
	"coder/internal/record/audit"
)

// Fsync says when a write must be synced to disk.
type Fsync uint8

// The sync policies.
const (
	FsyncDecisions Fsync = iota // before anyone acts on a decision: see [event.IsIrreversible]
	FsyncAlways                 // after every write
	FsyncNever                  // whenever the operating system does it
)

// Options configure a Store. The zero value is valid.
type Options struct {
	Fsync Fsync
	// Now dates a claim, shown to a user whose claim is refused, and gives the age of a log's last change.
	Now func() time.Time
	// Program is this program's name, shown to that user.
	Program string
	// Version returns this program's version. A newer session records it, so that older programs can name
	// the version that reads it.
	Version func() string
	// OnRepair is called if Claim finds a problem.
	OnRepair func(Repair)
	// OnTruncated is called for a session that could be read up to record last but seems to have had more: see
	// [Store.Damage].
	OnTruncated func(session string, last uint64)
	// Heads, if set, saves the extent of sessions.
	Heads *Heads
	// DirSyncer, if set, are synced before any log is.
	DirSyncer *disk.DirSyncer
	// Disk is the file system to write to; the system's if nil.
	Disk disk.Disk
}

// Repair describes problems found in a session and how they were handled. Anything outside complete
// records, or after a missing one, was moved out of the logs.
type Repair struct {
	Session string
	File    string // the affected log, or the folder of all
	Last    uint64 // the session's newest remaining record
	Known   uint64 // the newest one it is known to have had, if greater
	Moved   []MovedPart
	// Cut reports that the logs continued with incomplete or non-consecutive data. Torn means that this was
	// only a line that a dying process did not finish.
	Cut, Torn bool
	// Converted reports that line ends had been changed, and were changed back.
	Converted bool
	// Rewritten reports that records differ from those signed.
	Rewritten bool
	// Earlier lists records without checksums that an earlier version added to a later version's session.
	Earlier []uint64
	// ContinuedInMemory reports that the session continued in memory after its last record.
	ContinuedInMemory bool
}

// MayLackRecords reports whether the session may lack records that it had.
func (r Repair) MayLackRecords() bool { return r.Cut && !r.Torn || r.Known > 0 || r.ContinuedInMemory }

// MovedPart is a moved part of a log, or the log as it was.
type MovedPart struct {
	Log   event.Log
	Bytes int64
	Path  string // current path
}

// Permissions: conversations with an agent are private.
const (
	dirMode  = 0o700
	fileMode = 0o600
)

// Store is an [event.Store] in a directory. Use [Open].
type Store struct {
	dir string
	o   Options

	mu          sync.Mutex // guards the fields below
	claims      map[string]*claim
	validStamps map[string]stamps // of other sessions with completely valid logs
}

// Open returns the store in dir. It creates nothing: the first claim creates the directory.
func Open(dir string, o Options) *Store {
	if o.Disk == nil {
		o.Disk = disk.System
	}
	return &Store{dir: dir, o: o, claims: make(map[string]*claim), validStamps: make(map[string]stamps)}
}

// Claim locks session for this process, creates it if missing, and repairs its logs.
func (s *Store) Claim(ctx context.Context, session string) (release func() error, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := checkID(session); err != nil {
		return nil, err
	}
	c, err := s.acquire(ctx, session)
	if err != nil {
		return nil, message.Errorf("claim session %s: %w", session, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claims[session] = c
	return sync.OnceValue(func() error {
		s.mu.Lock()
		delete(s.claims, c.session)
		s.mu.Unlock()
		return c.close()
	}), nil
}

func (s *Store) acquire(ctx context.Context, session string) (*claim, error) {
	dir := filepath.Join(s.dir, session)
	isNew, err := makeDir(s.o.Disk, dir)
	if err != nil {
		return nil, err
	}
	if err := checkFormat(dir, session); err != nil {
		return nil, err
	}
	h := holder{PID: os.Getpid(), Program: s.o.Program}
	if s.o.Version != nil {
		h.Version = s.o.Version()
	}
	h.Host, _ = os.Hostname() // the lock is valid without a host name
	if s.o.Now != nil {
		h.Since = s.o.Now().UTC()
	}
	lock, used, err := takeLock(s.o.Disk, dir, session, h)
	if err != nil {
		return nil, err
	}
	c := s.newClaim(session)
	c.lock = lock
	if isNew && !used {
		log := filepath.Dir(dir)
		data := filepath.Dir(log)
		c.unsynced = []string{dir, log, data, filepath.Dir(data)} // any of these may be new
	} else if err := c.repair(ctx, s.o.OnRepair); err != nil {
		return nil, errors.Join(message.Errorf("mend: %w", err), lock.release())
	}
	if err := c.upgrade(); err != nil {
		return nil, errors.Join(message.Errorf("convert to session format %d: %w", Format, err), lock.release())
	}
	return c, nil
}

// newClaim returns a session about which nothing is known yet.
func (s *Store) newClaim(session string) *claim {
	dir := filepath.Join(s.dir, session)
	c := &claim{session: session, dir: dir, disk: s.o.Disk, fsync: s.o.Fsync, heads: s.o.Heads.openFile(dir, session),
		dirSyncer: s.o.DirSyncer}
	for _, l := range event.AllLogs {
		c.logs[logIndex(l)] = logFile{path: Path(dir, l), end: audit.End{Link: audit.FirstLink(l)}}
	}
	return c
}

func (s *Store) findClaim(session string) *claim {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claims[session]
}

// Append adds rs to their logs.
func (s *Store) Append(ctx context.Context, last uint64, rs ...event.Record) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(rs) == 0 {
		return nil
	}
	c := s.findClaim(rs[0].Session)
	if c == nil {
		return event.ErrConflict
	}
	return c.appendRecords(last, rs)
}

const maxID = 128

var errID = errors.New("a session id is 1 to 128 characters: a-z A-Z, digits, '.', '_', '-', not beginning with '.'")

// checkID verifies that a session's id is a valid file name in the store.
func checkID(id string) error {
	ok := id != "" && len(id) <= maxID && id[0] != '.'
	for i := 0; ok && i < len(id); i++ {
		b := id[i]
		ok = 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || b == '.' || b == '_' || b == '-'
	}
	if !ok {
		return message.Errorf("session %.200q: %w", id, errID)
	}
	return nil
}

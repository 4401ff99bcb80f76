// Package jsonl keeps sessions in files that people can read: one JSON object
// per line, only ever appended to.
//
//	<dir>/<session>/events.jsonl         person and agent
//	<dir>/<session>/audit.2.jsonl        agent and world; audit.jsonl links to it (see [Format])
//	<dir>/<session>/conversation.jsonl   agent and model
//	<dir>/<session>/lock                 who writes now
//	<dir>/<session>/owner                the same, on a file system without locks
//	<dir>/<session>/torn-<n>-<log>.jsonl what was torn or damaged, set aside
//	<dir>/<session>/apart                the session went on in memory
//
// The three logs are one: their records are numbered together, and what a
// reader gets is what can be merged without a gap. Every line carries a check of
// itself and of those before it (see package audit). A writer that dies in the
// middle of an Append leaves a torn line or a gap; the next [Store.Claim] cuts
// there, and where a check does not hold, sets aside what it cut, and says so. A
// record that was acknowledged is never beyond a place where a writer died,
// nothing is ever deleted, and a session that was never claimed can still be
// read. How far the logs go is also kept elsewhere, signed: see [Heads].
//
// Append is one step for all who stay alive: it takes everything back if it
// fails half way. After a crash in its midst the session holds none of the
// records, or the first few of them.
package jsonl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"coder/internal/core/event"
	"coder/internal/host/disk"
	"coder/internal/record/audit"
)

// Fsync says when a write has to reach the disk and not only the file.
type Fsync uint8

// The ways to sync.
const (
	Decisions Fsync = iota // before anyone acts on a decision: see [event.Decisive]
	Always                 // after every write
	Never                  // when the operating system likes to
)

// Options say how a store behaves. The zero value is fine.
type Options struct {
	Fsync Fsync
	// Now dates a claim, for the person who is refused one, and tells how long ago a log
	// was written.
	Now func() time.Time
	// Program names this program to that person.
	Program string
	// Version is the version of this program. A newer session keeps it, so that older
	// programs can name the version that reads it.
	Version func() string
	// Report is told what a Claim found that is not as it was left.
	Report func(Repair)
	// Short is told of a session that could be read up to its record last and that
	// seems to have had more: see [Store.Damage].
	Short func(session string, last uint64)
	// Heads, if set, is where it is kept how far sessions go.
	Heads *Heads
	// Names, if set, are synced before any log is.
	Names *disk.Folders
	// Disk is what is written to; without it, that of the system.
	Disk disk.Disk
}

// Repair is what was found amiss with a session and what was done about it.
// What belonged to no whole record, or came after one that is missing, was
// moved out of the logs.
type Repair struct {
	Session string
	File    string // where the trouble is: a log, or the folder of all of them
	Last    uint64 // the newest record that the session still has
	Known   uint64 // the newest that it is known to have had, if that is more
	Aside   []Aside
	// Cut tells that the logs went on with what was not whole, or did not
	// follow. Torn tells that this was but a line that a process did not live to
	// finish.
	Cut, Torn bool
	// Converted tells that line ends were changed, and were changed back.
	Converted bool
	// Rewritten tells that records are not those that were signed for.
	Rewritten bool
	// Earlier lists the records that a program of an earlier version, which knew no
	// checks, added to a session of a later one.
	Earlier []uint64
	// Apart tells that the session went on in memory after its last record.
	Apart bool
}

// Lost reports whether the session may lack records that it had.
func (r Repair) Lost() bool { return r.Cut && !r.Torn || r.Known > 0 || r.Apart }

// Aside is a part of a log that was moved, or a log as it was.
type Aside struct {
	Log   event.Log
	Bytes int64
	Path  string // where it is now
}

// Permissions: what is said to an agent is nobody else's business.
const (
	dirMode  = 0o700
	fileMode = 0o600
)

// Store is an [event.Store] over a directory. Use [Open].
type Store struct {
	dir string
	o   Options

	mu    sync.Mutex // guards what follows
	held  map[string]*claim
	whole map[string]stamps // of other sessions whose logs held to their ends
}

// Open returns the store in dir. It touches nothing: the directory is made
// with the first claim.
func Open(dir string, o Options) *Store {
	if o.Disk == nil {
		o.Disk = disk.System
	}
	return &Store{dir: dir, o: o, held: make(map[string]*claim), whole: make(map[string]stamps)}
}

// Claim locks session for this process, making it if there is none, and mends
// its logs.
func (s *Store) Claim(ctx context.Context, session string) (release func() error, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := checkID(session); err != nil {
		return nil, err
	}
	c, err := s.claim(ctx, session)
	if err != nil {
		return nil, fmt.Errorf("claim session %s: %w", session, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[session] = c
	return sync.OnceValue(func() error {
		s.mu.Lock()
		delete(s.held, c.session)
		s.mu.Unlock()
		return c.close()
	}), nil
}

func (s *Store) claim(ctx context.Context, session string) (*claim, error) {
	dir := filepath.Join(s.dir, session)
	isNew, err := makeDir(s.o.Disk, dir)
	if err != nil {
		return nil, err
	}
	if err := tooNew(dir, session); err != nil {
		return nil, err
	}
	h := holder{PID: os.Getpid(), Program: s.o.Program}
	if s.o.Version != nil {
		h.Version = s.o.Version()
	}
	h.Host, _ = os.Hostname() // a lock without a host's name is still a lock
	if s.o.Now != nil {
		h.Since = s.o.Now().UTC()
	}
	lock, used, err := takeLock(s.o.Disk, dir, session, h)
	if err != nil {
		return nil, err
	}
	c := s.unread(session)
	c.lock = lock
	if isNew && !used {
		log := filepath.Dir(dir)
		data := filepath.Dir(log)
		c.unsynced = []string{dir, log, data, filepath.Dir(data)} // any of these may be new
	} else if err := c.mend(ctx, s.o.Report); err != nil {
		return nil, errors.Join(fmt.Errorf("mend: %w", err), lock.release())
	}
	if err := c.upgrade(); err != nil {
		return nil, errors.Join(fmt.Errorf("convert to session format %d: %w", Format, err), lock.release())
	}
	return c, nil
}

// unread is a session of which nothing is known yet.
func (s *Store) unread(session string) *claim {
	dir := filepath.Join(s.dir, session)
	c := &claim{session: session, dir: dir, disk: s.o.Disk, fsync: s.o.Fsync, heads: s.o.Heads.of(dir, session), names: s.o.Names}
	for _, l := range event.Logs {
		c.logs[place(l)] = logFile{path: Path(dir, l), end: audit.End{Link: audit.First(l)}}
	}
	return c
}

func (s *Store) claimed(session string) *claim {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[session]
}

// Append adds rs to the logs they belong to.
func (s *Store) Append(ctx context.Context, last uint64, rs ...event.Record) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(rs) == 0 {
		return nil
	}
	c := s.claimed(rs[0].Session)
	if c == nil {
		return event.ErrConflict
	}
	return c.append(last, rs)
}

const maxID = 128

var errID = errors.New("a session id is 1 to 128 characters: a-z A-Z, digits, '.', '_', '-', not beginning with '.'")

// checkID makes sure that a session's id is the name of a file in the store
// and of no other.
func checkID(id string) error {
	ok := id != "" && len(id) <= maxID && id[0] != '.'
	for i := 0; ok && i < len(id); i++ {
		b := id[i]
		ok = 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || b == '.' || b == '_' || b == '-'
	}
	if !ok {
		return fmt.Errorf("session %.200q: %w", id, errID)
	}
	return nil
}

package jsonl

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"coder/internal/core/message"
	"coder/internal/host/atomicfile"
	"coder/internal/host/disk"
	"coder/internal/host/repofile"
	"coder/internal/record/session"
)

// Sessions is a [session.Store] with one file per session, <dir>/<id>.json. Use [OpenSessions].
//
// A file is one JSON object with a line for each message, tool and note: it works with grep and diff,
// and is little larger than its text. The fields for lists come first and the messages last, so that a
// list reads only the start of each file.
type Sessions struct {
	dir         string
	fsync       Fsync
	disk        disk.Disk
	mu          sync.Mutex        // serialises Save; guards the fields below
	replaceable map[string]bool   // snapshots that may be replaced
	lastLayout  *layout           // layout of the last written file, or nil
	encoded     []json.RawMessage // messages known to be JSON
}

// OpenSessions returns the snapshots in dir. It creates nothing: the first snapshot creates the
// directory. A snapshot can be rebuilt from the logs, so it is only synced to disk if fsync is [FsyncAlways].
func OpenSessions(dir string, fsync Fsync) *Sessions {
	return &Sessions{dir: dir, fsync: fsync, disk: disk.System, replaceable: make(map[string]bool)}
}

// WithDisk makes ss write to d.
func (ss *Sessions) WithDisk(d disk.Disk) *Sessions {
	ss.disk = d
	return ss
}

const extension = ".json"

// maxSnapshot is the size limit for reading a snapshot.
const maxSnapshot = 1 << 30

func (ss *Sessions) path(id string) string { return filepath.Join(ss.dir, id+extension) }

// Save writes the snapshot to a new file and renames it, or appends to a long one. If the old one has
// more records, Save keeps it: see [Sessions.preserveNewer].
func (ss *Sessions) Save(ctx context.Context, s session.Snapshot) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := checkID(s.ID); err != nil {
		return err
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	release, err := ss.lock()
	if err == nil {
		defer release()
		err = ss.preserveNewer(s)
	}
	if errors.Is(err, errNewer) {
		return nil
	}
	if err == nil {
		err = ss.replace(s)
	}
	if err != nil {
		return message.Errorf("save session %s: %w", s.ID, err)
	}
	if !s.Observed {
		ss.replaceable[s.ID] = true
	}
	return nil
}

func (ss *Sessions) replace(s session.Snapshot) error {
	c, err := encodeSnapshot(s, ss.encoded)
	if err != nil {
		return err
	}
	ss.encoded = s.Messages
	if done, err := ss.appendContent(c); done {
		return err
	}
	ss.lastLayout = nil
	text, l := c.encode()
	temp := filepath.Join(ss.dir, fmt.Sprintf("%s%s.%d", atomicfile.TempPrefix, s.ID, os.Getpid()))
	err = disk.Replace(ss.disk, temp, ss.path(s.ID), fileMode, func(f disk.File) error {
		_, err := f.Write(text)
		if err == nil && ss.fsync == FsyncAlways {
			err = f.Sync()
		}
		if err == nil {
			l.info, err = f.Stat()
		}
		return err
	})
	if err != nil {
		return err
	}
	ss.lastLayout = &l
	if ss.fsync == FsyncAlways {
		return disk.SyncDirs(ss.disk, ss.dir)
	}
	return nil
}

// lock locks the directory, and creates it if missing: other writers' files are complete and do not
// change until this one is written.
func (ss *Sessions) lock() (release func(), err error) {
	release, err = atomicfile.Lock(ss.dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return release, err
	}
	if err := disk.MkdirAll(ss.disk, ss.dir, dirMode); err != nil {
		return nil, err
	}
	return atomicfile.Lock(ss.dir)
}

// Load returns the snapshot of id.
func (ss *Sessions) Load(ctx context.Context, id string) (session.Snapshot, error) {
	if err := ctx.Err(); err != nil {
		return session.Snapshot{}, err
	}
	if err := checkID(id); err != nil {
		return session.Snapshot{}, err
	}
	for try := 1; ; try++ {
		s, err := ss.load(id)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return session.Snapshot{}, message.Errorf("session %s: %w", id, session.ErrNotFound)
		case err == nil:
			s.ID = id
			return s, nil
		case try == readTries || !errors.Is(err, ErrTorn):
			return session.Snapshot{}, message.Errorf("load session %s: %w", id, err)
		}
		time.Sleep(readPause) // a write may be in progress
	}
}

// Retries and pause for reading an incomplete file.
const (
	readTries = 5
	readPause = 5 * time.Millisecond
)

func (ss *Sessions) load(id string) (session.Snapshot, error) {
	b, err := repofile.NewRoot(ss.dir).Read(id+extension, maxSnapshot)
	if err != nil {
		return session.Snapshot{}, err
	}
	var s struct {
		session.Snapshot
		Check string `json:"check"`
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return session.Snapshot{}, message.Errorf("%s: %w: %w", ss.path(id), ErrTorn, err)
	}
	return s.Snapshot, verifyChecksum(s.Snapshot, s.Check)
}

// List reads the start of every file, then yields the heads, last updated first, followed by the files
// that could not be read. It does not use the ids, which users may choose, nor the files' times, which
// change on copying.
func (ss *Sessions) List(ctx context.Context) iter.Seq2[session.Head, error] {
	return func(yield func(session.Head, error) bool) {
		heads, broken, err := ss.heads(ctx)
		for _, h := range heads {
			if !yield(h, nil) {
				return
			}
		}
		for _, err := range broken {
			if !yield(session.Head{}, err) {
				return
			}
		}
		if err != nil {
			yield(session.Head{}, message.Errorf("list sessions: %w", err))
		}
	}
}

func (ss *Sessions) heads(ctx context.Context) (heads []session.Head, broken []error, err error) {
	entries, err := os.ReadDir(ss.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		id, ok := strings.CutSuffix(e.Name(), extension)
		if !ok || checkID(id) != nil {
			continue
		}
		h, err := ss.readHead(id)
		if err != nil {
			broken = append(broken, message.Errorf("session %s: %w", id, err))
			continue
		}
		h.ID = id
		heads = append(heads, h)
	}
	slices.SortFunc(heads, func(a, b session.Head) int {
		return cmp.Or(b.Updated.Compare(a.Updated), strings.Compare(b.ID, a.ID))
	})
	return heads, broken, err
}

// readHead reads a file up to the end of its head.
func (ss *Sessions) readHead(id string) (h session.Head, err error) {
	f, err := repofile.NewRoot(ss.dir).Open(id + extension)
	if err != nil {
		return h, err
	}
	defer f.Close()
	fields := map[string]any{"session_id": &h.ID, "created_at": &h.Created, "updated_at": &h.Updated, "meta": &h.Meta}
	if err := decodeFields(io.LimitReader(f, maxSnapshot), fields); err != nil {
		return h, &fs.PathError{Op: "read", Path: ss.path(id), Err: err}
	}
	return h, nil
}

// decodeFields reads an object until it has all fields.
func decodeFields(from io.Reader, fields map[string]any) error {
	d := json.NewDecoder(from)
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.Join(errHead, err)
	}
	for len(fields) > 0 && d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string)
		into, ok := fields[name]
		if !ok {
			into = new(json.RawMessage)
		}
		if err := d.Decode(into); err != nil {
			return message.Errorf("%s: %w", name, err)
		}
		delete(fields, name)
	}
	if len(fields) > 0 {
		return errHead
	}
	return nil
}

var errHead = errors.New("not a session")

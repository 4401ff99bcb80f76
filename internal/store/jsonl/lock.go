package jsonl

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"coder/internal/event"
	"coder/internal/wire"
)

// holder is what a lock file says about who holds it.
type holder struct {
	PID     int       `json:"pid"`
	Host    string    `json:"host"`
	Since   time.Time `json:"since,omitzero"`
	Program string    `json:"program,omitempty"`
}

func (s *Store) holder() holder {
	h := holder{PID: os.Getpid(), Program: s.o.Program}
	h.Host, _ = os.Hostname() // a lock without a host's name is still a lock
	if s.o.Now != nil {
		h.Since = s.o.Now().UTC()
	}
	return h
}

func (h holder) String() string {
	if h.PID == 0 {
		return "another process"
	}
	s := fmt.Sprintf("process %d", h.PID)
	if h.Program != "" {
		s += " (" + h.Program + ")"
	}
	if h.Host != "" {
		s += " on " + h.Host
	}
	if !h.Since.IsZero() {
		s += " since " + h.Since.Format(time.RFC3339)
	}
	return s
}

// A fileLock is held until released, or until the process ends however it ends.
type fileLock struct{ f *os.File }

// errLocked reports that another process, or another part of this one, holds
// the lock.
var errLocked = errors.New("locked")

// takeLock locks dir and leaves a note about who did. used tells that someone
// held the lock before.
func takeLock(dir, session string, me holder) (l *fileLock, used bool, err error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE|noFollow, fileMode)
	if err != nil {
		return nil, false, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	switch err := lockFile(f); {
	case errors.Is(err, errLocked):
		return nil, false, &event.ClaimedError{Session: session, Holder: readHolder(f).String()}
	case err != nil:
		return nil, false, &fs.PathError{Op: "lock", Path: f.Name(), Err: err}
	}
	info, err := f.Stat()
	if err != nil {
		return nil, false, err
	}
	return &fileLock{f}, info.Size() > 0, writeHolder(f, me, info.Size())
}

func (l *fileLock) release() error {
	return errors.Join(unlockFile(l.f), l.f.Close())
}

// writeHolder replaces what the file says, which was size bytes long.
func writeHolder(f *os.File, h holder, size int64) error {
	note, err := wire.JSON(h)
	if err != nil {
		return err
	}
	note = append(note, '\n')
	if size > int64(len(note)) {
		if err := f.Truncate(0); err != nil {
			return err
		}
	}
	_, err = f.WriteAt(note, 0)
	return err
}

const maxNote = 4 << 10 // no honest lock file is longer

func readHolder(f *os.File) holder {
	var h holder
	b, err := io.ReadAll(io.NewSectionReader(f, 0, maxNote))
	if err != nil || json.Unmarshal(b, &h) != nil {
		return holder{}
	}
	return h
}

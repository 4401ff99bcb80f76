package jsonl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/host/disk"
)

// holder is a lock file's information on its holder.
type holder struct {
	PID     int       `json:"pid"`
	Host    string    `json:"host"`
	Since   time.Time `json:"since,omitzero"`
	Program string    `json:"program,omitempty"`
	Version string    `json:"version,omitempty"` // of the program that held it last
	Started string    `json:"born,omitempty"`    // distinguishes processes with the same id
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

// hasEnded reports whether the holder has certainly ended. Holders on other machines are unknown.
func (h holder) hasEnded(me holder) bool {
	if h.PID == 0 || h.Host != me.Host {
		return false
	}
	err := syscall.Kill(h.PID, 0)
	return err != nil && !errors.Is(err, syscall.EPERM) || h.Started != "" && h.Started != startTime(h.PID)
}

// startTime returns a process's start time in the system's units, or "" if unknown.
func startTime(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, rest, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
	if fields := bytes.Fields(rest); len(fields) > 19 {
		return string(fields[19])
	}
	return ""
}

// A fileLock is held until released, or until the process ends.
type fileLock struct {
	f       disk.File
	disk    disk.Disk
	version string // version of this program
	owner   string // the file used as a lock on systems without locks
}

// takeLock locks dir and records the holder. used reports that someone held the lock before.
func takeLock(d disk.Disk, dir, session string, me holder) (l *fileLock, used bool, err error) {
	f, err := d.Open(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, false, err
	}
	l = &fileLock{f: f, disk: d, version: me.Version}
	// A child of a killed process may hold the lock a moment longer than the process: wait for that.
	err = d.Lock(f)
	for i := 0; i < lockTries && errors.Is(err, disk.ErrLocked) && readHolder(f).hasEnded(me); i++ {
		time.Sleep(lockPause)
		err = d.Lock(f)
	}
	switch {
	case errors.Is(err, disk.ErrLocked):
		err = &event.ClaimedError{Session: session, Holder: readHolder(f).String()}
	case errors.Is(err, errors.ErrUnsupported), errors.Is(err, syscall.ENOLCK): // file system without locks
		err = l.createOwner(filepath.Join(dir, "owner"), session, me)
	}
	if err != nil { // others may hold the unsupported lock
		return nil, false, errors.Join(err, f.Close())
	}
	info, err := f.Stat()
	if err != nil {
		return nil, false, errors.Join(err, l.release())
	}
	_ = writeHolder(f, me, info.Size()) // informational; the lock is valid without it
	return l, info.Size() > 0, nil
}

// Retries for a lock of a process that has ended.
const (
	lockTries = 150
	lockPause = 20 * time.Millisecond
)

// createOwner creates the file used as a lock, if nobody else has it. It first removes that of a process that
// has ended.
func (l *fileLock) createOwner(path, session string, me holder) error {
	me.Started = startTime(me.PID)
	for range 2 {
		f, err := l.disk.Open(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode)
		if err == nil {
			l.owner = path
			err = writeHolder(f, me, 0)
			if err = errors.Join(err, f.Close()); err != nil {
				return errors.Join(err, l.disk.Remove(path))
			}
			return nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		if by := readOwner(l.disk, path); !by.hasEnded(me) {
			return &event.ClaimedError{Session: session, Holder: by.String() + " (" + path + " says so)"}
		}
		if err := l.disk.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return &event.ClaimedError{Session: session, Holder: readOwner(l.disk, path).String()}
}

func readOwner(d disk.Disk, path string) holder {
	f, err := d.Open(path, os.O_RDONLY, 0)
	if err != nil {
		return holder{}
	}
	defer f.Close()
	return readHolder(f)
}

func (l *fileLock) release() error {
	if l.owner != "" {
		return errors.Join(l.f.Close(), l.disk.Remove(l.owner))
	}
	if info, err := l.f.Stat(); err == nil {
		_ = writeHolder(l.f, holder{Version: l.version}, info.Size()) // informational: shows users that nobody is here
	}
	return errors.Join(syscall.Flock(int(l.f.Fd()), syscall.LOCK_UN), l.f.Close())
}

// writeHolder replaces the file's content, which was size bytes long.
func writeHolder(f disk.File, h holder, size int64) error {
	note, err := jsonx.Marshal(h)
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

const maxLockFile = 4 << 10 // no valid lock file is longer

func readHolder(f disk.File) holder {
	var h holder
	b, err := io.ReadAll(io.NewSectionReader(f, 0, maxLockFile))
	if err != nil || json.Unmarshal(b, &h) != nil {
		return holder{}
	}
	return h
}

// InUse reports whether a process works on the session in dir, or may: unknown counts as in use.
func InUse(dir string) bool {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|disk.NoFollow, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err != nil {
		return true
	}
	defer f.Close()
	return disk.Lock(f.Fd()) != nil
}

// RemoveLogs removes the logs in dir, unless a process works on the session: then the error is an
// [event.ClaimedError].
func RemoveLogs(dir string) (err error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE|disk.NoFollow, fileMode)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	switch err := disk.Lock(f.Fd()); {
	case errors.Is(err, disk.ErrLocked):
		return &event.ClaimedError{Session: filepath.Base(dir), Holder: readHolder(f).String()}
	case err != nil:
		return &fs.PathError{Op: "lock", Path: f.Name(), Err: err}
	}
	if err := checkFormat(dir, filepath.Base(dir)); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

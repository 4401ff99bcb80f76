package jsonl

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"coder/internal/core/event"
)

// InUse reports whether a process works on the session whose logs lie in dir, or
// may: where it cannot be told it does.
func InUse(dir string) bool {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|noFollow, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err != nil {
		return true
	}
	defer f.Close()
	return lockFile(f) != nil
}

// RemoveLogs removes the logs of a session, which lie in dir, unless a process
// works on it: then the error is an [event.ClaimedError].
func RemoveLogs(dir string) (err error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE|noFollow, fileMode)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	switch err := lockFile(f); {
	case errors.Is(err, ErrLocked):
		return &event.ClaimedError{Session: filepath.Base(dir), Holder: readHolder(f).String()}
	case err != nil:
		return &fs.PathError{Op: "lock", Path: f.Name(), Err: err}
	}
	return os.RemoveAll(dir)
}

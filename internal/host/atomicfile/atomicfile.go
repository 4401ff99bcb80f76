// Package atomicfile replaces a file as a whole: a reader, even after a crash, sees the old content or
// the new, never a part.
//
// A killed process leaves its unfinished file beside the target, under a name that begins with [TempPrefix].
// A writer locks the directory while it writes, so that [Sweep] can tell files in progress from
// leftovers.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"coder/internal/host/disk"

	"golang.org/x/sys/unix"
)

// TempPrefix begins the names of unfinished files.
const TempPrefix = ".new-"

const (
	openDir      = os.O_RDONLY | unix.O_DIRECTORY | unix.O_NONBLOCK
	maxLockTries = 2000 // for a locked directory
	lockPause    = 5 * time.Millisecond
)

// Write replaces the content of the file at path. mode applies to a new file. When Write returns nil,
// the file and its name survive a crash of the machine.
func Write(path string, text []byte, mode fs.FileMode) error {
	return WriteFrom(filepath.Dir(path), path, text, mode)
}

// WriteCache is [Write] for a file that can be rebuilt: after a loss of power the file may be old, empty or
// missing, and readers must detect that.
func WriteCache(path string, text []byte, mode fs.FileMode) error {
	return writeFile(filepath.Dir(path), path, text, mode, false)
}

// WriteFrom is [Write] for a path in a directory that is never swept: the unfinished file is in dir, on
// the same file system.
func WriteFrom(dir, path string, text []byte, mode fs.FileMode) error {
	return writeFile(dir, path, text, mode, true)
}

// Update is [Write] for a file that other processes change too: change reads the file and returns its new
// content, and nobody else updates a file of the directory meanwhile. A nil content leaves the file unchanged.
// Update creates a missing directory for the user alone. change may write other files there with [WriteLocked].
func Update(path string, mode fs.FileMode, change func() ([]byte, error)) error {
	dir := filepath.Dir(path)
	_, missing := os.Lstat(dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	release, err := Lock(dir)
	if err != nil {
		return err
	}
	defer release()
	text, err := change()
	if err == nil && text != nil {
		return WriteLocked(path, text, mode)
	}
	if missing != nil {
		_ = os.Remove(dir) // if it is still empty
	}
	return err
}

// WriteLocked is [Write] in a directory that the caller locked with [Lock].
func WriteLocked(path string, text []byte, mode fs.FileMode) error {
	return replaceFile(filepath.Dir(path), path, text, mode, true)
}

func writeFile(dir, path string, text []byte, mode fs.FileMode, durable bool) error {
	release, err := HoldDir(dir)
	if err != nil {
		return err
	}
	defer release()
	return replaceFile(dir, path, text, mode, durable)
}

// replaceFile writes a file in a directory that the caller holds or locked.
func replaceFile(dir, path string, text []byte, mode fs.FileMode, durable bool) error {
	tmp, err := os.CreateTemp(dir, TempPrefix+"*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }() // already gone on success
	_, err = tmp.Write(text)
	err = errors.Join(err, tmp.Chmod(mode))
	if durable && err == nil {
		disk.Trace("sync", tmp.Name())
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	if err := disk.System.Rename(tmp.Name(), path); err != nil || !durable {
		return err
	}
	return disk.SyncDir(filepath.Dir(path))
}

// HoldDir protects unfinished files in dir from [Sweep] until release is called or this process ends.
func HoldDir(dir string) (release func(), err error) {
	f, err := os.OpenFile(dir, openDir, 0)
	if err != nil {
		return nil, err
	}
	HoldOpenDir(f)
	return func() { _ = f.Close() }, nil
}

// Lock locks dir exclusively. It waits for other holders, longer than any of them should need to write a
// file.
func Lock(dir string) (release func(), err error) {
	f, err := os.OpenFile(dir, openDir, 0)
	if err != nil {
		return nil, err
	}
	for range maxLockTries {
		if err = lockFile(f, unix.LOCK_EX|unix.LOCK_NB); err != unix.EWOULDBLOCK {
			return func() { _ = f.Close() }, nil // also on file systems without locks
		}
		time.Sleep(lockPause)
	}
	return nil, errors.Join(&fs.PathError{Op: "lock", Path: dir, Err: err}, f.Close())
}

// HoldOpenDir holds an open directory until it is closed. If locks do not work there, nothing is swept
// either.
func HoldOpenDir(dir *os.File) { _ = lockFile(dir, unix.LOCK_SH) }

// LockIfUnheld reports whether nobody else holds an open directory, and if so locks it until it is closed.
func LockIfUnheld(dir *os.File) bool { return lockFile(dir, unix.LOCK_EX|unix.LOCK_NB) == nil }

func lockFile(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); err != unix.EINTR {
			return err
		}
	}
}

// Sweep removes the unfinished files of killed processes from directories below root. It skips
// directories that are in use.
func Sweep(root string, dirs ...string) {
	below, err := os.OpenRoot(root)
	if err != nil {
		return
	}
	defer below.Close()
	for _, dir := range dirs {
		f, err := below.OpenFile(dir, openDir, 0)
		if err != nil {
			continue
		}
		var names []string
		if LockIfUnheld(f) {
			names, _ = f.Readdirnames(-1)
		}
		for _, name := range names {
			if !strings.HasPrefix(name, TempPrefix) {
				continue // skips Lstat: there may be many names
			}
			name = path.Join(dir, name)
			if info, err := below.Lstat(name); err == nil && info.Mode().IsRegular() {
				_ = below.Remove(name)
			}
		}
		f.Close()
	}
}

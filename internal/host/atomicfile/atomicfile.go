// Package atomicfile replaces a file as a whole: a reader, even after a crash, sees the old content or
// the new, never a part.
//
// A killed process leaves its unfinished file beside the target, under a name that begins with [Prefix].
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

// Prefix begins the names of unfinished files.
const Prefix = ".new-"

const (
	openDir   = os.O_RDONLY | unix.O_DIRECTORY | unix.O_NONBLOCK
	lockTries = 400 // for a locked directory
	lockPause = 5 * time.Millisecond
)

// Write replaces the content of the file at path. mode applies to a new file. When Write returns nil,
// the file and its name survive a crash of the machine.
func Write(path string, text []byte, mode fs.FileMode) error {
	return WriteFrom(filepath.Dir(path), path, text, mode)
}

// Cache is [Write] for a file that can be rebuilt: after a loss of power the file may be old, empty or
// missing, and readers must detect that.
func Cache(path string, text []byte, mode fs.FileMode) error {
	return write(filepath.Dir(path), path, text, mode, false)
}

// WriteFrom is [Write] for a path in a directory that is never swept: the unfinished file is in dir, on
// the same file system.
func WriteFrom(dir, path string, text []byte, mode fs.FileMode) error {
	return write(dir, path, text, mode, true)
}

func write(dir, path string, text []byte, mode fs.FileMode, durable bool) error {
	release, err := Hold(dir)
	if err != nil {
		return err
	}
	defer release()
	tmp, err := os.CreateTemp(dir, Prefix+"*")
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
	return disk.SyncFolder(filepath.Dir(path))
}

// Hold protects unfinished files in dir from [Sweep] until release is called or this process ends.
func Hold(dir string) (release func(), err error) {
	f, err := os.OpenFile(dir, openDir, 0)
	if err != nil {
		return nil, err
	}
	HoldOpen(f)
	return func() { _ = f.Close() }, nil
}

// Lock locks dir exclusively. It waits for other holders, longer than any of them should need to write a
// file.
func Lock(dir string) (release func(), err error) {
	f, err := os.OpenFile(dir, openDir, 0)
	if err != nil {
		return nil, err
	}
	for range lockTries {
		if err = lock(f, unix.LOCK_EX|unix.LOCK_NB); err != unix.EWOULDBLOCK {
			return func() { _ = f.Close() }, nil // also on file systems without locks
		}
		time.Sleep(lockPause)
	}
	return nil, errors.Join(&fs.PathError{Op: "lock", Path: dir, Err: err}, f.Close())
}

// HoldOpen holds an open directory until it is closed. If locks do not work there, nothing is swept
// either.
func HoldOpen(dir *os.File) { _ = lock(dir, unix.LOCK_SH) }

// Unheld reports whether nobody else holds an open directory, and if so locks it until it is closed.
func Unheld(dir *os.File) bool { return lock(dir, unix.LOCK_EX|unix.LOCK_NB) == nil }

func lock(f *os.File, how int) error {
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
		if Unheld(f) {
			names, _ = f.Readdirnames(-1)
		}
		for _, name := range names {
			if !strings.HasPrefix(name, Prefix) {
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

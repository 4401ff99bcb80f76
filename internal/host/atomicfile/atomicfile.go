// Package atomicfile writes a file whole or not at all: whoever reads it meanwhile,
// or after a crash, finds the old content or the new, never a part.
//
// What a killed process was writing stays beside its place under a name that
// begins with [Prefix]. Whoever writes so holds the directory for as long, so
// that [Sweep] can tell what is being written from what is left.
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

// Prefix begins the names of files that are being written.
const Prefix = ".new-"

const (
	openDir   = os.O_RDONLY | unix.O_DIRECTORY | unix.O_NONBLOCK
	lockTries = 400 // for a directory that somebody holds
	lockPause = 5 * time.Millisecond
)

// Write replaces the content of the file at path. A new file has mode. When Write
// returns nil the file, and its name, outlive the machine.
func Write(path string, text []byte, mode fs.FileMode) error {
	return WriteFrom(filepath.Dir(path), path, text, mode)
}

// Cache does what [Write] does for a file that can be made again: after a loss of
// power it may be the old one, empty or gone, which its readers notice.
func Cache(path string, text []byte, mode fs.FileMode) error {
	return write(filepath.Dir(path), path, text, mode, false)
}

// WriteFrom does what [Write] does for a path in a directory that nobody sweeps:
// until it is whole the file lies in dir, on the same file system.
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
	defer func() { _ = os.Remove(tmp.Name()) }() // gone already if all went well
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

// Hold keeps the files that are being written in dir from being swept until it
// is released, or this process ends however it ends.
func Hold(dir string) (release func(), err error) {
	f, err := os.OpenFile(dir, openDir, 0)
	if err != nil {
		return nil, err
	}
	HoldOpen(f)
	return func() { _ = f.Close() }, nil
}

// Lock holds dir alone: it waits until nobody else does, for a time in which
// anybody should have written a file.
func Lock(dir string) (release func(), err error) {
	f, err := os.OpenFile(dir, openDir, 0)
	if err != nil {
		return nil, err
	}
	for range lockTries {
		if err = lock(f, unix.LOCK_EX|unix.LOCK_NB); err != unix.EWOULDBLOCK {
			return func() { _ = f.Close() }, nil // also where there are no locks
		}
		time.Sleep(lockPause)
	}
	return nil, errors.Join(&fs.PathError{Op: "lock", Path: dir, Err: err}, f.Close())
}

// HoldOpen holds a directory that is open until it is closed. Where that cannot
// be done nothing is swept either.
func HoldOpen(dir *os.File) { _ = lock(dir, unix.LOCK_SH) }

// Unheld reports whether nobody holds a directory that is open; nobody will then
// before it is closed.
func Unheld(dir *os.File) bool { return lock(dir, unix.LOCK_EX|unix.LOCK_NB) == nil }

func lock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); err != unix.EINTR {
			return err
		}
	}
}

// Sweep removes, in directories below root, what killed processes left of files
// they were writing. Where somebody is at work it waits for another time.
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
				continue // without a look at it: there may be very many
			}
			name = path.Join(dir, name)
			if info, err := below.Lstat(name); err == nil && info.Mode().IsRegular() {
				_ = below.Remove(name)
			}
		}
		f.Close()
	}
}

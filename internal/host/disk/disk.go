// Package disk abstracts the file system operations of the stores. Tests substitute a failing one.
package disk

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Disk is a file system, or a directory of one.
type Disk interface {
	Open(path string, flag int, mode fs.FileMode) (File, error)
	Mkdir(path string, mode fs.FileMode) error
	Rename(from, to string) error
	Symlink(target, path string) error
	Remove(path string) error
	// Sync flushes a file, or the names in a directory, to disk.
	Sync(path string) error
	// Lock locks a file until it is closed. It returns [ErrLocked] if somebody else holds the lock.
	Lock(File) error
}

// File is an open file or directory of a [Disk].
type File interface {
	io.ReadWriteSeeker
	io.Closer
	io.ReaderAt
	io.WriterAt
	Name() string
	Fd() uintptr
	Stat() (fs.FileInfo, error)
	Truncate(size int64) error
	Sync() error
}

// ErrLocked reports a file locked by another process or another part of this one.
var ErrLocked = errors.New("locked")

// NoFollow prevents a link planted in a directory from redirecting a write, and a planted pipe from
// blocking.
const NoFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// System is the file system of the operating system.
var System Disk = osDisk{}

type osDisk struct{}

func (osDisk) Open(path string, flag int, mode fs.FileMode) (File, error) {
	return asFile(os.OpenFile(path, flag|NoFollow, mode))
}
func (osDisk) Mkdir(path string, mode fs.FileMode) error { return os.Mkdir(path, mode) }
func (osDisk) Symlink(target, path string) error         { return os.Symlink(target, path) }
func (osDisk) Remove(path string) error                  { return os.Remove(path) }
func (osDisk) Sync(path string) error                    { return syncAndClose(os.Open(path)) }
func (osDisk) Lock(f File) error                         { return Lock(f.Fd()) }

// FromRoot returns a Disk for a directory of the system.
func FromRoot(root *os.Root) Disk { return rootDisk{root} }

type rootDisk struct{ *os.Root }

func (b rootDisk) Rename(from, to string) error {
	err := b.Root.Rename(from, to)
	if err == nil {
		Trace("name", filepath.Join(b.Name(), to))
	}
	return err
}

func (b rootDisk) Open(name string, flag int, mode fs.FileMode) (File, error) {
	return asFile(b.OpenFile(name, flag, mode))
}
func (b rootDisk) Sync(name string) error { return syncAndClose(b.Root.Open(name)) }
func (rootDisk) Lock(f File) error        { return Lock(f.Fd()) }

// Rename renames a file.
func (osDisk) Rename(from, to string) error {
	err := os.Rename(from, to)
	if err == nil {
		Trace("name", to)
	}
	return err
}

func asFile(f *os.File, err error) (File, error) {
	if err != nil {
		return nil, err // avoids a typed nil
	}
	if Tracer != nil {
		return tracedFile{f}, nil
	}
	return f, nil
}

func syncAndClose(d *os.File, err error) error {
	if err != nil {
		return err
	}
	Trace("sync", d.Name())
	return errors.Join(d.Sync(), d.Close())
}

// Lock locks an open file; see [Disk].
func Lock(fd uintptr) error {
	for {
		err := syscall.Flock(int(fd), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return ErrLocked
		default:
			return err
		}
	}
}

// Replace writes a file under the name temp, then renames it to path.
func Replace(d Disk, temp, path string, mode fs.FileMode, write func(File) error) error {
	f, err := d.Open(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	if err = errors.Join(write(f), f.Close()); err == nil {
		err = d.Rename(temp, path)
	}
	if err != nil {
		_ = d.Remove(temp) // it may not exist
	}
	return err
}

// MkdirAll creates dir and its missing parents.
func MkdirAll(d Disk, dir string, mode fs.FileMode) error {
	err := d.Mkdir(dir, mode)
	if up := filepath.Dir(dir); errors.Is(err, fs.ErrNotExist) && up != dir {
		if err := MkdirAll(d, up, mode); err != nil {
			return err
		}
		err = d.Mkdir(dir, mode)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil // the next use reports any error
	}
	return err
}

// SyncDirs flushes the names in dirs to disk, on systems that support it.
func SyncDirs(d Disk, dirs ...string) error {
	for _, dir := range dirs {
		err := d.Sync(dir)
		if err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrPermission) &&
			!errors.Is(err, syscall.EINVAL) {
			return err
		}
	}
	return nil
}

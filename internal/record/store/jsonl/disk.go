package jsonl

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Disk is what the stores ask of a file system to write to it. Tests give them
// one that fails.
type Disk interface {
	Open(path string, flag int, mode fs.FileMode) (File, error)
	Mkdir(path string, mode fs.FileMode) error
	Rename(from, to string) error
	Remove(path string) error
	// SyncDir makes sure of the names in a directory.
	SyncDir(path string) error
	// Lock locks a file for as long as it is open. The error is [ErrLocked] if
	// somebody else holds it.
	Lock(File) error
}

// File is an open file of a [Disk].
type File interface {
	io.ReadWriteCloser
	io.ReaderAt
	io.WriterAt
	Name() string
	Fd() uintptr
	Stat() (fs.FileInfo, error)
	Truncate(size int64) error
	Sync() error
}

// System is the file system of the operating system.
var System Disk = system{}

type system struct{}

func (system) Open(path string, flag int, mode fs.FileMode) (File, error) {
	f, err := os.OpenFile(path, flag|noFollow, mode)
	if err != nil {
		return nil, err // not a nil *os.File
	}
	return f, nil
}
func (system) Mkdir(path string, mode fs.FileMode) error { return os.Mkdir(path, mode) }
func (system) Rename(from, to string) error              { return os.Rename(from, to) }
func (system) Remove(path string) error                  { return os.Remove(path) }
func (system) SyncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
func (system) Lock(f File) error { return lockFile(f) }

// mkdirAll makes dir and what it stands in where that is missing.
func mkdirAll(d Disk, dir string) error {
	err := d.Mkdir(dir, dirMode)
	if up := filepath.Dir(dir); errors.Is(err, fs.ErrNotExist) && up != dir {
		if err := mkdirAll(d, up); err != nil {
			return err
		}
		err = d.Mkdir(dir, dirMode)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil // whatever it is, using it will show
	}
	return err
}

// Package faultdisk is a disk that fails when it is told to, for tests of what
// is written to it.
package faultdisk

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"coder/internal/host/disk"
)

// Disk is the disk of the system, save that one operation fails. Operations are
// what can fail for want of room, rights or luck: opening, making, renaming and
// removing files, writing, syncing and cutting them.
type Disk struct {
	At     int    // the operation that fails; the first is 1, and none if it is zero
	Err    error  // how it fails
	Ever   bool   // and all after it
	What   string // all of this sort fail, such as "lock"; then At counts nothing
	Short  bool   // if it writes, half is written first
	NoSync bool   // syncing takes no time, and does nothing

	mu  sync.Mutex // guards the fields below
	n   int
	log []string

	below  disk.Disk // see Below; nil is the system's
	faults *Disk     // that it fails like; nil is itself
}

// Log lists the operations so far, for people.
func (d *Disk) Log() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.log
}

// InRoot is the directory of a store of kept contents on this disk. What it does
// is called "keep-open", "keep-write" and so on.
func (d *Disk) InRoot(root *os.Root) disk.Disk { return &Disk{below: disk.FromRoot(root), faults: d} }

func (d *Disk) like() *Disk { return cmp.Or(d.faults, d) }

// on does an operation, unless it is one that fails. Each is counted.
func (d *Disk) on(what, path string, do func(disk.Disk) error) error {
	if err := d.fail(what, path); err != nil {
		return err
	}
	if d.below != nil {
		return do(d.below)
	}
	return do(disk.System)
}

func (d *Disk) fail(what, path string) error {
	if d.faults != nil {
		return d.faults.fail("keep-"+what, path)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.n++
	d.log = append(d.log, what+" "+filepath.Base(path))
	if d.What == what || d.At > 0 && (d.n == d.At || d.Ever && d.n > d.At) {
		return &fs.PathError{Op: what, Path: path, Err: d.Err}
	}
	return nil
}

// Open opens a file.
func (d *Disk) Open(path string, flag int, mode fs.FileMode) (opened disk.File, err error) {
	err = d.on("open", path, func(on disk.Disk) error {
		f, err := on.Open(path, flag, mode)
		if err == nil {
			opened = &file{f, d}
		}
		return err
	})
	return opened, err
}

// Mkdir makes a directory.
func (d *Disk) Mkdir(path string, mode fs.FileMode) error {
	return d.on("mkdir", path, func(on disk.Disk) error { return on.Mkdir(path, mode) })
}

// Rename renames a file.
func (d *Disk) Rename(from, to string) error {
	return d.on("rename", from, func(on disk.Disk) error { return on.Rename(from, to) })
}

// Symlink makes a link.
func (d *Disk) Symlink(target, path string) error {
	return d.on("symlink", path, func(on disk.Disk) error { return on.Symlink(target, path) })
}

// Remove removes a file.
func (d *Disk) Remove(path string) error {
	return d.on("remove", path, func(on disk.Disk) error { return on.Remove(path) })
}

// Sync syncs a file or directory.
func (d *Disk) Sync(path string) error {
	return d.on("sync", path, func(on disk.Disk) error {
		if d.like().NoSync {
			return nil
		}
		return on.Sync(path)
	})
}

// Lock locks a file.
func (d *Disk) Lock(f disk.File) error {
	return d.on("lock", f.Name(), func(on disk.Disk) error { return on.Lock(f) })
}

type file struct {
	disk.File
	disk *Disk
}

// put writes p by write, or half of it if the disk fails then.
func (f *file) put(p []byte, write func([]byte) (int, error)) (n int, err error) {
	err = f.disk.fail("write", f.Name())
	switch {
	case err == nil:
		return write(p)
	case f.disk.like().Short:
		n, _ = write(p[:len(p)/2])
	}
	return n, err
}

func (f *file) Write(p []byte) (int, error) { return f.put(p, f.File.Write) }

func (f *file) WriteAt(p []byte, at int64) (int, error) {
	return f.put(p, func(p []byte) (int, error) { return f.File.WriteAt(p, at) })
}

func (f *file) Truncate(size int64) error {
	if err := f.disk.fail("truncate", f.Name()); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

func (f *file) Sync() error {
	if err := f.disk.fail("sync", f.Name()); err != nil || f.disk.like().NoSync {
		return err
	}
	return f.File.Sync()
}

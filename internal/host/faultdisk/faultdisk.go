// Package faultdisk is a disk that fails when it is told to, for tests of what
// is written to it.
package faultdisk

import (
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
}

// Log lists the operations so far, for people.
func (d *Disk) Log() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.log
}

// do counts an operation and returns how it fails, if it does.
func (d *Disk) do(what, path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.n++
	d.log = append(d.log, what+" "+filepath.Base(path))
	if d.What == what || d.At > 0 && (d.n == d.At || d.Ever && d.n > d.At) {
		return &fs.PathError{Op: what, Path: path, Err: d.Err}
	}
	return nil
}

func (d *Disk) system() faulty { return faulty{disk.System, d, ""} }

// Open opens a file.
func (d *Disk) Open(path string, flag int, mode fs.FileMode) (disk.File, error) {
	return d.system().Open(path, flag, mode)
}

// Mkdir makes a directory.
func (d *Disk) Mkdir(path string, mode fs.FileMode) error { return d.system().Mkdir(path, mode) }

// Rename renames a file.
func (d *Disk) Rename(from, to string) error { return d.system().Rename(from, to) }

// Remove removes a file.
func (d *Disk) Remove(path string) error { return d.system().Remove(path) }

// Sync syncs a file or directory.
func (d *Disk) Sync(path string) error { return d.system().Sync(path) }

// Lock locks a file.
func (d *Disk) Lock(f disk.File) error { return d.system().Lock(f) }

// Below is the directory of a store of kept contents on this disk. What it does
// is called "keep-open", "keep-write" and so on.
func (d *Disk) Below(root *os.Root) disk.Disk { return faulty{disk.Below(root), d, "keep-"} }

// faulty is a disk whose operations, called by a prefix and what they do, fail
// as faults say.
type faulty struct {
	disk.Disk
	faults *Disk
	prefix string
}

func (d faulty) do(what, path string) error { return d.faults.do(d.prefix+what, path) }

func (d faulty) Open(path string, flag int, mode fs.FileMode) (disk.File, error) {
	if err := d.do("open", path); err != nil {
		return nil, err
	}
	f, err := d.Disk.Open(path, flag, mode)
	if err != nil {
		return nil, err
	}
	return &file{f, d}, nil
}

func (d faulty) Mkdir(path string, mode fs.FileMode) error {
	if err := d.do("mkdir", path); err != nil {
		return err
	}
	return d.Disk.Mkdir(path, mode)
}

func (d faulty) Rename(from, to string) error {
	if err := d.do("rename", from); err != nil {
		return err
	}
	return d.Disk.Rename(from, to)
}

func (d faulty) Remove(path string) error {
	if err := d.do("remove", path); err != nil {
		return err
	}
	return d.Disk.Remove(path)
}

func (d faulty) Sync(path string) error {
	if err := d.do("sync", path); err != nil || d.faults.NoSync {
		return err
	}
	return d.Disk.Sync(path)
}

func (d faulty) Lock(f disk.File) error {
	if err := d.do("lock", f.Name()); err != nil {
		return err
	}
	return d.Disk.Lock(f)
}

type file struct {
	disk.File
	disk faulty
}

// put writes p by write, or half of it if the disk fails then.
func (f *file) put(p []byte, write func([]byte) (int, error)) (n int, err error) {
	err = f.disk.do("write", f.Name())
	switch {
	case err == nil:
		return write(p)
	case f.disk.faults.Short:
		n, _ = write(p[:len(p)/2])
	}
	return n, err
}

func (f *file) Write(p []byte) (int, error) { return f.put(p, f.File.Write) }

func (f *file) WriteAt(p []byte, at int64) (int, error) {
	return f.put(p, func(p []byte) (int, error) { return f.File.WriteAt(p, at) })
}

func (f *file) Truncate(size int64) error {
	if err := f.disk.do("truncate", f.Name()); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

func (f *file) Sync() error {
	if err := f.disk.do("sync", f.Name()); err != nil || f.disk.faults.NoSync {
		return err
	}
	return f.File.Sync()
}

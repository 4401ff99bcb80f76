package blob

import (
	"io"
	"io/fs"
	"os"
)

// Dir is the directory of a store as far as it is written to. Tests give it one
// that fails.
type Dir interface {
	OpenFile(name string, flag int, mode fs.FileMode) (File, error)
	MkdirAll(name string, mode fs.FileMode) error
	Rename(from, to string) error
	Remove(name string) error
}

// File is an open file or directory of a [Dir].
type File interface {
	io.WriteSeeker
	io.Closer
	Sync() error
	Fd() uintptr
}

// Below is the directory of the system.
func Below(root *os.Root) Dir { return below{root} }

type below struct{ *os.Root }

func (b below) OpenFile(name string, flag int, mode fs.FileMode) (File, error) {
	f, err := b.Root.OpenFile(name, flag, mode)
	if err != nil {
		return nil, err // not a nil *os.File
	}
	return f, nil
}

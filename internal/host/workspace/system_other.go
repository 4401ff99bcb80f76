//go:build !linux

package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Rename modes for an existing new name.
const (
	renameNoReplace = 1 + iota
	renameExchange
)

// renameAt renames a in one directory to b in another.
func renameAt(from *os.Root, a string, to *os.Root, b string, how uint) error {
	if how == renameExchange {
		return errors.ErrUnsupported
	}
	if _, err := to.Lstat(b); how == renameNoReplace && err == nil {
		return fs.ErrExist
	}
	if from == to {
		return from.Rename(a, b)
	}
	return os.Rename(filepath.Join(from.Name(), a), filepath.Join(to.Name(), b))
}

func isUnsupported(err error) bool { return errors.Is(err, errors.ErrUnsupported) }

// createUnnamed always fails: every file has a name here.
func createUnnamed(*os.Root) (*os.File, error) { return nil, errors.ErrUnsupported }

func linkUnnamed(*os.File, *os.Root, string) error { return errors.ErrUnsupported }

// lockDir does nothing here.
func lockDir(*os.Root) (unlock func()) { return func() {} }

// acquireLease does nothing here: writers cannot be detected.
func acquireLease(*os.File) (held bool, err error) { return false, nil }

func isLeaseWanted(*os.File) bool { return false }

// openBeneath is not supported here.
func (w *Workspace) openBeneath(string) (*os.File, error) { return nil, errors.ErrUnsupported }

// readEntries appends a directory's entries to list, at most limit of them, unsorted.
func readEntries(dir *os.File, list []dirent, limit int) (_ []dirent, more bool, err error) {
	entries, err := dir.ReadDir(limit + 1)
	if err == io.EOF {
		err = nil
	}
	more = len(entries) > limit
	for _, e := range entries[:min(len(entries), limit)] {
		list = append(list, dirent{name: e.Name(), kind: e.Type()})
	}
	return list, more, err
}

// source is unsupported where the system does not report changes.
type source struct{}

func newSource([]string) *source { return nil }

func (*source) close() {}

func (*source) add(*os.File, bool, int) (handle, bool) { return 0, false }

func (*source) remove(handle) {}

func (*source) read(func(watchEvent)) bool { return false }

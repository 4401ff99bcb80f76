//go:build !linux

package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// How a rename treats what stands at the new name.
const (
	noReplace = 1 + iota
	exchange
)

// rename gives what is called a in one directory the name b in another.
func rename(from *os.Root, a string, to *os.Root, b string, how uint) error {
	if how == exchange {
		return errors.ErrUnsupported
	}
	if _, err := to.Lstat(b); how == noReplace && err == nil {
		return fs.ErrExist
	}
	if from == to {
		return from.Rename(a, b)
	}
	return os.Rename(filepath.Join(from.Name(), a), filepath.Join(to.Name(), b))
}

func unsupported(err error) bool { return errors.Is(err, errors.ErrUnsupported) }

// unnamed fails: every file has a name here.
func unnamed(*os.Root) (*os.File, error) { return nil, errors.ErrUnsupported }

func link(*os.File, *os.Root, string) error { return errors.ErrUnsupported }

// lockDir does nothing here.
func lockDir(*os.Root) (unlock func()) { return func() {} }

// lease does nothing here: nobody can tell who writes a file.
func lease(*os.File) (held bool, err error) { return false, nil }

func wanted(*os.File) bool { return false }

//go:build !linux

package workspace

import (
	"errors"
	"io"
	"os"
)

// openBeneath cannot be had here.
func (w *Workspace) openBeneath(string) (*os.File, error) { return nil, errors.ErrUnsupported }

// readEntries appends what is in a directory to list, at most limit of it, in no
// order.
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

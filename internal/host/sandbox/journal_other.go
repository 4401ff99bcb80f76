//go:build !linux

package sandbox

import (
	"errors"
	"os"
)

// newJournalFile always fails, since no helper could write to it.
func newJournalFile() (*os.File, error) { return nil, errors.ErrUnsupported }

//go:build !linux

package sandbox

import (
	"errors"
	"os"
)

// journalFile always fails, since no helper could write to it.
func journalFile() (*os.File, error) { return nil, errors.ErrUnsupported }

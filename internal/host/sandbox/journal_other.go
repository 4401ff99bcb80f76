//go:build !linux

package sandbox

import (
	"errors"
	"os"
)

// journalFile is none: no helper could keep it.
func journalFile() (*os.File, error) { return nil, errors.ErrUnsupported }

//go:build !linux

package blob

import (
	"errors"

	"coder/internal/host/disk"
)

// syncFileSystem is not supported here.
func syncFileSystem(disk.File) error { return errors.ErrUnsupported }

//go:build !linux

package blob

import (
	"errors"

	"coder/internal/host/disk"
)

// syncFileSystem cannot be had here.
func syncFileSystem(disk.File) error { return errors.ErrUnsupported }

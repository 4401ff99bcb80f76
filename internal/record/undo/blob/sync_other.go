//go:build !linux

package blob

import (
	"coder/internal/host/disk"
	"errors"
)

// syncFileSystem cannot be had here.
func syncFileSystem(disk.File) error { return errors.ErrUnsupported }

//go:build !linux

package blob

import (
	"errors"
	"os"
)

// syncFileSystem cannot be had here.
func syncFileSystem(*os.File) error { return errors.ErrUnsupported }

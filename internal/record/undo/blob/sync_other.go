//go:build !linux

package blob

import "errors"

// syncFileSystem cannot be had here.
func syncFileSystem(File) error { return errors.ErrUnsupported }

//go:build !linux

package workspace

import (
	"errors"
	"os"
)

// openBeneath cannot be had here.
func (w *Workspace) openBeneath(string) (*os.File, error) { return nil, errors.ErrUnsupported }

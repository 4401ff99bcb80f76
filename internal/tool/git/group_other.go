//go:build !unix

package git

import "coder/internal/host/program"

// ownGroup does nothing on systems without process groups.
func ownGroup(*program.Cmd) {}

// endGroup does nothing on systems without process groups.
func endGroup(*program.Cmd) {}

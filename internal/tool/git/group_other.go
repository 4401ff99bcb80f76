//go:build !unix

package git

import "coder/internal/host/program"

// ownGroup does nothing where there are no process groups.
func ownGroup(*program.Cmd) {}

// endGroup does nothing where there are no process groups.
func endGroup(*program.Cmd) {}

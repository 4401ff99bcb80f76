//go:build !unix

package git

import "coder/internal/host/program"

// setOwnGroup does nothing on systems without process groups.
func setOwnGroup(*program.Cmd) {}

// killGroup does nothing on systems without process groups.
func killGroup(*program.Cmd) {}

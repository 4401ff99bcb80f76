//go:build !linux

package sandbox

import (
	"net"
	"os"
)

// Outlet is what only Linux has: see [Sandbox.HasOutlets].
type Outlet struct {
	net.Listener
	File *os.File
}

// NewOutlet returns [ErrUnavailable].
func NewOutlet() (*Outlet, error) { return nil, ErrUnavailable }

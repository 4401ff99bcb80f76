//go:build !linux

package sandbox

import (
	"net"
	"os"
)

// Outlet is supported only on Linux: see [Sandbox.CanOpenOutlets].
type Outlet struct {
	net.Listener
	File *os.File
}

// NewOutlet returns [ErrUnavailable].
func NewOutlet() (*Outlet, error) { return nil, ErrUnavailable }

//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package tty

import "golang.org/x/sys/unix"

const ioctlGetModes, ioctlSetModes = unix.TIOCGETA, unix.TIOCSETA

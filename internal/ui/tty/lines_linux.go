package tty

import "golang.org/x/sys/unix"

const ioctlGetModes, ioctlSetModes = unix.TCGETS, unix.TCSETS

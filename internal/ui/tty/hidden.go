//go:build unix

package tty

import (
	"errors"
	"os"

	"coder/internal/core/message"

	"golang.org/x/sys/unix"
)

// DisableEcho stops a terminal in its usual mode from echoing typed text. show restores the echo.
func DisableEcho(in *os.File) (show func() error, err error) {
	fd := int(in.Fd())
	found, err := unix.IoctlGetTermios(fd, ioctlGetModes)
	if err != nil {
		return nil, errors.Join(ErrNotTerminal, err)
	}
	hidden := *found
	hidden.Lflag &^= unix.ECHO
	hidden.Lflag |= unix.ICANON | unix.ISIG
	hidden.Iflag |= unix.ICRNL
	if err := unix.IoctlSetTermios(fd, ioctlSetModes, &hidden); err != nil {
		return nil, message.Errorf("hide what is typed: %w", err)
	}
	return func() error { return unix.IoctlSetTermios(fd, ioctlSetModes, found) }, nil
}

package repofile

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// nonBlocking keeps opening from waiting for whoever is at the other end, and
// from taking a terminal.
const nonBlocking = unix.O_NONBLOCK | unix.O_NOCTTY

// openExactly opens the file name below dir, one part after the other, and
// follows no link on the way: whoever puts one there now comes too late.
func openExactly(dir, name string, directory bool) (*os.File, error) {
	const step = unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NOFOLLOW | nonBlocking
	at, err := openat(unix.AT_FDCWD, dir, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	parts := strings.Split(name, "/")
	for i, part := range parts {
		flags := step
		if i < len(parts)-1 || directory {
			flags |= unix.O_DIRECTORY
		}
		next, err := openat(at, part, flags)
		_ = unix.Close(at) // it was only stood on
		if err != nil {
			return nil, err
		}
		at = next
	}
	return os.NewFile(uintptr(at), filepath.Join(dir, name)), nil
}

func openat(dir int, name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flags, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

//go:build unix

package jsonl

import (
	"errors"
	"os"
	"syscall"
)

// noFollow keeps a link planted in a session from leading a write elsewhere,
// and a pipe planted there from stopping us.
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

func lockFile(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return errLocked
		default:
			return err
		}
	}
}

func unlockFile(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

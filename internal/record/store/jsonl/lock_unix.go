//go:build unix

package jsonl

import (
	"errors"
	"syscall"
)

// noFollow keeps a link planted in a session from leading a write elsewhere,
// and a pipe planted there from stopping us.
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

func lockFile(f File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return ErrLocked
		default:
			return err
		}
	}
}

func unlockFile(f File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

// alive reports whether a process of this machine runs.
func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

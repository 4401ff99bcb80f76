package workspace

import (
	"errors"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Rename modes for an existing new name.
const (
	renameNoReplace = unix.RENAME_NOREPLACE
	renameExchange  = unix.RENAME_EXCHANGE
)

// renameAt renames a in one directory to b in another.
func renameAt(from *os.Root, a string, to *os.Root, b string, how uint) error {
	return withDirFDs(from, to, func(x, y int) error { return unix.Renameat2(x, a, y, b, how) })
}

func withDirFDs(from, to *os.Root, do func(x, y int) error) error {
	x, err := from.Open(".")
	if err != nil {
		return err
	}
	defer x.Close()
	y := x
	if to != from {
		if y, err = to.Open("."); err != nil {
			return err
		}
		defer y.Close()
	}
	return retryInterrupted(func() error { return do(int(x.Fd()), int(y.Fd())) })
}

// isUnsupported reports whether the file system does not support the operation.
func isUnsupported(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP)
}

// createUnnamed creates a file without a name in dir.
func createUnnamed(dir *os.Root) (*os.File, error) {
	return dir.OpenFile(".", unix.O_TMPFILE|os.O_WRONLY, 0o666)
}

// linkUnnamed gives an unnamed file a name that is not in use.
func linkUnnamed(f *os.File, dir *os.Root, name string) error {
	fd := "/proc/self/fd/" + strconv.Itoa(int(f.Fd()))
	return withDirFDs(dir, dir, func(x, _ int) error {
		return unix.Linkat(unix.AT_FDCWD, fd, x, name, unix.AT_SYMLINK_FOLLOW)
	})
}

const (
	lockTimeout   = 5 * time.Second        // wait for another coder in a directory
	writerTimeout = 250 * time.Millisecond // wait for a program to close a file it writes
	pollInterval  = time.Millisecond
)

// lockDir keeps other coder processes from replacing files in a directory until it is unlocked. If
// locking fails, it continues without: important results are verified afterwards.
func lockDir(dir *os.Root) (unlock func()) {
	f, err := dir.Open(".")
	if err != nil {
		return func() {}
	}
	_ = poll(lockTimeout, func() error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) })
	return func() { f.Close() }
}

// poll calls try until it no longer asks to wait.
func poll(patience time.Duration, try func() error) error {
	for waited := time.Duration(0); ; waited += pollInterval {
		err := retryInterrupted(try)
		if !errors.Is(err, unix.EAGAIN) || waited >= patience {
			return err
		}
		time.Sleep(pollInterval)
	}
}

// acquireLease waits until no program has f open for writing, and then makes any that opens it for writing wait
// until f is closed. held is false on systems without leases. The error is [ErrBusy].
func acquireLease(f *os.File) (held bool, err error) {
	err = poll(writerTimeout, func() error {
		_, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
		return err
	})
	if errors.Is(err, unix.EAGAIN) {
		return false, ErrBusy
	}
	return err == nil, nil
}

// isLeaseWanted reports whether somebody waits for the end of a lease.
func isLeaseWanted(f *os.File) bool {
	now, err := unix.FcntlInt(f.Fd(), unix.F_GETLEASE, 0)
	return err != nil || now != unix.F_RDLCK
}

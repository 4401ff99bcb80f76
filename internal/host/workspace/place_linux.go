package workspace

import (
	"errors"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// How a rename treats what stands at the new name.
const (
	noReplace = unix.RENAME_NOREPLACE
	exchange  = unix.RENAME_EXCHANGE
)

// rename gives what is called a in one directory the name b in another.
func rename(from *os.Root, a string, to *os.Root, b string, how uint) error {
	return inDirs(from, to, func(x, y int) error { return unix.Renameat2(x, a, y, b, how) })
}

func inDirs(from, to *os.Root, do func(x, y int) error) error {
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
	return again(func() error { return do(int(x.Fd()), int(y.Fd())) })
}

// unsupported reports whether the file system cannot do what was asked.
func unsupported(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP)
}

// unnamed makes a file in dir that has no name.
func unnamed(dir *os.Root) (*os.File, error) {
	return dir.OpenFile(".", unix.O_TMPFILE|os.O_WRONLY, 0o666)
}

// link gives a file without a name one, if it is free.
func link(f *os.File, dir *os.Root, name string) error {
	fd := "/proc/self/fd/" + strconv.Itoa(int(f.Fd()))
	return inDirs(dir, dir, func(x, _ int) error {
		return unix.Linkat(unix.AT_FDCWD, fd, x, name, unix.AT_SYMLINK_FOLLOW)
	})
}

const (
	lockPatience   = 5 * time.Second        // for another of us at work in a directory
	writerPatience = 250 * time.Millisecond // for a program to close a file it writes
	pollEvery      = time.Millisecond
)

// lockDir keeps others of us from replacing files in a directory until it is
// unlocked. Where it cannot be locked we go without: what matters is looked at
// again after it is done.
func lockDir(dir *os.Root) (unlock func()) {
	f, err := dir.Open(".")
	if err != nil {
		return func() {}
	}
	_ = poll(lockPatience, func() error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) })
	return func() { f.Close() }
}

// poll tries something until it is not put off any more.
func poll(patience time.Duration, try func() error) error {
	for waited := time.Duration(0); ; waited += pollEvery {
		err := again(try)
		if !errors.Is(err, unix.EAGAIN) || waited >= patience {
			return err
		}
		time.Sleep(pollEvery)
	}
}

// lease waits until no program has f open for writing, and has the system make
// whoever opens it for that wait until f is closed. It is not held where there
// are no leases. The error is [ErrBusy].
func lease(f *os.File) (held bool, err error) {
	err = poll(writerPatience, func() error {
		_, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
		return err
	})
	if errors.Is(err, unix.EAGAIN) {
		return false, ErrBusy
	}
	return err == nil, nil
}

// wanted reports whether somebody waits for the end of a lease.
func wanted(f *os.File) bool {
	now, err := unix.FcntlInt(f.Fd(), unix.F_GETLEASE, 0)
	return err != nil || now != unix.F_RDLCK
}

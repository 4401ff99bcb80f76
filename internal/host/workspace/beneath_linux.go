package workspace

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// openBeneath opens a directory in one call, which the system refuses if the way
// there leads through a link or out of the tree.
func (w *Workspace) openBeneath(rel string) (*os.File, error) {
	top, err := w.top()
	if err != nil {
		return nil, err
	}
	how := unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
	for {
		fd, err := unix.Openat2(int(top.Fd()), rel, &how)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN): // something was renamed on the way
			continue
		case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM):
			return nil, errors.ErrUnsupported
		case err != nil:
			return nil, err
		}
		return os.NewFile(uintptr(fd), rel), nil
	}
}

// top is the tree's own directory.
func (w *Workspace) top() (*os.File, error) {
	if f := w.topDir.Load(); f != nil {
		return f, nil
	}
	f, err := w.root.Open(".")
	if err != nil {
		return nil, err
	}
	if !w.topDir.CompareAndSwap(nil, f) {
		f.Close()
	}
	return w.topDir.Load(), nil
}

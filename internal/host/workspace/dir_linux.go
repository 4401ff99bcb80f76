package workspace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// openBeneath opens a directory in one call, which fails if the path passes through a link or leaves the
// tree.
func (w *Workspace) openBeneath(rel string) (*os.File, error) {
	top := w.topDir.Load()
	if top == nil {
		f, err := w.root.Open(".")
		if err != nil {
			return nil, err
		}
		if !w.topDir.CompareAndSwap(nil, f) {
			f.Close()
		}
		top = w.topDir.Load()
	}
	how := unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
	for {
		fd, err := unix.Openat2(int(top.Fd()), rel, &how)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN): // a rename on the path interfered
			continue
		case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM):
			return nil, errors.ErrUnsupported
		case err != nil:
			return nil, err
		}
		return os.NewFile(uintptr(fd), rel), nil
	}
}

// dirBuffer is memory for reading a directory.
type dirBuffer struct {
	buf   [32 << 10]byte
	names []byte
	ends  []int
}

var dirBuffers = sync.Pool{New: func() any { return new(dirBuffer) }}

// readEntries appends a directory's entries to list, at most limit of them, unsorted. Their names share
// one string.
func readEntries(dir *os.File, list []dirent, limit int) (_ []dirent, more bool, err error) {
	l := dirBuffers.Get().(*dirBuffer)
	defer dirBuffers.Put(l)
	l.names, l.ends = l.names[:0], l.ends[:0]
	fd := int(dir.Fd())
	for !more {
		n, err := unix.ReadDirent(fd, l.buf[:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return list, false, err
		}
		if n <= 0 {
			break
		}
		for b := l.buf[:n]; len(b) > direntName; {
			size := int(binary.NativeEndian.Uint16(b[direntSize:]))
			name, _, _ := bytes.Cut(b[direntName:size], []byte{0})
			kind, known := kinds[b[direntType]]
			b = b[size:]
			if string(name) == "." || string(name) == ".." {
				continue
			}
			if len(list) == limit {
				more = true
				continue
			}
			l.names = append(l.names, name...)
			l.ends = append(l.ends, len(l.names))
			list = append(list, dirent{kind: kind, typeUnknown: !known})
		}
	}
	all, from := string(l.names), 0
	first := len(list) - len(l.ends)
	for i, end := range l.ends {
		list[first+i].name, from = all[from:end], end
	}
	return list, more, nil
}

// Offsets within a directory entry: its inode and offset, its size, its type and its name.
const (
	direntSize = 16
	direntType = 18
	direntName = 19
)

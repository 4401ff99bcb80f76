package workspace

import (
	"bytes"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// source is an inotify instance.
type source struct {
	fd         int
	mounts     *os.File // the mount table, which signals changes
	roots      []string
	mountLines string // the mounts inside the roots
	maxWatches int    // maximum number of watched directories
	local      map[uint64]bool
	buf        []byte
}

const (
	maskNames = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_ONLYDIR | unix.IN_EXCL_UNLINK
	maskAll   = maskNames | unix.IN_MODIFY | unix.IN_CLOSE_WRITE | unix.IN_ATTRIB
)

func newSource(roots []string) *source {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return nil
	}
	mounts, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		unix.Close(fd)
		return nil
	}
	text, _ := os.ReadFile("/proc/sys/fs/inotify/max_user_watches")
	watches, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	// Use half of the user's watches, since editors need some too.
	s := &source{fd: fd, mounts: mounts, roots: roots, maxWatches: watches / 2, local: make(map[uint64]bool),
		buf: make([]byte, 64<<10)}
	s.mountLines = s.mountsInside()
	return s
}

func (s *source) close() {
	unix.Close(s.fd)
	s.mounts.Close()
}

// add watches a directory; ok is false if changes in it may bypass this system.
func (s *source) add(dir *os.File, content bool, have int) (handle, bool) {
	fd := int(dir.Fd())
	var st unix.Stat_t
	if have >= s.maxWatches || unix.Fstat(fd, &st) != nil {
		return 0, false
	}
	local, known := s.local[st.Dev]
	if !known {
		var in unix.Statfs_t
		local = unix.Fstatfs(fd, &in) == nil && localFileSystems[int64(in.Type)]
		s.local[st.Dev] = local
	}
	if !local {
		return 0, false
	}
	mask := uint32(maskNames)
	if content {
		mask = maskAll
	}
	wd, err := unix.InotifyAddWatch(s.fd, "/proc/self/fd/"+strconv.Itoa(fd), mask|unix.IN_MASK_ADD)
	return handle(wd), err == nil
}

func (s *source) remove(h handle) { _, _ = unix.InotifyRmWatch(s.fd, uint32(h)) }

// localFileSystems are file systems that report every change: on local disks, or in memory.
var localFileSystems = map[int64]bool{
	unix.EXT4_SUPER_MAGIC: true, unix.XFS_SUPER_MAGIC: true, unix.BTRFS_SUPER_MAGIC: true, unix.TMPFS_MAGIC: true,
	unix.F2FS_SUPER_MAGIC: true, unix.OVERLAYFS_SUPER_MAGIC: true, unix.RAMFS_MAGIC: true, bcachefsMagic: true,
	zfsMagic: true,
}

const (
	bcachefsMagic = 0xca451a4e
	zfsMagic      = 0x2fc12fc1
)

// read passes events to take; it returns false if some may be missing.
func (s *source) read(take func(watchEvent)) bool {
	whole := true
	fds := []unix.PollFd{{Fd: int32(s.mounts.Fd()), Events: unix.POLLPRI}}
	if n, err := unix.Poll(fds, 0); err != nil || n != 0 { // changes below a new mount are not reported
		was := s.mountLines
		s.mountLines = s.mountsInside()
		whole = s.mountLines == was
	}
	for {
		n, err := unix.Read(s.fd, s.buf)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return whole && err == unix.EAGAIN
		case n <= 0:
			return whole
		}
		for b := s.buf[:n]; len(b) >= unix.SizeofInotifyEvent; {
			e := (*unix.InotifyEvent)(unsafe.Pointer(&b[0]))
			end := unix.SizeofInotifyEvent + int(e.Len)
			name, _, _ := bytes.Cut(b[unix.SizeofInotifyEvent:end], []byte{0})
			b = b[end:]
			if e.Mask&unix.IN_Q_OVERFLOW != 0 {
				whole = false
				continue
			}
			take(watchEvent{
				dir: handle(e.Wd), name: string(name),
				movedAway: e.Mask&unix.IN_MOVED_FROM != 0 && e.Mask&unix.IN_ISDIR != 0,
				unwatched: e.Mask&unix.IN_IGNORED != 0,
				op:        opFromMask(e.Mask), moveCookie: e.Cookie,
			})
		}
	}
}

func opFromMask(mask uint32) op {
	switch {
	case mask&unix.IN_MODIFY != 0:
		return opWrite
	case mask&unix.IN_CLOSE_WRITE != 0:
		return opClose
	case mask&unix.IN_MOVED_FROM != 0:
		return opMoveOut
	case mask&unix.IN_MOVED_TO != 0:
		return opMoveIn
	case mask&unix.IN_DELETE != 0:
		return opRemove
	}
	return opOther
}

// mountsInside returns the lines of the mounts inside the trees.
func (s *source) mountsInside() string {
	text, err := io.ReadAll(io.NewSectionReader(s.mounts, 0, math.MaxInt64))
	if err != nil {
		return err.Error()
	}
	var inside strings.Builder
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		at := mountUnescaper.Replace(fields[4])
		for _, root := range s.roots {
			if strings.HasPrefix(at, root+"/") {
				inside.WriteString(line)
			}
		}
	}
	return inside.String()
}

// mountUnescaper decodes names in the mount table.
var mountUnescaper = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

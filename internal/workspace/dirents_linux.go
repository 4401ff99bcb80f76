package workspace

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// kinds are the types of things as a directory gives them.
var kinds = map[byte]fs.FileMode{
	unix.DT_REG: 0, unix.DT_DIR: fs.ModeDir, unix.DT_LNK: fs.ModeSymlink, unix.DT_FIFO: fs.ModeNamedPipe,
	unix.DT_SOCK: fs.ModeSocket, unix.DT_BLK: fs.ModeDevice, unix.DT_CHR: fs.ModeDevice | fs.ModeCharDevice,
}

var direntBuffers = sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}

// readEntries appends what is in a directory to list, at most limit of it, in no
// order. Their names share one string.
func readEntries(dir *os.File, list []dirent, limit int) (_ []dirent, more bool, err error) {
	buf := direntBuffers.Get().(*[]byte)
	defer direntBuffers.Put(buf)
	fd := int(dir.Fd())
	var names []byte
	var ends []int
	for {
		n, err := unix.ReadDirent(fd, *buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return list, false, err
		}
		if n <= 0 {
			break
		}
		for b := (*buf)[:n]; len(b) > direntName; {
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
			names = append(names, name...)
			ends = append(ends, len(names))
			list = append(list, dirent{kind: kind, vague: !known})
		}
		if more {
			break
		}
	}
	all, from := string(names), 0
	first := len(list) - len(ends)
	for i, end := range ends {
		list[first+i].name, from = all[from:end], end
	}
	return list, more, nil
}

// Where the parts of an entry lie: its inode and offset, its size, its type and
// its name.
const (
	direntSize = 16
	direntType = 18
	direntName = 19
)

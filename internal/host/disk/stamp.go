package disk

import (
	"io/fs"
	"syscall"
)

// Stamp is what a file system says about a file without its being read. A file with
// the same stamp is taken for the same, unless it was changed so lately that it could
// be changed again within one tick of the clock. The zero Stamp is that of no file.
type Stamp struct {
	Size int64 `json:"size"`
	// When its content and when anything of it was changed, in nanoseconds. The first
	// can be set at will, the second is zero where the system does not tell.
	Written int64 `json:"written"`
	Changed int64 `json:"changed"`

	Device uint64 `json:"device"`
	Inode  uint64 `json:"inode"`
}

// StampOf is the stamp of a file.
func StampOf(info fs.FileInfo) Stamp {
	s := Stamp{Size: info.Size(), Written: info.ModTime().UnixNano()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.Device, s.Inode, s.Changed = uint64(st.Dev), st.Ino, changeTime(st)
	}
	return s
}

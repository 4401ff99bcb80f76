package disk

import (
	"io/fs"
	"syscall"
)

// Stamp is a file's metadata, read without its content. Files with the same stamp count as unchanged,
// unless the last change was so recent that another could follow within one clock tick. The zero Stamp
// means no file.
type Stamp struct {
	Size int64 `json:"size"`
	// ModTime and Changed are the times of the last change of content and of anything, in nanoseconds.
	// Programs can set Written; Changed is zero on systems that do not report it.
	ModTime    int64 `json:"written"`
	ChangeTime int64 `json:"changed"`

	Device uint64 `json:"device"`
	Inode  uint64 `json:"inode"`
}

// StampOf returns the stamp of a file.
func StampOf(info fs.FileInfo) Stamp {
	s := Stamp{Size: info.Size(), ModTime: info.ModTime().UnixNano()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.Device, s.Inode, s.ChangeTime = uint64(st.Dev), st.Ino, changeTime(st)
	}
	return s
}

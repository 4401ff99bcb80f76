package undo

import (
	"io/fs"
	"time"

	"coder/internal/record/undo/gitindex"
)

// stamp is what the file system says about a file without its being read. A
// file with the same stamp is taken for the same, unless it is fresh.
type stamp struct {
	size         int64
	mtime, ctime int64 // nanoseconds
	ino          uint64
	mode         fs.FileMode
}

// The clock of a file system ticks slowly: a file may be changed twice within
// one tick and look the same. Some tick in seconds.
const (
	tick     = 100 * time.Millisecond
	slowTick = 3 * time.Second
)

// last is when the file was changed last, in any way.
func (s stamp) last() time.Time { return time.Unix(0, max(s.mtime, s.ctime)) }

// fresh reports whether the file may yet change without its stamp changing, if
// that is the time on its file system, or was before it was read.
func (s stamp) fresh(now int64) bool {
	last := s.last().UnixNano()
	wait := tick
	if last%int64(time.Second) == 0 {
		wait = slowTick
	}
	return last > now-int64(wait)
}

// inIndex is the stamp as git notes it.
func (s stamp) inIndex() gitindex.File {
	return gitindex.File{ModTime: s.mtime, ChangeTime: s.ctime, Ino: uint32(s.ino), Size: uint32(s.size)}
}

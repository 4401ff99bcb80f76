package risk

import (
	"path"
	"slices"
	"strings"
)

var disks = []string{
	"sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "rdisk", "dm-", "md", "loop", "mapper/", "sr", "nbd", "zram", "ram", "pmem",
	"mem", "kmem", "port",
}

// isDisk reports whether a path names a disk, or the machine's memory.
func isDisk(p string) bool {
	name, ok := strings.CutPrefix(p, "/dev/")
	return ok && slices.ContainsFunc(disks, func(d string) bool { return strings.HasPrefix(name, d) })
}

// isRoot reports whether a word may name the root directory, or all that is
// in it.
func (w *walker) isRoot(a arg) bool {
	if a.known == dynamic {
		return false
	}
	for _, p := range w.places(a) {
		for {
			last := path.Base(p)
			if p == "/" || strings.Trim(last, "*.?{},") != "" || !strings.Contains(last, "*") {
				break
			}
			p = path.Dir(p)
		}
		if p == "/" {
			return true
		}
	}
	return false
}

func (w *walker) isDisk(a arg) bool {
	return a.known != dynamic && slices.ContainsFunc(w.places(a), isDisk)
}

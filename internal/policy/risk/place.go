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
	if !ok {
		return false
	}
	for _, d := range disks {
		if strings.HasPrefix(name, d) {
			return true
		}
	}
	return false
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
	if a.known == dynamic {
		return false
	}
	return slices.ContainsFunc(w.places(a), isDisk)
}

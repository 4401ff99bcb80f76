//go:build linux || darwin

package workspace

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	maxAttrNames = 4 << 10  // total bytes of all names
	maxAttrValue = 64 << 10 // bytes of one value
)

// attributes returns the extended attributes of f: access lists, labels, notes. Most files have none,
// and most file systems answer immediately.
func attributes(f *os.File) (list []attribute) {
	names := make([]byte, maxAttrNames)
	n, err := unix.Flistxattr(int(f.Fd()), names)
	if err != nil || n <= 0 {
		return nil
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(names[:n]), "\x00"), "\x00") {
		value := make([]byte, maxAttrValue)
		if n, err := unix.Fgetxattr(int(f.Fd()), name, value); err == nil {
			list = append(list, attribute{name, value[:n]})
		}
	}
	return list
}

// setAttributes sets the attributes on f that are permitted.
func setAttributes(f *os.File, list []attribute) {
	for _, a := range list {
		_ = unix.Fsetxattr(int(f.Fd()), a.name, a.value, 0) // some can only be set by the system
	}
}

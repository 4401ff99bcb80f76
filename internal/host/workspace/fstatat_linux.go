//go:build amd64 || arm64

package workspace

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fstatat describes the file in a directory under a name that ends in NUL. The function of package unix
// would copy the name, for perhaps hundreds of thousands of files.
func fstatat(dir int, cname []byte, st *unix.Stat_t) error {
	_, _, errno := syscall.Syscall6(sysFstatat, uintptr(dir), uintptr(unsafe.Pointer(&cname[0])),
		uintptr(unsafe.Pointer(st)), unix.AT_SYMLINK_NOFOLLOW, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

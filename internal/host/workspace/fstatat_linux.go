//go:build amd64 || arm64

package workspace

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fstatat describes what a directory has under a name that ends in a NUL. The
// one of package unix copies the name: there may be hundreds of thousands.
func fstatat(dir int, cname []byte, st *unix.Stat_t) error {
	_, _, errno := syscall.Syscall6(sysFstatat, uintptr(dir), uintptr(unsafe.Pointer(&cname[0])), uintptr(unsafe.Pointer(st)), unix.AT_SYMLINK_NOFOLLOW, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

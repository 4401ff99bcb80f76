//go:build !linux || !(amd64 || arm64)

package workspace

import "golang.org/x/sys/unix"

// fstatat describes the file in a directory under a name that ends in NUL.
func fstatat(dir int, cname []byte, st *unix.Stat_t) error {
	return unix.Fstatat(dir, string(cname[:len(cname)-1]), st, unix.AT_SYMLINK_NOFOLLOW)
}

package blob

import (
	"coder/internal/host/disk"

	"golang.org/x/sys/unix"
)

// syncFileSystem syncs the file system of f.
func syncFileSystem(f disk.File) error { return unix.Syncfs(int(f.Fd())) }

package blob

import "golang.org/x/sys/unix"

// syncFileSystem syncs the file system that f lies on.
func syncFileSystem(f File) error { return unix.Syncfs(int(f.Fd())) }

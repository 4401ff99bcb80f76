package sandbox

import (
	"os"

	"golang.org/x/sys/unix"
)

// newJournalFile returns an append-only file in memory.
func newJournalFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("journal", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFL, unix.O_APPEND); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), "journal"), nil
}

//go:build !linux

package shell

import (
	"context"
	"os"
	"strconv"
	"syscall"
)

// killWithParent does nothing on systems without such a signal.
func killWithParent(*syscall.SysProcAttr) {}

// becomeSubreaper does nothing where orphans cannot be adopted.
func becomeSubreaper() {}

// recordStart does nothing: only the process group identifies the family here.
func (f *family) recordStart() {}

// livingMembers returns the shell if the session's first process group has members; others cannot be found
// here.
func (f *family) livingMembers() []member {
	if syscall.Kill(-f.session, 0) == syscall.ESRCH {
		return nil
	}
	return []member{{pid: f.session, group: f.session}}
}

// reap does nothing: orphans are not adopted here.
func (f *family) reap() {}

// KillStrays does nothing here: what a killed program left cannot be found.
func KillStrays(context.Context, string) (ended int, err error) { return 0, nil }

// ProcessName returns the name of this program's process.
func ProcessName() string { return ownStarter().String() }

// HasEnded always returns false here, since it cannot be known.
func HasEnded(string) bool { return false }

// starterID is a process that runs commands.
type starterID struct{ pid int }

func (p starterID) String() string { return strconv.Itoa(p.pid) }

func ownStarter() starterID { return starterID{os.Getpid()} }

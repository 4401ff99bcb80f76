//go:build !linux

package shell

import (
	"context"
	"os"
	"strconv"
	"syscall"
)

// dieWithUs does nothing where the system has no such service.
func dieWithUs(*syscall.SysProcAttr) {}

// adopt does nothing where orphans cannot be had.
func adopt() {}

// recognise notes what tells the family's processes from others.
func (f *family) recognise() {}

// living reports whether the session's first process group has members; others
// cannot be told here.
func (f *family) living() []member {
	if syscall.Kill(-f.session, 0) == syscall.ESRCH {
		return nil
	}
	return []member{{pid: f.session, group: f.session}}
}

// reap does nothing: orphans are not ours here.
func (f *family) reap() {}

// Sweep does nothing where what a killed program left cannot be told.
func Sweep(context.Context, string) (ended int, err error) { return 0, nil }

// ProgramName is the name of this program.
func ProgramName() string { return self().String() }

// Ended cannot tell here.
func Ended(string) bool { return false }

// starter is a process that runs commands.
type starter struct{ pid int }

func (p starter) String() string { return strconv.Itoa(p.pid) }

func self() starter { return starter{os.Getpid()} }

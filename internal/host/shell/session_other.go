//go:build !linux

package shell

import (
	"context"
	"os"
	"strconv"
	"syscall"
)

// dieWithUs does nothing on systems without such a signal.
func dieWithUs(*syscall.SysProcAttr) {}

// adopt does nothing where orphans cannot be adopted.
func adopt() {}

// recognise does nothing: only the process group identifies the family here.
func (f *family) recognise() {}

// living returns the shell if the session's first process group has members; others cannot be found
// here.
func (f *family) living() []member {
	if syscall.Kill(-f.session, 0) == syscall.ESRCH {
		return nil
	}
	return []member{{pid: f.session, group: f.session}}
}

// reap does nothing: orphans are not adopted here.
func (f *family) reap() {}

// Sweep does nothing here: what a killed program left cannot be found.
func Sweep(context.Context, string) (ended int, err error) { return 0, nil }

// ProgramName returns the name of this program's process.
func ProgramName() string { return self().String() }

// Ended always returns false here, since it cannot be known.
func Ended(string) bool { return false }

// starter is a process that runs commands.
type starter struct{ pid int }

func (p starter) String() string { return strconv.Itoa(p.pid) }

func self() starter { return starter{os.Getpid()} }

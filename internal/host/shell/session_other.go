//go:build !linux

package shell

import "syscall"

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

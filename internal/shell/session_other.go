//go:build unix && !linux

package shell

import "syscall"

// dieWithUs does nothing where the system has no such service.
func dieWithUs(*syscall.SysProcAttr) {}

// living reports whether the session's first process group has members; others
// cannot be told here.
func living(session int) []member {
	if syscall.Kill(-session, 0) == syscall.ESRCH {
		return nil
	}
	return []member{{pid: session, group: session}}
}

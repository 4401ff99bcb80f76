//go:build !linux

package worker

import "syscall"

// dieWithUs does nothing: a task sees by the end of its order that its worker is
// gone.
func dieWithUs(*syscall.SysProcAttr) {}

//go:build !linux

package sandbox

import "syscall"

func newNamespaces(bool) func(*syscall.SysProcAttr) { return nil }

func terminateWithParent(*syscall.SysProcAttr) {}

func mountNamespace() string { return "" }

// ListeningSockets is not supported here.
func ListeningSockets(string) []string { return nil }

// MachineMemory is not measured here, since nothing limits it.
func MachineMemory() int64 { return 0 }

// useGroup returns the line unchanged: there are no control groups here.
func useGroup(argv []string, _ Bounds) (held []string, release func()) { return argv, func() {} }

func removeUnusedGroups() {}

func ownNumber() string { return "" }

//go:build !linux

package sandbox

import "syscall"

func inNamespaces(bool) func(*syscall.SysProcAttr) { return nil }

func askedWhenWeDie(*syscall.SysProcAttr) {}

func mountSpace() string { return "" }

// Listening is not supported here.
func Listening(string) []string { return nil }

// Memory is not measured here, since nothing limits it.
func Memory() int64 { return 0 }

// hold returns the line unchanged: there are no control groups here.
func hold(argv []string, _ Bounds) (held []string, release func()) { return argv, func() {} }

func dropGroups() {}

func processNumber() string { return "" }

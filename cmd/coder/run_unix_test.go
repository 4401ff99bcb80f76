package main

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// runAs makes c run as another user.
func runAs(c *exec.Cmd, uid uint32) {
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
}

// unread is how much waits in a pipe to be read.
func unread(t *testing.T, pipe *os.File) int {
	t.Helper()
	n, err := unix.IoctlGetInt(int(pipe.Fd()), fionread)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

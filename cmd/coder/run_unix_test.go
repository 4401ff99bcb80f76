package main

import (
	"os/exec"
	"syscall"
)

// runAs makes c run as another user.
func runAs(c *exec.Cmd, uid uint32) {
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
}

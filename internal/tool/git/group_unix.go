//go:build unix

package git

import (
	"syscall"

	"coder/internal/host/program"
)

// setOwnGroup gives git its own session, away from the user's terminal, and makes a timeout ask it to end,
// not kill it: git then removes its locks.
func setOwnGroup(cmd *program.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}

// killGroup kills everything that git left running.
func killGroup(cmd *program.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

//go:build unix

package git

import (
	"syscall"

	"coder/internal/host/program"
)

// ownGroup puts git into a session of its own, away from the user's terminal,
// and has it asked to end, not killed, when the time is up: it then takes its
// locks away.
func ownGroup(cmd *program.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}

// endGroup kills whatever git left behind.
func endGroup(cmd *program.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

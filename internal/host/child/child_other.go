//go:build !linux

package child

import (
	"syscall"

	"coder/internal/host/program"
)

// killWithParent does nothing on systems without such a signal; servers get coder's process id and watch it.
func killWithParent(*syscall.SysProcAttr) {}

// reap waits for a server to end, kills the rest of its group and returns how it ended.
func reap(cmd *program.Cmd) error {
	err := cmd.Wait()
	killGroup(cmd.Process.Pid)
	return err
}

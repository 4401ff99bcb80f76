//go:build !linux

package child

import (
	"syscall"

	"coder/internal/host/program"
)

// dieWithUs does nothing where the system has no such service; servers watch
// for our end themselves, for they are told our number.
func dieWithUs(*syscall.SysProcAttr) {}

// reap waits for the end of a server, ends what is left of its group and tells
// how it ended.
func reap(cmd *program.Cmd) error {
	err := cmd.Wait()
	killGroup(cmd.Process.Pid)
	return err
}

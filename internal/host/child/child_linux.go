package child

import (
	"syscall"

	"golang.org/x/sys/unix"

	"coder/internal/host/program"
)

// killWithParent makes the kernel kill the server when coder dies unexpectedly.
func killWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// reap waits for a server to end, kills the rest of its group and returns how it ended. It kills the
// group first: until the server is reaped, its process id cannot be reused.
func reap(cmd *program.Cmd) error {
	for {
		if err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != unix.EINTR {
			break
		}
	}
	killGroup(cmd.Process.Pid)
	return cmd.Wait()
}

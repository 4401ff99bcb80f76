package child

import (
	"syscall"

	"golang.org/x/sys/unix"

	"coder/internal/host/program"
)

// dieWithUs has the system kill the server when we die without a chance to.
func dieWithUs(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// reap waits for the end of a server, ends what is left of its group and tells
// how it ended. The group is ended first: as long as the server is not reaped
// nobody else can have its number.
func reap(cmd *program.Cmd) error {
	for {
		if err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != unix.EINTR {
			break
		}
	}
	killGroup(cmd.Process.Pid)
	return cmd.Wait()
}

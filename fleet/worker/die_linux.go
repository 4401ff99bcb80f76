package worker

import "syscall"

// dieWithUs has the system kill a task when its worker dies.
func dieWithUs(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

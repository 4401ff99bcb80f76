package sandbox

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// mayMount reports whether we may make namespaces as we are. Then no user
// namespace is needed. Without Landlock one is needed even so: else a command
// of root could go through /proc into the file system of a process of root that
// has no more capabilities than itself.
func mayMount() bool {
	have, err := capabilities()
	return err == nil && have.has(unix.CAP_SYS_ADMIN) && have.has(unix.CAP_NET_ADMIN) && landlockVersion() > 0
}

// askedWhenWeDie has a process told of our death by a signal that it can act on.
func askedWhenWeDie(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGTERM }

// inNamespaces has a process start in namespaces of its own: the mounts, the
// process table, and the network unless that may be used. It dies with whoever
// starts it, and all that is in its process table with it.
func inNamespaces(network bool) func(*syscall.SysProcAttr) {
	return func(attr *syscall.SysProcAttr) {
		attr.Cloneflags |= unix.CLONE_NEWNS | unix.CLONE_NEWPID
		if !network {
			attr.Cloneflags |= unix.CLONE_NEWNET
		}
		attr.Pdeathsig = syscall.SIGKILL
		if mayMount() {
			return
		}
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP}
	}
}

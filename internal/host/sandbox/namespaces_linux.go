package sandbox

import (
	"os"
	"strings"
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

// Doubtful reports whether there are signs that this machine does not confine
// all that is asked for. It costs next to nothing; only [Find] knows.
func Doubtful() bool {
	if mayMount() {
		return false
	}
	filter, err := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0)
	return err != nil || filter != 0 || says("/proc/sys/user/max_user_namespaces", "0") ||
		says("/proc/sys/kernel/unprivileged_userns_clone", "0") || says("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1")
}

// says reports whether a setting of the system has a value.
func says(setting, value string) bool {
	text, err := os.ReadFile(setting)
	return err == nil && strings.TrimSpace(string(text)) == value
}

package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"coder/internal/host/program"
)

// probeTimeout is the default time limit for testing a backend.
const probeTimeout = 2 * time.Minute

// backends returns the possible backends, best first.
func backends(o Options) (list []backend) {
	abi := landlockVersion()
	list = append(list, backend{name: Namespaces, abi: abi, probe: func(ctx context.Context) error {
		return o.runProbe(ctx, namespaceWrapper(o.Exe, helperSpec{resolvedLimits: resolvedLimits{network: false},
			probe: true}))
	}})
	if bwrap, err := o.Launcher.Find("bwrap"); err == nil {
		list = append(list, backend{name: Bubblewrap, abi: abi, prefix: []string{bwrap},
			probe: func(ctx context.Context) error {
				line := append([]string{bwrap}, bwrapArgs(resolvedLimits{})...)
				return o.runProbe(ctx, Wrapper{Argv: append(line, helperArgv(o.Exe,
					helperSpec{stage: stageBwrap, probe: true})...)})
			}})
	}
	return append(list, backend{name: Landlock, abi: abi, probe: func(ctx context.Context) error {
		return o.runProbe(ctx, Wrapper{Argv: helperArgv(o.Exe, helperSpec{stage: stageLandlock, probe: true})})
	}})
}

// runProbe runs a helper that confines itself and exits.
func (o Options) runProbe(ctx context.Context, line Wrapper) error {
	ctx, stop := context.WithTimeout(ctx, cmp.Or(o.ProbeTimeout, probeTimeout))
	defer stop()
	var stderr bytes.Buffer
	cmd := program.TrustedCommand(ctx, line.Argv[0], line.Argv[1:]...)
	if line.Attr != nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
		line.Attr(cmd.SysProcAttr)
	}
	cmd.Dir, cmd.Env, cmd.WaitDelay = "/", []string{}, time.Second
	cmd.Stdout, cmd.Stderr = &stderr, &stderr
	err := cmd.Run()
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if said := strings.TrimSpace(stderr.String()); err != nil && said != "" {
		return errors.New(strings.TrimPrefix(said, SetupPrefix))
	}
	return err
}

// canMount reports whether this process may create namespaces without a user namespace. Without Landlock
// it needs one anyway: otherwise a command of root could use /proc to reach the file system of another
// root process with no more capabilities.
func canMount() bool {
	have, err := capabilities()
	return err == nil && have.has(unix.CAP_SYS_ADMIN) && have.has(unix.CAP_NET_ADMIN) && landlockVersion() > 0
}

// terminateWithParent sends a process SIGTERM, which it can handle, when coder dies.
func terminateWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGTERM }

// newNamespaces starts a process in new namespaces: mounts, PIDs, System V and POSIX IPC, and the network
// unless it may be used. The process dies with its parent, and takes everything in its PID namespace
// with it.
func newNamespaces(network bool) func(*syscall.SysProcAttr) {
	return func(attr *syscall.SysProcAttr) {
		attr.Cloneflags |= unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC
		if !network {
			attr.Cloneflags |= unix.CLONE_NEWNET
		}
		attr.Pdeathsig = syscall.SIGKILL
		if canMount() {
			return
		}
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP}
	}
}

// LooksIncomplete reports whether there are signs that confinement is incomplete on this machine. It is cheap;
// only [Find] is certain.
func LooksIncomplete() bool {
	if canMount() {
		return false
	}
	filter, err := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0)
	return err != nil || filter != 0 || settingIs("/proc/sys/user/max_user_namespaces", "0") ||
		settingIs("/proc/sys/kernel/unprivileged_userns_clone", "0") ||
		settingIs("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1")
}

// settingIs reports whether a system setting has the given value.
func settingIs(setting, value string) bool {
	text, err := os.ReadFile(setting)
	return err == nil && strings.TrimSpace(string(text)) == value
}

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

// probeTime is the default time limit for testing a backend.
const probeTime = 2 * time.Minute

// backends returns the possible backends, best first.
func backends(o Options) (list []backend) {
	abi := landlockVersion()
	list = append(list, backend{name: Namespaces, abi: abi, probe: func(ctx context.Context) error {
		return o.try(ctx, inOwnSpaces(o.Exe, order{places: places{network: false}, probe: true}))
	}})
	if bwrap, err := o.Door.Find("bwrap"); err == nil {
		list = append(list, backend{name: Bubblewrap, abi: abi, through: []string{bwrap}, probe: func(ctx context.Context) error {
			line := append([]string{bwrap}, bwrapArgs(places{})...)
			return o.try(ctx, Line{Argv: append(line, helper(o.Exe, order{stage: stageBwrap, probe: true})...)})
		}})
	}
	return append(list, backend{name: Landlock, abi: abi, probe: func(ctx context.Context) error {
		return o.try(ctx, Line{Argv: helper(o.Exe, order{stage: stageLandlock, probe: true})})
	}})
}

// try runs a helper that confines itself and exits.
func (o Options) try(ctx context.Context, line Line) error {
	ctx, stop := context.WithTimeout(ctx, cmp.Or(o.Patience, probeTime))
	defer stop()
	var stderr bytes.Buffer
	cmd := program.Exactly(ctx, line.Argv[0], line.Argv[1:]...)
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

// mayMount reports whether this process may create namespaces without a user namespace. Without Landlock
// it needs one anyway: otherwise a command of root could use /proc to reach the file system of another
// root process with no more capabilities.
func mayMount() bool {
	have, err := capabilities()
	return err == nil && have.has(unix.CAP_SYS_ADMIN) && have.has(unix.CAP_NET_ADMIN) && landlockVersion() > 0
}

// askedWhenWeDie sends a process SIGTERM, which it can handle, when coder dies.
func askedWhenWeDie(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGTERM }

// inNamespaces starts a process in new namespaces: mounts, PIDs, System V and POSIX IPC, and the network
// unless it may be used. The process dies with its parent, and takes everything in its PID namespace
// with it.
func inNamespaces(network bool) func(*syscall.SysProcAttr) {
	return func(attr *syscall.SysProcAttr) {
		attr.Cloneflags |= unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC
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

// Doubtful reports whether there are signs that confinement is incomplete on this machine. It is cheap;
// only [Find] is certain.
func Doubtful() bool {
	if mayMount() {
		return false
	}
	filter, err := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0)
	return err != nil || filter != 0 || says("/proc/sys/user/max_user_namespaces", "0") ||
		says("/proc/sys/kernel/unprivileged_userns_clone", "0") || says("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1")
}

// says reports whether a system setting has the given value.
func says(setting, value string) bool {
	text, err := os.ReadFile(setting)
	return err == nil && strings.TrimSpace(string(text)) == value
}

package sandbox

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// namespaces are those a command gets of its own. The process table is not
// among them.
func namespaces(o order) int {
	flags := unix.CLONE_NEWUSER | unix.CLONE_NEWNS
	if !o.network {
		flags |= unix.CLONE_NEWNET
	}
	return flags
}

// mayMount reports whether we may make namespaces as we are. Then no user
// namespace is needed, and the helper can become the command. Without Landlock
// one is needed even so: else a command of root could go through /proc into the
// file system of a process of root that has no more capabilities than itself.
func mayMount() bool {
	have, err := capabilities()
	return err == nil && have.has(unix.CAP_SYS_ADMIN) && have.has(unix.CAP_NET_ADMIN) && landlockVersion() > 0
}

// standIn goes on in a child in namespaces of its own: a user namespace is for
// programs of one thread only, and so cannot be entered by one in Go. While the
// child runs we stand in for it: signals are left to it, as whoever stops us
// signals the group, and we end as it ends. If we are killed it dies too.
func standIn(o order) (code int, err error) {
	o.stage = stageInside
	leaveSignals()
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return 0, fmt.Errorf("die with whoever wants the command: %w", err)
	}
	child, err := os.StartProcess("/proc/self/exe", append([]string{os.Args[0], HelperName}, o.args()...), &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys: &syscall.SysProcAttr{
			Cloneflags:  uintptr(namespaces(o)),
			UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
			AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP},
			Pdeathsig:   syscall.SIGKILL,
		},
	})
	if err != nil {
		return 0, fmt.Errorf("make namespaces: %w", err)
	}
	state, err := child.Wait()
	if err != nil {
		return 0, fmt.Errorf("wait for command: %w", err)
	}
	ws := state.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		return dieOf(ws.Signal()), nil
	}
	return ws.ExitStatus(), nil
}

// leaveSignals has us survive the signals that the child is to act on. Those
// that are ignored stay so, for the child as well.
func leaveSignals() {
	for sig := syscall.Signal(1); sig <= 31; sig++ {
		switch sig {
		case syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGCHLD, syscall.SIGURG, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGCONT:
			continue
		}
		if !signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
}

// sigaction is at least as large as the kernel's on every platform; zero it is
// the default action.
type sigaction [8]uint64

// dieOf ends us by the signal that ended the child, without a core file. It
// returns the code to end with should the signal not do it.
func dieOf(sig syscall.Signal) int {
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	resetSignal(sig)
	_ = syscall.Kill(os.Getpid(), sig)
	return 128 + int(sig)
}

// signalSetSize is the size of a set of signals.
const signalSetSize = 8

// resetSignal gives a signal its default action, which the runtime would not
// do for those it takes as faults of the program.
func resetSignal(sig syscall.Signal) {
	var def sigaction
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&def)), 0, signalSetSize, 0, 0)
}

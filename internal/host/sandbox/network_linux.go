package sandbox

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// raiseLoopback makes the loopback of a new network usable.
func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}

// auditArch is how the kernel names this platform in filters.
var auditArch = map[string]uint32{
	"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64, "riscv64": unix.AUDIT_ARCH_RISCV64,
	"loong64": unix.AUDIT_ARCH_LOONGARCH64, "ppc64le": unix.AUDIT_ARCH_PPC64LE,
}

// Where things are in what a filter looks at, and the bit that marks calls of
// the x32 platform, which pass as ones of amd64.
const (
	atNumber = 0
	atArch   = 4
	atArg0   = 16
	x32      = 0x40000000
)

// filterSockets lets this thread open sockets only of families that cannot
// leave the machine, or its own network where it has one: other families (such
// as vsock, to the host of a virtual machine) are not held by that. Programs of
// other platforms, such as 32-bit ones, are refused, and io_uring is missing,
// since both could go round the filter.
//
// With Landlock alone nothing hides the files of Unix sockets, so such sockets
// cannot be made, network or not; only pairs can.
func filterSockets(o order) error {
	bare := o.stage == stageLandlock && landlockVersion() < abiSockets
	if o.network && !bare {
		return nil
	}
	arch, ok := auditArch[runtime.GOARCH]
	if !ok && o.stage == stageLandlock && !o.network {
		return errors.New("the network cannot be cut off on this platform")
	}
	if !ok {
		return nil
	}
	list := []uint32{unix.AF_NETLINK}
	if !bare {
		list = append(list, unix.AF_UNIX)
	}
	if o.stage != stageLandlock {
		list = append(list, unix.AF_INET, unix.AF_INET6)
	}
	filter := socketFilter(arch, list)
	if o.network {
		filter = socketFilter(arch, []uint32{unix.AF_UNIX})
		last := len(filter) - 1
		filter[last-1], filter[last] = filter[last], filter[last-1] // what was let pass is refused and the other way round
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return fmt.Errorf("filter sockets: %w", errno)
	}
	return nil
}

// socketFilter is the program the kernel runs at every call.
func socketFilter(arch uint32, families []uint32) (f []unix.SockFilter) {
	const (
		load    = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		atLeast = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		answer  = unix.BPF_RET | unix.BPF_K
	)
	refuse := func(errno unix.Errno) unix.SockFilter {
		return unix.SockFilter{Code: answer, K: unix.SECCOMP_RET_ERRNO | uint32(errno)}
	}
	pass := unix.SockFilter{Code: answer, K: unix.SECCOMP_RET_ALLOW}
	f = append(f,
		unix.SockFilter{Code: load, K: atArch},
		unix.SockFilter{Code: equal, K: arch, Jt: 1},
		refuse(unix.EPERM),
		unix.SockFilter{Code: load, K: atNumber},
		unix.SockFilter{Code: atLeast, K: x32, Jf: 1},
		refuse(unix.EPERM),
		unix.SockFilter{Code: equal, K: unix.SYS_IO_URING_SETUP, Jf: 1},
		refuse(unix.ENOSYS),
		unix.SockFilter{Code: equal, K: unix.SYS_SOCKET, Jt: 1},
		pass,
		unix.SockFilter{Code: load, K: atArg0},
	)
	for _, family := range families {
		f = append(f, unix.SockFilter{Code: equal, K: family, Jf: 1}, pass)
	}
	return append(f, refuse(unix.EACCES))
}

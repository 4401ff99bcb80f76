package sandbox

import (
	"errors"
	"runtime"
	"unsafe"

	"coder/internal/core/message"

	"golang.org/x/sys/unix"
)

// auditArch is this platform's name in filters.
var auditArch = map[string]uint32{
	"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64, "riscv64": unix.AUDIT_ARCH_RISCV64,
	"loong64": unix.AUDIT_ARCH_LOONGARCH64, "ppc64le": unix.AUDIT_ARCH_PPC64LE,
}

// Offsets in a filter's input, and the bit of x32 system calls, which otherwise look like amd64 ones.
const (
	offNumber = 0
	offArch   = 4
	offArg0   = 16
	offArg2   = 32
	x32Bit    = 0x40000000
)

// deniedCall is a system call forbidden to commands, and its error.
type deniedCall struct {
	call  uint32
	errno unix.Errno
}

// deniedCalls are calls that reach beyond the command's file system and network. If programs have a
// fallback for a call, its error is that of a kernel without it.
var deniedCalls = []deniedCall{
	// keys are shared by all processes of a user, across namespaces
	{unix.SYS_ADD_KEY, unix.ENOSYS}, {unix.SYS_REQUEST_KEY, unix.ENOSYS}, {unix.SYS_KEYCTL, unix.ENOSYS},
	// io_uring makes calls that no filter sees
	{unix.SYS_IO_URING_SETUP, unix.ENOSYS}, {unix.SYS_IO_URING_ENTER, unix.ENOSYS},
	{unix.SYS_IO_URING_REGISTER, unix.ENOSYS},
	// these inspect the kernel, or stall it
	{unix.SYS_BPF, unix.EPERM}, {unix.SYS_PERF_EVENT_OPEN, unix.EPERM}, {unix.SYS_USERFAULTFD, unix.EPERM},
	// a handle opens a file on any mount
	{unix.SYS_OPEN_BY_HANDLE_AT, unix.EPERM},
}

// ipcNumbers are the calls for memory, semaphores and queues without files. Without an IPC namespace, all
// processes of a user share them.
var ipcNumbers = []uint32{
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP,
	unix.SYS_SEMCTL,
	unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
}

// installFilter denies this thread and its children the calls in refusals, ptrace unless the order allows
// tracing, and all but a few socket families. It applies whether or not the network is allowed. Programs
// of other platforms, such as 32-bit ones, are denied entirely, since their calls have other numbers.
func installFilter(o helperSpec) error {
	arch, ok := auditArch[runtime.GOARCH]
	if !ok {
		return errors.New("system calls cannot be filtered on this platform")
	}
	filter := o.buildFilter(arch)
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW,
		uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return message.Errorf("filter system calls: %w", errno)
	}
	return nil
}

const (
	opLoad    = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	opEqual   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	opAtLeast = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	opReturn  = unix.BPF_RET | unix.BPF_K
)

var allowCall = unix.SockFilter{Code: opReturn, K: unix.SECCOMP_RET_ALLOW}

func denyCall(errno unix.Errno) unix.SockFilter {
	return unix.SockFilter{Code: opReturn, K: unix.SECCOMP_RET_ERRNO | uint32(errno)}
}

// buildFilter returns the BPF program that the kernel runs at every call.
func (o helperSpec) buildFilter(arch uint32) (f []unix.SockFilter) {
	when := func(value uint32, then unix.SockFilter) {
		f = append(f, unix.SockFilter{Code: opEqual, K: value, Jf: 1}, then)
	}
	f = append(f,
		unix.SockFilter{Code: opLoad, K: offArch},
		unix.SockFilter{Code: opEqual, K: arch, Jt: 1},
		denyCall(unix.EPERM),
		unix.SockFilter{Code: opLoad, K: offNumber},
		unix.SockFilter{Code: opAtLeast, K: x32Bit, Jf: 1},
		denyCall(unix.EPERM),
	)
	for _, r := range deniedCalls {
		when(r.call, denyCall(r.errno))
	}
	if o.stage == stageLandlock {
		for _, number := range ipcNumbers {
			when(number, denyCall(unix.ENOSYS))
		}
	}
	if !o.trace {
		when(unix.SYS_PTRACE, denyCall(unix.EPERM))
	}
	f = append(f,
		unix.SockFilter{Code: opEqual, K: unix.SYS_SOCKET, Jt: 1},
		allowCall,
		unix.SockFilter{Code: opLoad, K: offArg0},
	)
	for family, open := range o.socketFamilies() {
		if open {
			when(family, allowCall)
		} else {
			when(family, denyCall(unix.EACCES))
		}
	}
	// Allow only route netlink, with addresses and routes: name lookup needs it.
	return append(f,
		unix.SockFilter{Code: opEqual, K: unix.AF_NETLINK, Jt: 1},
		denyCall(unix.EAFNOSUPPORT),
		unix.SockFilter{Code: opLoad, K: offArg2},
		unix.SockFilter{Code: opEqual, K: unix.NETLINK_ROUTE, Jt: 1},
		denyCall(unix.EAFNOSUPPORT),
		allowCall,
	)
}

// socketFamilies are the useful kinds of sockets, and whether the command may open them. Others, such as
// vsock, which leads to the host of a virtual machine, ignore network namespaces. With Landlock alone
// nothing hides the files of Unix sockets, so the command may only use socket pairs.
func (o helperSpec) socketFamilies() map[uint32]bool {
	internet := o.network || o.stage != stageLandlock
	return map[uint32]bool{
		unix.AF_UNIX: o.stage != stageLandlock || landlockVersion() >= abiSockets, unix.AF_INET: internet,
		unix.AF_INET6: internet,
	}
}

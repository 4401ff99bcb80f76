package sandbox

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// attackName has the test program do what a shell cannot.
const attackName = "__attack"

// attacks are ways out, each given the rest of the arguments.
var attacks = map[string]func(args []string) error{
	"dial":   func(a []string) error { return dial(a[0], a[1]) },
	"hear":   func(a []string) error { return hear(a[0]) },
	"own":    func([]string) error { return dialMyself() },
	"family": func(a []string) error { return openSocket(number(a[0])) },
	"kill":   func(a []string) error { return unix.Kill(number(a[0]), 0) },
	"ptrace": func(a []string) error { return seize(number(a[0])) },
	"handle": func(a []string) error { return openByHandle(a[0], a[1]) },
	"thaw":   func(a []string) error { return thaw(a[0]) },
	"call":   func(a []string) error { return call(a[0]) },
	"fill":   func(a []string) error { return fill(number(a[0]), -1, time.Minute) },
	"some":   func(a []string) error { return fill(number(a[0]), -1, time.Second) },
	"map":    func(a []string) error { return fill(number(a[0]), 3, time.Second) },
	"share":  func(a []string) error { return share(number(a[0])) },
	"memfd":  func(a []string) error { return holdFile(number(a[0])) },
	"detach": func(a []string) error { return holdSegment(number(a[0])) },
	"write":  func(a []string) error { return openToWrite(a[0]) },
	"exchange": func(a []string) error {
		return unix.Renameat2(unix.AT_FDCWD, a[0], unix.AT_FDCWD, a[1], unix.RENAME_EXCHANGE)
	},
	"segment": func(a []string) error { return readSegment(number(a[0])) },
}

func attack(args []string) int {
	runtime.LockOSThread()
	if err := attacks[args[0]](args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

// dial connects and, if that says nothing, as with datagrams, sends something.
func dial(network, addr string) error {
	c, err := net.DialTimeout(network, addr, 2*time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Write([]byte("got out"))
	return err
}

func dialMyself() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	return dial("tcp", l.Addr().String())
}

func openSocket(family int) error {
	fd, err := unix.Socket(family, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func seize(pid int) error {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(pid), 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// openByHandle opens for writing what a handle, made outside, stands for, by
// way of a mount that may be written.
func openByHandle(mount, path string) error {
	h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, path, 0)
	if err != nil {
		return err
	}
	dir, err := unix.Open(mount, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	fd, err := unix.OpenByHandleAt(dir, h, unix.O_WRONLY|unix.O_APPEND)
	if err != nil {
		return err
	}
	_, err = unix.Write(fd, []byte("changed"))
	return err
}

// thaw takes the read-only attribute off a mount.
func thaw(path string) error {
	return unix.MountSetattr(unix.AT_FDCWD, path, 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY})
}

// calls are such that a command has no use for, or few commands have. Their
// arguments do no harm where the call is let through.
var calls = map[string][]uintptr{
	"add_key":            {unix.SYS_ADD_KEY, 0, 0, 0, 0, 0},
	"request_key":        {unix.SYS_REQUEST_KEY, 0, 0, 0, 0},
	"keyctl":             {unix.SYS_KEYCTL, unix.KEYCTL_GET_KEYRING_ID, ^uintptr(2), 0, 0, 0}, // -3, that of the session
	"io_uring_setup":     {unix.SYS_IO_URING_SETUP, 0, 0},
	"io_uring_enter":     {unix.SYS_IO_URING_ENTER, ^uintptr(0), 0, 0, 0, 0, 0},
	"io_uring_register":  {unix.SYS_IO_URING_REGISTER, ^uintptr(0), 0, 0, 0},
	"bpf":                {unix.SYS_BPF, ^uintptr(0), 0, 0},
	"perf_event_open":    {unix.SYS_PERF_EVENT_OPEN, 0, 0, 0, 0, 0},
	"userfaultfd":        {unix.SYS_USERFAULTFD, 1},
	"open_by_handle_at":  {unix.SYS_OPEN_BY_HANDLE_AT, ^uintptr(0), 0, 0},
	"shmget":             {unix.SYS_SHMGET, 0, 4096, unix.IPC_CREAT | 0o600},
	"semget":             {unix.SYS_SEMGET, 0, 1, unix.IPC_CREAT | 0o600},
	"msgget":             {unix.SYS_MSGGET, 0, unix.IPC_CREAT | 0o600},
	"mq_unlink":          {unix.SYS_MQ_UNLINK, 0},
	"ptrace":             {unix.SYS_PTRACE, unix.PTRACE_TRACEME, 0, 0, 0},
	"x32 keyctl":         {x32Bit | unix.SYS_KEYCTL, unix.KEYCTL_GET_KEYRING_ID, ^uintptr(2), 0, 0, 0},
	"socket alg":         {unix.SYS_SOCKET, unix.AF_ALG, unix.SOCK_SEQPACKET, 0},
	"socket bluetooth":   {unix.SYS_SOCKET, unix.AF_BLUETOOTH, unix.SOCK_RAW, 0},
	"socket packet":      {unix.SYS_SOCKET, unix.AF_PACKET, unix.SOCK_RAW, 0},
	"socket vsock":       {unix.SYS_SOCKET, unix.AF_VSOCK, unix.SOCK_STREAM, 0},
	"socket route":       {unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE},
	"socket connector":   {unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_CONNECTOR},
	"socket xfrm":        {unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_XFRM},
	"process_vm_readv":   {unix.SYS_PROCESS_VM_READV, uintptr(os.Getpid()), 0, 0, 0, 0, 0},
	"pidfd_open of self": {unix.SYS_PIDFD_OPEN, uintptr(os.Getpid()), 0},
}

// readSegment prints what is in a System V memory segment.
func readSegment(key int) error {
	id, err := unix.SysvShmGet(key, 0, 0)
	if err != nil {
		return err
	}
	data, err := unix.SysvShmAttach(id, 0, unix.SHM_RDONLY)
	if err != nil {
		return err
	}
	fmt.Print(string(bytes.TrimRight(data, "\x00")))
	return unix.SysvShmDetach(data)
}

// call makes one of them and says on standard output how that went.
func call(name string) error {
	args := append(slices.Clone(calls[name]), make([]uintptr, 7)...)
	_, _, errno := unix.RawSyscall6(args[0], args[1], args[2], args[3], args[4], args[5], args[6])
	fmt.Print(cmp.Or(unix.ErrnoName(errno), "done"))
	return nil
}

// fill writes to megabytes of memory, those of a file if one is given, and holds them
// for a while.
func fill(megabytes, file int, hold time.Duration) error {
	kind := unix.MAP_PRIVATE | unix.MAP_ANON
	if file >= 0 {
		kind = unix.MAP_SHARED
	}
	data, err := unix.Mmap(file, 0, megabytes<<20, unix.PROT_READ|unix.PROT_WRITE, kind)
	for at := 0; at < len(data); at += os.Getpagesize() {
		data[at] = 1
	}
	time.Sleep(hold)
	return err
}

// share has four processes hold the same megabytes.
func share(megabytes int) error {
	fd, err := unix.MemfdCreate("shared", 0)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), "shared")
	if err := file.Truncate(int64(megabytes) << 20); err != nil {
		return err
	}
	var all []*exec.Cmd
	for range 4 {
		cmd := exec.Command("/proc/self/exe", attackName, "map", strconv.Itoa(megabytes))
		cmd.ExtraFiles = []*os.File{file}
		if err := cmd.Start(); err != nil {
			return err
		}
		all = append(all, cmd)
	}
	for _, cmd := range all {
		err = errors.Join(err, cmd.Wait())
	}
	return err
}

func openToWrite(path string) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NONBLOCK, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// holdFile fills a file without a name that nothing maps, and waits.
func holdFile(megabytes int) error {
	fd, err := unix.MemfdCreate("x", 0)
	part := make([]byte, 1<<20)
	for i := 0; err == nil && i < megabytes; i++ {
		_, err = unix.Write(fd, part)
	}
	time.Sleep(time.Second)
	return err
}

// holdSegment fills a segment of System V, detaches it, and waits.
func holdSegment(megabytes int) error {
	id, err := unix.SysvShmGet(unix.IPC_PRIVATE, megabytes<<20, unix.IPC_CREAT|0o600)
	if err != nil {
		return err
	}
	data, err := unix.SysvShmAttach(id, 0, 0)
	if err != nil {
		return err
	}
	for i := 0; i < len(data); i += 4096 {
		data[i] = 1
	}
	err = unix.SysvShmDetach(data)
	time.Sleep(time.Second)
	_, rmErr := unix.SysvShmCtl(id, unix.IPC_RMID, nil)
	return errors.Join(err, rmErr)
}

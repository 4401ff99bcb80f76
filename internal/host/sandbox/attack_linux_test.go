package sandbox

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attackName has the test program do what a shell cannot.
const attackName = "__attack"

// attacks are ways out, each given the rest of the arguments.
var attacks = map[string]func(args []string) error{
	"dial":   func(a []string) error { return dial(a[0], a[1]) },
	"own":    func([]string) error { return dialMyself() },
	"family": func(a []string) error { return openSocket(number(a[0])) },
	"kill":   func(a []string) error { return unix.Kill(number(a[0]), 0) },
	"ptrace": func(a []string) error { return seize(number(a[0])) },
	"handle": func(a []string) error { return openByHandle(a[0], a[1]) },
	"thaw":   func(a []string) error { return thaw(a[0]) },
	"uring":  func([]string) error { return uring() },
	"write":  func(a []string) error { return openToWrite(a[0]) },
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

func uring() error {
	var params [120]byte
	_, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

func openToWrite(path string) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NONBLOCK, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

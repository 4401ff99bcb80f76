package sandbox

import (
	"errors"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Outlet is a listener in the network of a command that has no other: its
// connections come from that command and are accepted here. The helper makes it
// before the command starts and hands it over by a socket that the command does
// not have, so the command needs no path to us, and nobody else has one.
type Outlet struct {
	File *os.File // is given to the helper as descriptor OutletOn

	hand *net.UnixConn

	mu       sync.Mutex // guards the fields below
	closed   bool
	listener net.Listener // nil until it was handed over
}

// NewOutlet makes an outlet that is yet to be handed over.
func NewOutlet() (*Outlet, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	ours := os.NewFile(uintptr(pair[0]), "outlet")
	defer ours.Close()
	d := &Outlet{File: os.NewFile(uintptr(pair[1]), "outlet")}
	conn, err := net.FileConn(ours)
	if err != nil {
		d.File.Close()
		return nil, err
	}
	d.hand = conn.(*net.UnixConn)
	return d, nil
}

// Accept waits for the outlet to be handed over, and for a connection. Only one
// goroutine calls it.
func (d *Outlet) Accept() (net.Conn, error) {
	l, err := d.take()
	if err != nil {
		return nil, err
	}
	return l.Accept()
}

// take returns the listener, which it receives the first time.
func (d *Outlet) take() (net.Listener, error) {
	d.mu.Lock()
	l := d.listener
	d.mu.Unlock()
	if l != nil {
		return l, nil
	}
	rights := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := d.hand.ReadMsgUnix(make([]byte, 1), rights)
	if err != nil {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(errors.New("the helper handed over no listener"), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, errors.Join(errors.New("the helper handed over no listener"), err)
	}
	file := os.NewFile(uintptr(fds[0]), "outlet")
	defer file.Close()
	if l, err = net.FileListener(file); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		l.Close()
		return nil, net.ErrClosed
	}
	d.listener = l
	return l, nil
}

// Close ends the outlet, handed over or not.
func (d *Outlet) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	_ = d.File.Close() // it may be closed already
	err := d.hand.Close()
	if d.listener != nil {
		err = d.listener.Close()
	}
	return err
}

// Addr is where the command finds it.
func (d *Outlet) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: OutletPort} }

// handOver makes the listener, in the network of this process, and sends it to
// whoever started us. Neither is the command's.
func handOver() error {
	defer unix.Close(OutletOn)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: OutletPort, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	if err := unix.Listen(fd, unix.SOMAXCONN); err != nil {
		return err
	}
	return unix.Sendmsg(OutletOn, []byte{0}, unix.UnixRights(fd), nil, unix.MSG_NOSIGNAL)
}

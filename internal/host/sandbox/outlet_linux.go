package sandbox

import (
	"errors"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Outlet is a listener in the otherwise isolated network of a command: coder accepts its connections,
// which come only from that command. The helper creates the listener before the command starts and sends
// it over a socket that the command does not have. So the command needs no path to coder, and no other
// process has one.
type Outlet struct {
	File *os.File // pass it to the helper as descriptor OutletFD

	conn *net.UnixConn

	mu       sync.Mutex // guards the fields below
	closed   bool
	listener net.Listener // nil until handed over
}

// NewOutlet returns an outlet that the helper has yet to hand over.
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
	d.conn = conn.(*net.UnixConn)
	return d, nil
}

// Accept waits until the outlet is handed over and a connection arrives. Only one goroutine may call it.
func (d *Outlet) Accept() (net.Conn, error) {
	l, err := d.receive()
	if err != nil {
		return nil, err
	}
	return l.Accept()
}

// receive returns the listener, and receives it the first time.
func (d *Outlet) receive() (net.Listener, error) {
	d.mu.Lock()
	l := d.listener
	d.mu.Unlock()
	if l != nil {
		return l, nil
	}
	rights := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := d.conn.ReadMsgUnix(make([]byte, 1), rights)
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

// Close closes the outlet, handed over or not.
func (d *Outlet) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	_ = d.File.Close() // may already be closed
	err := d.conn.Close()
	if d.listener != nil {
		err = d.listener.Close()
	}
	return err
}

// Addr returns the address for the command.
func (d *Outlet) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: OutletPort} }

// sendListener creates the listener in this process's network and sends it to coder. The command gets
// neither.
func sendListener() error {
	defer unix.Close(OutletFD)
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
	return unix.Sendmsg(OutletFD, []byte{0}, unix.UnixRights(fd), nil, unix.MSG_NOSIGNAL)
}

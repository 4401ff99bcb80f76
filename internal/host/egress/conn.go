package egress

import (
	"io"
	"log"
	"net"
	"sync"
	"time"
)

// idle is a connection that closes after a long time without traffic.
type idle struct {
	net.Conn
	late *time.Timer
}

func (c *idle) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.late.Reset(idleTime)
	return n, err
}

func (c *idle) Write(b []byte) (int, error) {
	c.late.Reset(idleTime)
	return c.Conn.Write(b)
}

func (c *idle) Close() error {
	c.late.Stop()
	return c.Conn.Close()
}

func (c *idle) CloseWrite() error { return closeWrite(c.Conn) }

// bounded is a listener that limits its open connections to the number of slots.
type bounded struct {
	net.Listener
	slots chan struct{}
	ended <-chan struct{}
}

func (b *bounded) Accept() (net.Conn, error) {
	select {
	case b.slots <- struct{}{}:
	case <-b.ended:
		return nil, net.ErrClosed
	}
	c, err := b.Listener.Accept()
	if err != nil {
		<-b.slots
		return nil, err
	}
	return &slot{Conn: c, free: sync.OnceFunc(func() { <-b.slots })}, nil
}

// slot is a connection that frees its slot on close.
type slot struct {
	net.Conn
	free func()
}

func (c *slot) Close() error {
	defer c.free()
	return c.Conn.Close()
}

func (c *slot) CloseWrite() error { return closeWrite(c.Conn) }

// closeWrite closes the sending side of a connection, if supported.
func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// silent returns a logger that discards everything: clients' mistakes are not ours to report.
func silent() *log.Logger { return log.New(io.Discard, "", 0) }

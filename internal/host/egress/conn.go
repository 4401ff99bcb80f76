package egress

import (
	"io"
	"log"
	"net"
	"sync"
	"time"
)

// idleConn is a connection that closes after a long time without traffic.
type idleConn struct {
	net.Conn
	timer *time.Timer
}

func (c *idleConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.timer.Reset(idleTimeout)
	return n, err
}

func (c *idleConn) Write(b []byte) (int, error) {
	c.timer.Reset(idleTimeout)
	return c.Conn.Write(b)
}

func (c *idleConn) Close() error {
	c.timer.Stop()
	return c.Conn.Close()
}

func (c *idleConn) CloseWrite() error { return closeWrite(c.Conn) }

// limitedListener is a listener that limits its open connections to the number of slots.
type limitedListener struct {
	net.Listener
	slots chan struct{}
	done  <-chan struct{}
}

func (b *limitedListener) Accept() (net.Conn, error) {
	select {
	case b.slots <- struct{}{}:
	case <-b.done:
		return nil, net.ErrClosed
	}
	c, err := b.Listener.Accept()
	if err != nil {
		<-b.slots
		return nil, err
	}
	return &slotConn{Conn: c, release: sync.OnceFunc(func() { <-b.slots })}, nil
}

// slotConn is a connection that frees its slot on close.
type slotConn struct {
	net.Conn
	release func()
}

func (c *slotConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}

func (c *slotConn) CloseWrite() error { return closeWrite(c.Conn) }

// closeWrite closes the sending side of a connection, if supported.
func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// discardLogger returns a logger that discards everything: clients' mistakes are not ours to report.
func discardLogger() *log.Logger { return log.New(io.Discard, "", 0) }

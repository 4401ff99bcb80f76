//go:build unix

package shell

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// pump carries one stream of a command into a bounded buffer, and to a live
// writer if there is one.
type pump struct {
	from *os.File
	live io.Writer
	turn *sync.Mutex // held while a live writer is called
	kept keeper
	held bool // somebody kept the stream open after the command
	done chan struct{}
}

func newPump(limit int, live io.Writer, turn *sync.Mutex) (*pump, *os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	return &pump{from: r, live: live, turn: turn, kept: keeper{limit: limit}, done: make(chan struct{})}, w, nil
}

// run starts carrying; done is closed when the stream has ended.
func (p *pump) run() {
	go func() {
		defer close(p.done)
		buf := make([]byte, 32<<10)
		for {
			n, err := p.from.Read(buf)
			p.take(buf[:n])
			if errors.Is(err, os.ErrDeadlineExceeded) {
				p.takeRest(buf)
				return
			}
			if err != nil {
				return
			}
		}
	}()
}

// takeRest takes what the pipe holds at this moment, without waiting for more.
func (p *pump) takeRest(buf []byte) {
	_ = p.from.SetReadDeadline(time.Time{})
	conn, err := p.from.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Read(func(fd uintptr) bool {
		for took := 0; took < maxRest; {
			n, err := syscall.Read(int(fd), buf)
			if err == syscall.EINTR {
				continue
			}
			if n <= 0 || err != nil {
				p.held = err == syscall.EAGAIN
				break
			}
			p.take(buf[:n])
			took += n
		}
		return true
	})
}

func (p *pump) take(b []byte) {
	p.kept.write(b)
	if p.live == nil || len(b) == 0 {
		return
	}
	p.turn.Lock()
	defer p.turn.Unlock()
	if _, err := p.live.Write(b); err != nil {
		p.live = nil
	}
}

// hurry makes the pump stop waiting for more.
func (p *pump) hurry() { _ = p.from.SetReadDeadline(time.Unix(1, 0)) }

// maxRest is more than a pipe holds.
const maxRest = 2 << 20

// finish returns what was kept once the pump is done.
func (p *pump) finish() Output {
	p.close()
	return p.kept.output()
}

func (p *pump) close() { p.from.Close() }

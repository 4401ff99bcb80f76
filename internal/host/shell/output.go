package shell

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"
)

// Output is the saved part of a stream: its beginning and, if bytes were dropped, its end.
type Output struct {
	Head, Tail []byte
	Dropped    int64 // number of bytes dropped between the two
}

// Len returns how many bytes were saved.
func (o Output) Len() int { return len(o.Head) + len(o.Tail) }

// Text returns the cleaned output, with a note where bytes were dropped.
func (o Output) Text() string {
	if o.Dropped == 0 {
		return Clean(slices.Concat(o.Head, o.Tail))
	}
	head, tail := o.Head, o.Tail // without partial runes at the cut
	for i := 1; i < utf8.UTFMax && i <= len(head); i++ {
		if end := head[len(head)-i:]; utf8.RuneStart(end[0]) {
			if !utf8.FullRune(end) {
				head = head[:len(head)-i]
			}
			break
		}
	}
	for i := 0; i < utf8.UTFMax-1 && len(tail) > 0 && !utf8.RuneStart(tail[0]); i++ {
		tail = tail[1:]
	}
	return Clean(head) + fmt.Sprintf("\n[%d bytes left out]\n", o.Dropped) + Clean(tail)
}

// headTailBuffer keeps the first and the last bytes written to it, limit bytes in total.
type headTailBuffer struct {
	limit  int
	head   []byte
	ring   []byte // the latest bytes after head; a ring once full
	oldest int    // index of the oldest byte in a full ring
	total  int64
}

func (k *headTailBuffer) write(b []byte) {
	k.total += int64(len(b))
	n := min(len(b), (k.limit+1)/2-len(k.head))
	k.head = append(k.head, b[:n]...)
	b = b[n:]
	size := k.limit / 2 // the ring's capacity; once full, it overwrites its oldest bytes
	b = b[max(0, len(b)-size):]
	n = min(len(b), size-len(k.ring))
	k.ring = append(k.ring, b[:n]...)
	for b = b[n:]; len(b) > 0; {
		n := copy(k.ring[k.oldest:], b)
		k.oldest = (k.oldest + n) % size
		b = b[n:]
	}
}

func (k *headTailBuffer) output() Output {
	o := Output{Head: k.head, Tail: slices.Concat(k.ring[k.oldest:], k.ring[:k.oldest])}
	o.Dropped = k.total - int64(o.Len())
	return o
}

// pump copies one stream of a command to a bounded buffer, and to a live writer, if any.
type pump struct {
	from     *os.File
	live     io.Writer
	liveMu   *sync.Mutex // held while calling a live writer
	saved    headTailBuffer
	leftOpen bool // a process held the stream open after the command
	done     chan struct{}
}

func newPump(limit int, live io.Writer, turn *sync.Mutex) (*pump, *os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	return &pump{from: r, live: live, liveMu: turn, saved: headTailBuffer{limit: limit}, done: make(chan struct{})}, w, nil
}

// run starts copying; done is closed at the end of the stream.
func (p *pump) run() {
	go func() {
		defer close(p.done)
		buf := make([]byte, 32<<10)
		for {
			n, err := p.from.Read(buf)
			p.store(buf[:n])
			if errors.Is(err, os.ErrDeadlineExceeded) {
				_ = p.from.SetReadDeadline(time.Time{})
				conn, err := p.from.SyscallConn()
				if err != nil {
					return
				}
				_ = conn.Read(func(fd uintptr) bool {
					for took := 0; took < maxPipeData; {
						n, err := syscall.Read(int(fd), buf)
						if err == syscall.EINTR {
							continue
						}
						if n <= 0 || err != nil {
							p.leftOpen = err == syscall.EAGAIN
							break
						}
						p.store(buf[:n])
						took += n
					}
					return true
				})
				return
			}
			if err != nil {
				return
			}
		}
	}()
}

func (p *pump) store(b []byte) {
	p.saved.write(b)
	if p.live == nil || len(b) == 0 {
		return
	}
	p.liveMu.Lock()
	defer p.liveMu.Unlock()
	if _, err := p.live.Write(b); err != nil {
		p.live = nil
	}
}

// stopWaiting makes the pump stop waiting for more data.
func (p *pump) stopWaiting() { _ = p.from.SetReadDeadline(time.Unix(1, 0)) }

// maxPipeData is more than a pipe can hold.
const maxPipeData = 2 << 20

func (p *pump) finish() Output {
	p.close()
	return p.saved.output()
}

func (p *pump) close() { p.from.Close() }

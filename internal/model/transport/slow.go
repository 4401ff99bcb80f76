package transport

import (
	"io"
	"net/http"
	"time"
)

// tellEvery is how often it is told that nothing has come yet.
const tellEvery = 10 * time.Second

// await does what may take long, and tells the consumer meanwhile how long there
// has been no progress.
func (x *exchange) await(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	if x.moved {
		x.moved, x.waiting.Waited = false, 0
		x.tick.Reset(tellEvery)
	}
	for {
		select {
		case <-done:
			return
		case <-x.tick.C:
			w := x.waiting
			w.Waited += tellEvery
			if x.put(w); x.left {
				x.cancel(errLeft)
				<-done
				return
			}
		}
	}
}

// waitingReader reads a reply; what came is passed on before more is waited for,
// and it is told how long that takes.
type waitingReader struct {
	x    *exchange
	from io.Reader
}

func (r waitingReader) Read(p []byte) (n int, err error) {
	if !r.x.flush() {
		return 0, errLeft
	}
	r.x.await(func() { n, err = r.from.Read(p) })
	if n > 0 {
		r.x.patience.alive()
		r.x.patience.signs = true // unless it turns out to be progress
	}
	return n, err
}

// How fast a model reads at the least, in bytes of a request a second: on a
// machine of the person's own, and elsewhere. What is quickly read by any
// model is not counted.
const (
	localRate   = 100
	remoteRate  = 4000
	quicklyRead = 8 << 10
	mostSlow    = 2 // doublings of patience with a server of the person's own
)

// prefill is how long a model may take to read a request before it says anything.
// A server of the person's own that was given up for silence may still be busy
// with what it was asked then: the next request waits behind it.
func (c *Client) prefill(r Request) time.Duration {
	rate := int64(remoteRate)
	local := Local(r.URL)
	if local {
		rate = localRate
	}
	extra := time.Duration(max(0, r.Length-quicklyRead)/rate) * time.Second
	if local && extra > 0 {
		patience := max(c.opt.IdleTimeout, c.opt.ProgressTimeout) + extra
		extra += patience<<min(c.slow.Load(), mostSlow) - patience
	}
	return extra
}

// LlamaCpp is what a server of llama.cpp calls itself. It tells how far it has
// read a request, if it is asked to.
const LlamaCpp = "llama.cpp"

// heard notes what the server calls itself.
func (c *Client) heard(resp *http.Response) {
	if name := resp.Header.Get("Server"); name != "" {
		c.server.Store(&name)
	}
}

// Server is what the server calls itself, as far as it has said so.
func (c *Client) Server() string {
	if name := c.server.Load(); name != nil {
		return *name
	}
	return ""
}

package transport

import (
	"io"
	"net/http"
	"time"
)

// tellEvery is the interval of reports that nothing has come yet.
const tellEvery = 10 * time.Second

// await runs do, which may be slow, and meanwhile reports to
// the consumer how long there has been no progress.
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

// waitingReader reads a reply. It passes on received text before it waits for more, and reports the wait.
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

// These are the lowest reading speeds of models, in bytes of a request per second, on the user's own
// machine and elsewhere. The first quicklyRead bytes do not count.
const (
	localRate   = 100
	remoteRate  = 4000
	quicklyRead = 8 << 10
	mostSlow    = 2 // maximum doublings of patience with a local server
)

// prefill returns how long a model may take to read a request before its first output. A local server
// that was given up for silence may still be busy with the old request: the next one waits behind it.
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

// LlamaCpp is the name that a llama.cpp server reports. On request, it reports its prefill progress.
const LlamaCpp = "llama.cpp"

// heard records what the server calls itself.
func (c *Client) heard(resp *http.Response) {
	if name := resp.Header.Get("Server"); name != "" {
		c.server.Store(&name)
	}
}

// Server returns what the server calls itself, or "" if it has not said.
func (c *Client) Server() string {
	if name := c.server.Load(); name != nil {
		return *name
	}
	return ""
}

package transport

import (
	"io"
	"net/http"
	"time"
)

// reportInterval is the interval of reports that nothing has come yet.
const reportInterval = 10 * time.Second

// await runs do, which may be slow, and meanwhile reports to
// the consumer how long there has been no progress.
func (x *exchange) await(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	if x.progressed {
		x.progressed, x.waiting.Elapsed = false, 0
		x.ticker.Reset(reportInterval)
	}
	for {
		select {
		case <-done:
			return
		case <-x.ticker.C:
			w := x.waiting
			w.Elapsed += reportInterval
			if x.emitDelta(w); x.consumerGone {
				x.cancel(errConsumerGone)
				<-done
				return
			}
		}
	}
}

// waitingReader reads a reply. It passes on received text before it waits for more, and reports the wait.
type waitingReader struct {
	exchange *exchange
	from     io.Reader
}

func (r waitingReader) Read(p []byte) (n int, err error) {
	if !r.exchange.flush() {
		return 0, errConsumerGone
	}
	r.exchange.await(func() { n, err = r.from.Read(p) })
	if n > 0 {
		r.exchange.watchdog.recordBytes()
		r.exchange.watchdog.hasSigns = true // unless it turns out to be progress
	}
	return n, err
}

// These are the lowest reading speeds of models, in bytes of a request per second, on the user's own
// machine and elsewhere. The first quickBytes bytes do not count.
const (
	localReadRate  = 100
	remoteReadRate = 4000
	quickBytes     = 8 << 10
	maxDoublings   = 2 // maximum doublings of patience with a local server
)

// prefill returns how long a model may take to read a request before its first output. A local server
// that was given up for silence may still be busy with the old request: the next one waits behind it.
func (c *Client) prefill(r Request) time.Duration {
	rate := int64(remoteReadRate)
	local := IsLocal(r.URL)
	if local {
		rate = localReadRate
	}
	extra := time.Duration(max(0, r.Length-quickBytes)/rate) * time.Second
	if local && extra > 0 {
		patience := max(c.opt.IdleTimeout, c.opt.ProgressTimeout) + extra
		extra += patience<<min(c.slowReplies.Load(), maxDoublings) - patience
	}
	return extra
}

// LlamaCpp is the name that a llama.cpp server reports. On request, it reports its prefill progress.
const LlamaCpp = "llama.cpp"

// recordServer records what the server calls itself.
func (c *Client) recordServer(resp *http.Response) {
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

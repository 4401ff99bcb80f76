package worker

import (
	"sync"
	"time"
)

// contact is when the engine was heard of. Claims that lapsed while it was away say
// nothing about who held them: they are given the time of a lease to take them up
// again before anybody takes them over.
type contact struct {
	quiet  time.Duration // longer than that, and it was away
	breaks func() uint64 // how often the connection was made again

	mu         sync.Mutex // guards what follows
	last, back time.Time
	known      uint64
}

// heard notes that the engine was heard of.
func (c *contact) heard(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.breaks(); n != c.known || !c.last.IsZero() && now.Sub(c.last) > c.quiet {
		c.known, c.back = n, now
	}
	c.last = now
}

// since is for how long it has been there without a break.
func (c *contact) since(now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return now.Sub(c.back)
}

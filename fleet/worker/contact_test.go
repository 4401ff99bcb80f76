package worker

import (
	"testing"
	"time"
)

// An engine was away if the connection was made again, or if it was silent for
// long; otherwise it has been there for as long as anybody knows.
func TestContactKnowsWhenTheEngineWasAway(t *testing.T) {
	breaks := uint64(0)
	c := &contact{quiet: 6 * time.Second, breaks: func() uint64 { return breaks }}
	at := time.Unix(1_000_000, 0)
	later := func(d time.Duration) time.Time { at = at.Add(d); return at }
	c.heard(at)
	for range 5 {
		c.heard(later(2 * time.Second))
	}
	if d := c.since(at); d < time.Hour {
		t.Errorf("never away, and back for %s", d)
	}
	c.heard(later(7 * time.Second))
	if d := c.since(later(3 * time.Second)); d != 3*time.Second {
		t.Errorf("silent, and back for %s, want 3s", d)
	}
	breaks++
	c.heard(at)
	if d := c.since(later(time.Second)); d != time.Second {
		t.Errorf("connected again, and back for %s, want 1s", d)
	}
}

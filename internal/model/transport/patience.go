package transport

import (
	"context"
	"errors"
	"time"
)

// Why we gave up on a request ourselves.
var (
	errSilent = errors.New("silence")
	errQuiet  = errors.New("nothing but comments")
	errSlow   = errors.New("time is up")
	errEnough = errors.New("complete, though the connection is still open")
)

// commentsFactor is how many times longer than through silence we wait through
// comments alone: they say that the server is alive, not that the model is.
const commentsFactor = 3

// patience cancels a request that has gone silent. It measures silence, not
// duration: a slow reply may take all day. The zero patience is endless.
type patience struct {
	idle   time.Duration
	cancel context.CancelCauseFunc
	silent *time.Timer // runs out without any byte
	quiet  *time.Timer // runs out without data
	total  *time.Timer
	hasty  bool
}

func newPatience(idle, total time.Duration, cancel context.CancelCauseFunc) *patience {
	p := &patience{idle: idle, cancel: cancel}
	if idle > 0 {
		p.silent = time.AfterFunc(idle, func() { cancel(errSilent) })
		p.quiet = time.AfterFunc(commentsFactor*idle, func() { cancel(errQuiet) })
	}
	if total > 0 {
		p.total = time.AfterFunc(total, func() { cancel(errSlow) })
	}
	return p
}

// alive is told when bytes came.
func (p *patience) alive(data bool) {
	if p.silent == nil || p.hasty && !data {
		return
	}
	p.silent.Reset(p.idle)
	if data && p.quiet != nil {
		p.quiet.Reset(commentsFactor * p.idle)
	}
}

// hurry is for when all that matters is there: from now on the request ends
// after so long without data.
func (p *patience) hurry(grace time.Duration) {
	if p.idle > 0 {
		grace = min(grace, p.idle)
	}
	p.stop()
	p.idle, p.quiet, p.hasty = grace, nil, true
	p.silent = time.AfterFunc(grace, func() { p.cancel(errEnough) })
}

// stop ends all waiting.
func (p *patience) stop() {
	for _, t := range []*time.Timer{p.silent, p.quiet, p.total} {
		if t != nil {
			t.Stop()
		}
	}
}

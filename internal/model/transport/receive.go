package transport

import (
	"cmp"
	"context"
	"errors"
	"io"
	"time"

	"coder/internal/model/jsonscan"
	"coder/internal/model/provider"
)

const (
	// finishGrace is how long coder waits for usage and the end mark once the model has said why it stopped.
	finishGrace = 2 * time.Second
	// closeGrace is how long coder waits for the server to end a response
	// that is complete, so that the connection can serve the next request.
	closeGrace = 50 * time.Millisecond
	closeMost  = 64 << 10
)

// receive reads a successful response in any form.
func (x *exchange) receive(body io.Reader) error {
	x.body = body
	src := &source{from: waitingReader{x, body}, progress: x.progress}
	f, err := src.sniff()
	switch {
	case err == io.EOF:
		return say(provider.ErrCutOff, true, nil, "%s sent an empty reply", x.route)
	case err != nil:
		return x.why(err, x.broken)
	case f == markup:
		page, _ := src.rest()
		// The page may come from a gateway whose server is down, or that wants a login.
		return &provider.Error{Kind: provider.ErrNotAnAPI, Retryable: true, Err: errors.New(x.route.String() + " sent a web page: " + words(page))}
	case f == jsonBody:
		return x.readJSON(src)
	}
	return x.readEvents(src)
}

// readJSON reads a reply that did not come as a stream, or as a series of JSON values.
func (x *exchange) readJSON(src *source) error {
	body, err := src.rest()
	if err != nil {
		return x.why(err, x.broken)
	}
	rest := jsonscan.Trim(body)
	if rest[0] == '[' && jsonscan.Complete(rest) {
		return InBand(rest) // only errors are wrapped like this
	}
	for len(rest) > 0 {
		val, more, ok := jsonscan.Cut(rest)
		if jsonscan.TooDeep(rest) {
			return x.tooDeep()
		}
		if !ok {
			return say(provider.ErrCutOff, true, nil, "%s sent incomplete JSON: %s", x.route, CleanLine(string(rest)))
		}
		if err := x.decoder.Decode(val); err != nil {
			return err
		}
		rest = more
	}
	return x.end()
}

// readEvents reads a stream of events up to its end.
func (x *exchange) readEvents(src *source) error {
	seen := false
	for {
		e, err := src.next()
		switch {
		case x.caller.Err() != nil:
			return x.caller.Err()
		case x.left:
			return errLeft
		case err != nil:
			return x.endedWithoutMark(err, src, seen)
		case !e.whole && isDone(e.data):
			return x.whole()
		case e.name == "error":
			return InBand(e.data)
		case !e.whole && jsonscan.TooDeep(e.data):
			return x.tooDeep()
		case !e.whole:
			return say(provider.ErrCutOff, true, nil, "%s sent an event that is not JSON: %s", x.route, CleanLine(string(e.data)))
		}
		seen = true
		finished := x.decoder.Finished()
		switch err := x.decoder.Decode(jsonscan.Trim(e.data)); err {
		case nil:
		case io.EOF:
			return x.whole()
		default:
			return err
		}
		if x.left {
			return errLeft
		}
		if !finished && x.decoder.Finished() {
			x.patience.shorten(finishGrace)
		}
	}
}

// tooDeep reports a reply with an unreadable value. A retry would most likely bring the same.
func (x *exchange) tooDeep() error {
	return say(provider.ErrCutOff, false, nil, "%s sent JSON nested too deeply: more than %d levels", x.route, jsonscan.Deepest)
}

// whole ends a reply that had its end mark. Nothing can fail it now, and it does not wait for servers
// that leave the connection open. It reads the body to its end even if the consumer has left, because
// only then can the connection serve the next request.
func (x *exchange) whole() error {
	if err := x.end(); err != nil {
		return err
	}
	x.patience.shorten(closeGrace)
	_, _ = io.CopyN(io.Discard, x.body, closeMost)
	return nil
}

// endedWithoutMark handles a stream that ended without its end
// mark: if the model said why it stopped, the reply is complete.
func (x *exchange) endedWithoutMark(err error, src *source, seen bool) error {
	switch {
	case x.decoder.Finished():
		return x.end()
	case err != io.EOF:
		return x.why(err, x.broken)
	case !seen && src.stray != "":
		return &provider.Error{Kind: provider.ErrNotAnAPI, Err: errors.New(x.route.String() + " sent: " + CleanLine(src.stray))}
	case !seen:
		return say(provider.ErrCutOff, true, nil, "%s sent an empty reply", x.route)
	}
	return say(provider.ErrCutOff, true, nil, "%s ended the reply before it was complete", x.route)
}

// broken explains a response that broke off.
func (x *exchange) broken(err error) error {
	if errors.Is(err, errLongLine) || errors.Is(err, errLongBody) {
		return &provider.Error{Kind: provider.ErrCutOff, Err: err}
	}
	return say(provider.ErrCutOff, true, err, "the connection to %s broke in the middle of the reply: %s", x.route, plain(err))
}

// end ends a complete reply, unless its consumer is gone.
func (x *exchange) end() error {
	if err := x.caller.Err(); err != nil {
		return err
	}
	if err := x.decoder.End(); err != nil {
		return err
	}
	if !x.done {
		return cmp.Or(x.caller.Err(), errLeft)
	}
	return nil
}

// These are coder's own reasons to give up on a request.
var (
	errSilent = errors.New("silence")
	errQuiet  = errors.New("nothing but signs of life")
	errSlow   = errors.New("time is up")
	errEnough = errors.New("complete, though the connection is still open")
)

// limits are the timeouts for a reply: without a byte, without progress, and in total. Signs of life,
// such as comments, pings and empty events, are not progress. Zero means no limit.
type limits struct{ silence, progress, total time.Duration }

// patience cancels a request that makes no progress. It measures silence, not duration: a slow reply
// may take all day. The zero patience never cancels.
type patience struct {
	bear   limits        // the current limits
	extra  time.Duration // additional silence until the reply begins
	cancel context.CancelCauseFunc
	silent *time.Timer // fires after no byte
	quiet  *time.Timer // fires after no progress
	total  *time.Timer
	signs  bool // signs of life since the last progress
	hasty  bool
}

// newPatience applies l and, before the reply begins, allows additional
// silence for the time that the model may need to read the request.
func newPatience(l limits, prefill time.Duration, cancel context.CancelCauseFunc) *patience {
	p := &patience{extra: prefill, cancel: cancel}
	after := func(d *time.Duration, extra time.Duration, why error) *time.Timer {
		if *d <= 0 {
			return nil
		}
		*d += extra
		return time.AfterFunc(*d, func() { cancel(why) })
	}
	p.silent = after(&l.silence, prefill, errSilent)
	p.quiet = after(&l.progress, prefill, errQuiet)
	p.total = after(&l.total, 0, errSlow)
	p.bear = l
	return p
}

// alive records that bytes came.
func (p *patience) alive() {
	if p.silent != nil && !p.hasty {
		p.silent.Reset(p.bear.silence)
	}
}

// progress records that more of the reply came.
func (p *patience) progress() {
	p.signs = false
	if p.quiet != nil {
		p.quiet.Reset(p.bear.progress)
	}
}

// begun records that the model has read the request and written more.
func (p *patience) begun() {
	if !p.hasty {
		p.bear.silence -= p.extra
		p.bear.progress -= p.extra
		p.extra = 0
	}
	p.progress()
}

// shorten limits the wait once everything important has come:
// from now on the request ends after grace without progress.
func (p *patience) shorten(grace time.Duration) {
	for _, d := range []time.Duration{p.bear.silence, p.bear.progress} {
		if d > 0 {
			grace = min(grace, d)
		}
	}
	p.stop()
	p.bear.progress, p.hasty = grace, true
	p.quiet = time.AfterFunc(grace, func() { p.cancel(errEnough) })
}

// stop stops the timers.
func (p *patience) stop() {
	for _, t := range []*time.Timer{p.silent, p.quiet, p.total} {
		if t != nil {
			t.Stop()
		}
	}
}

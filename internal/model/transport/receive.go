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
	closeGrace    = 50 * time.Millisecond
	maxCloseBytes = 64 << 10
)

// receive reads a successful response in any form.
func (x *exchange) receive(body io.Reader) error {
	x.body = body
	src := &bodyReader{from: waitingReader{x, body}, progress: x.recordProgress}
	f, err := src.sniff()
	switch {
	case err == io.EOF:
		return newError(provider.ErrCutOff, true, nil, "%s sent an empty reply", x.route)
	case err != nil:
		return x.failureReason(err, x.explainBroken)
	case f == formMarkup:
		page, _ := src.readRest()
		// The page may come from a gateway whose server is down, or that wants a login.
		return &provider.Error{Kind: provider.ErrNotAnAPI, Retryable: true,
			Err: errors.New(x.route.String() + " sent a web page: " + pageText(page))}
	case f == formJSON:
		return x.readJSON(src)
	}
	return x.readEvents(src)
}

// readJSON reads a reply that did not come as a stream, or as a series of JSON values.
func (x *exchange) readJSON(src *bodyReader) error {
	body, err := src.readRest()
	if err != nil {
		return x.failureReason(err, x.explainBroken)
	}
	rest := jsonscan.TrimSpace(body)
	if rest[0] == '[' && jsonscan.IsComplete(rest) {
		return InBandError(rest) // only errors are wrapped like this
	}
	for len(rest) > 0 {
		val, more, ok := jsonscan.Cut(rest)
		if jsonscan.IsTooDeep(rest) {
			return x.tooDeepError()
		}
		if !ok {
			return newError(provider.ErrCutOff, true, nil, "%s sent incomplete JSON: %s", x.route, CleanLine(string(rest)))
		}
		if err := x.decoder.Decode(val); err != nil {
			return err
		}
		rest = more
	}
	return x.finish()
}

// readEvents reads a stream of events up to its end.
func (x *exchange) readEvents(src *bodyReader) error {
	seen := false
	for {
		e, err := src.next()
		switch {
		case x.caller.Err() != nil:
			return x.caller.Err()
		case x.consumerGone:
			return errConsumerGone
		case err != nil:
			return x.finishUnmarked(err, src, seen)
		case !e.isComplete && isDoneMark(e.data):
			return x.finishMarked()
		case e.name == "error":
			return InBandError(e.data)
		case !e.isComplete && jsonscan.IsTooDeep(e.data):
			return x.tooDeepError()
		case !e.isComplete:
			return newError(provider.ErrCutOff, true, nil, "%s sent an event that is not JSON: %s", x.route,
				CleanLine(string(e.data)))
		}
		seen = true
		finished := x.decoder.IsFinished()
		switch err := x.decoder.Decode(jsonscan.TrimSpace(e.data)); err {
		case nil:
		case io.EOF:
			return x.finishMarked()
		default:
			return err
		}
		if x.consumerGone {
			return errConsumerGone
		}
		if !finished && x.decoder.IsFinished() {
			x.watchdog.shorten(finishGrace)
		}
	}
}

// tooDeepError reports a reply with an unreadable value. A retry would most likely bring the same.
func (x *exchange) tooDeepError() error {
	return newError(provider.ErrCutOff, false, nil, "%s sent JSON nested too deeply: more than %d levels", x.route,
		jsonscan.MaxDepth)
}

// finishMarked ends a reply that had its end mark. Nothing can fail it now, and it does not wait for servers
// that leave the connection open. It reads the body to its end even if the consumer has left, because
// only then can the connection serve the next request.
func (x *exchange) finishMarked() error {
	if err := x.finish(); err != nil {
		return err
	}
	x.watchdog.shorten(closeGrace)
	_, _ = io.CopyN(io.Discard, x.body, maxCloseBytes)
	return nil
}

// finishUnmarked handles a stream that ended without its end
// mark: if the model said why it stopped, the reply is complete.
func (x *exchange) finishUnmarked(err error, src *bodyReader, seen bool) error {
	switch {
	case x.decoder.IsFinished():
		return x.finish()
	case err != io.EOF:
		return x.failureReason(err, x.explainBroken)
	case !seen && src.strayLine != "":
		return &provider.Error{Kind: provider.ErrNotAnAPI, Err: errors.New(x.route.String() + " sent: " +
			CleanLine(src.strayLine))}
	case !seen:
		return newError(provider.ErrCutOff, true, nil, "%s sent an empty reply", x.route)
	}
	return newError(provider.ErrCutOff, true, nil, "%s ended the reply before it was complete", x.route)
}

// explainBroken explains a response that broke off.
func (x *exchange) explainBroken(err error) error {
	if errors.Is(err, errLongLine) || errors.Is(err, errLongBody) {
		return &provider.Error{Kind: provider.ErrCutOff, Err: err}
	}
	return newError(provider.ErrCutOff, true, err, "the connection to %s broke in the middle of the reply: %s", x.route,
		innermostText(err))
}

// finish ends a complete reply, unless its consumer is gone.
func (x *exchange) finish() error {
	if err := x.caller.Err(); err != nil {
		return err
	}
	if err := x.decoder.End(); err != nil {
		return err
	}
	if !x.delivered {
		return cmp.Or(x.caller.Err(), errConsumerGone)
	}
	return nil
}

// These are coder's own reasons to give up on a request.
var (
	errSilent       = errors.New("silence")
	errNoProgress   = errors.New("nothing but signs of life")
	errTotalTimeout = errors.New("time is up")
	errComplete     = errors.New("complete, though the connection is still open")
)

// limits are the timeouts for a reply: without a byte, without progress, and in total. Signs of life,
// such as comments, pings and empty events, are not progress. Zero means no limit.
type limits struct{ silence, progress, total time.Duration }

// watchdog cancels a request that makes no progress. It measures silence, not duration: a slow reply
// may take all day. The zero patience never cancels.
type watchdog struct {
	limits        limits        // the current limits
	extra         time.Duration // additional silence until the reply begins
	cancel        context.CancelCauseFunc
	silenceTimer  *time.Timer // fires after no byte
	progressTimer *time.Timer // fires after no progress
	totalTimer    *time.Timer
	hasSigns      bool // signs of life since the last progress
	isShortened   bool
}

// newWatchdog applies l and, before the reply begins, allows additional
// silence for the time that the model may need to read the request.
func newWatchdog(l limits, prefill time.Duration, cancel context.CancelCauseFunc) *watchdog {
	p := &watchdog{extra: prefill, cancel: cancel}
	after := func(d *time.Duration, extra time.Duration, why error) *time.Timer {
		if *d <= 0 {
			return nil
		}
		*d += extra
		return time.AfterFunc(*d, func() { cancel(why) })
	}
	p.silenceTimer = after(&l.silence, prefill, errSilent)
	p.progressTimer = after(&l.progress, prefill, errNoProgress)
	p.totalTimer = after(&l.total, 0, errTotalTimeout)
	p.limits = l
	return p
}

// recordBytes records that bytes came.
func (p *watchdog) recordBytes() {
	if p.silenceTimer != nil && !p.isShortened {
		p.silenceTimer.Reset(p.limits.silence)
	}
}

// recordProgress records that more of the reply came.
func (p *watchdog) recordProgress() {
	p.hasSigns = false
	if p.progressTimer != nil {
		p.progressTimer.Reset(p.limits.progress)
	}
}

// recordStart records that the model has read the request and written more.
func (p *watchdog) recordStart() {
	if !p.isShortened {
		p.limits.silence -= p.extra
		p.limits.progress -= p.extra
		p.extra = 0
	}
	p.recordProgress()
}

// shorten limits the wait once everything important has come:
// from now on the request ends after grace without progress.
func (p *watchdog) shorten(grace time.Duration) {
	for _, d := range []time.Duration{p.limits.silence, p.limits.progress} {
		if d > 0 {
			grace = min(grace, d)
		}
	}
	p.stop()
	p.limits.progress, p.isShortened = grace, true
	p.progressTimer = time.AfterFunc(grace, func() { p.cancel(errComplete) })
}

// stop stops the timers.
func (p *watchdog) stop() {
	for _, t := range []*time.Timer{p.silenceTimer, p.progressTimer, p.totalTimer} {
		if t != nil {
			t.Stop()
		}
	}
}

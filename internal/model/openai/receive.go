package openai

import (
	"errors"
	"io"
	"net/http"
	"time"

	"coder/internal/model/provider"
)

const (
	// finishGrace is how long we wait for usage and the end mark once the
	// model has said why it stopped.
	finishGrace = 2 * time.Second
	// closeGrace is how long we wait for the server to end a response that has
	// said it is done, so that the connection can serve the next request.
	closeGrace = 50 * time.Millisecond
	closeMost  = 64 << 10
)

// receive reads a response of success, whatever form it has.
func (x *exchange) receive(resp *http.Response, emit func(provider.Delta) bool) error {
	src := &source{from: resp.Body, alive: x.patience.alive}
	r := &reply{emit: emit}
	f, err := src.sniff()
	switch {
	case err == io.EOF:
		return say(provider.ErrCutOff, true, nil, "%s sent an empty reply", x.route)
	case err != nil:
		return x.why(err, x.broken)
	case f == markup:
		return x.page(src)
	case f == jsonBody:
		return x.readJSON(src, r)
	}
	return x.readEvents(src, r)
}

// page reports a web page where a reply should be.
func (x *exchange) page(src *source) error {
	body, _ := src.rest()
	return &provider.Error{Kind: provider.ErrNotAnAPI, Err: errors.New(x.route.String() + " sent a web page: " + words(body))}
}

// readJSON reads a reply that came without a stream, or as one JSON value
// after another.
func (x *exchange) readJSON(src *source, r *reply) error {
	body, err := src.rest()
	if err != nil {
		return x.why(err, x.broken)
	}
	rest := body[blank(body, 0):]
	if rest[0] == '[' && complete(rest) {
		return inBand(rest) // only errors are wrapped so
	}
	for len(rest) > 0 {
		end := value(rest, 0, 0)
		if end < 0 {
			return say(provider.ErrCutOff, true, nil, "%s sent JSON that does not end: %s", x.route, cleanLine(string(rest)))
		}
		if err := r.take(rest[:end]); err != nil {
			return err
		}
		rest = rest[end:]
		rest = rest[blank(rest, 0):]
	}
	return x.over(r)
}

// readEvents reads a stream of events up to its end.
func (x *exchange) readEvents(src *source, r *reply) error {
	seen := false
	for {
		e, err := src.next()
		switch {
		case x.caller.Err() != nil:
			return x.caller.Err()
		case err != nil:
			return x.ended(err, src, r, seen)
		case !e.whole && isDone(e.data):
			if err := x.over(r); err != nil {
				return err
			}
			x.settle(src)
			return nil
		}
		seen = true
		if err := x.event(e, r); err != nil {
			return err
		}
	}
}

// event reads one event.
func (x *exchange) event(e event, r *reply) error {
	if e.name == "error" {
		return inBand(e.data)
	}
	if !e.whole {
		return say(provider.ErrCutOff, true, nil, "%s sent an event that is not JSON: %s", x.route, cleanLine(string(e.data)))
	}
	running := r.stop == ""
	if err := r.take(e.data[blank(e.data, 0):]); err != nil {
		return err
	}
	if r.left {
		return errLeft
	}
	if running && r.stop != "" {
		x.patience.hurry(finishGrace)
	}
	return nil
}

// ended decides what a stream is worth that ended without its end mark: if the
// model said why it stopped, nothing is missing.
func (x *exchange) ended(err error, src *source, r *reply, seen bool) error {
	switch {
	case r.stop != "" || r.trouble != nil:
		return x.over(r)
	case err != io.EOF:
		return x.why(err, x.broken)
	case !seen && src.stray != "":
		return &provider.Error{Kind: provider.ErrNotAnAPI, Err: errors.New(x.route.String() + " sent: " + cleanLine(src.stray))}
	case !seen:
		return say(provider.ErrCutOff, true, nil, "%s sent an empty reply", x.route)
	}
	return say(provider.ErrCutOff, true, nil, "%s ended the reply before it was complete", x.route)
}

// broken explains a response that broke off.
func (x *exchange) broken(err error) error {
	if errors.Is(err, errLongLine) {
		return &provider.Error{Kind: provider.ErrNotAnAPI, Err: err}
	}
	return say(provider.ErrCutOff, true, err, "the connection to %s broke in the middle of the reply: %s", x.route, plain(err))
}

// settle reads the end of a response that is complete already, without waiting
// for servers that leave the connection open.
func (x *exchange) settle(src *source) {
	x.patience.hurry(closeGrace)
	_, _ = io.CopyN(io.Discard, src.from, closeMost) // the reply is complete: nothing can fail it now
}

// over ends a reply that arrived whole, unless its reader is gone.
func (x *exchange) over(r *reply) error {
	if err := x.caller.Err(); err != nil {
		return err
	}
	if err := r.end(); err != nil {
		return err
	}
	if !r.done {
		return errLeft
	}
	return nil
}

package transport

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"coder/internal/model/provider"
)

// A Wire is how the servers of one kind are spoken to. F writes bodies, D is what
// a server has told us to say otherwise, S is what F has to know of a body so far.
type Wire[F Form[D, S], D comparable, S any] struct {
	Name string // on record
	// Address is where a model is asked, and List where the models are listed, at
	// the server whose base URL the person wrote.
	Address func(base, model string) (*url.URL, error)
	List    func(base string) (*url.URL, error)

	KeyHeader, KeyPrefix string      // of the key, unless the person named another
	Header               http.Header // of every request, besides

	// Tune fits a head to the server that is asked; nil means that it fits all.
	Tune func(h *Head[D], c *Client, req provider.Request)
	// Adapted is what is left of d after a complaint, in lower case.
	Adapted func(d D, req provider.Request, complaint string) D
	Decoder func(put func(provider.Delta)) Decoder
}

// Speaker is a [provider.Provider] that speaks over a wire. It is safe for
// concurrent use.
type Speaker[F Form[D, S], D comparable, S any] struct {
	*Client
	Listing
	wire    Wire[F, D, S]
	memory  Memory[F, D, S]
	dialect dialects[D]
}

// Speak returns a provider over w. Start is what is known of the server before
// anything was asked.
func Speak[F Form[D, S], D comparable, S any](o Options, w Wire[F, D, S], start D) *Speaker[F, D, S] {
	o.APIKey = strings.TrimSpace(o.APIKey)
	s := &Speaker[F, D, S]{Client: New(o), wire: w, dialect: dialects[D]{start: start}}
	s.Listing = Listing{Client: s.Client, At: func() (*url.URL, http.Header, error) {
		u, err := w.List(o.BaseURL)
		return u, s.header("application/json"), err
	}}
	return s
}

// Stream sends req and yields the reply as it arrives. Where a server refuses a
// part of the request that we can say otherwise or do without, it is asked again.
// When ctx ends so does the reply, with its error; of other errors the key is
// taken out.
func (s *Speaker[F, D, S]) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		emit := func(d provider.Delta) bool { return yield(d, nil) }
		err := s.dialect.ask(req.Model, func(d D) error { return s.ask(ctx, req, d, emit) },
			func(d D, complaint string) D { return s.wire.Adapted(d, req, complaint) })
		switch {
		case err == nil || err == errLeft:
		case ctx.Err() != nil:
			yield(nil, ctx.Err())
		default:
			yield(nil, s.hide(err))
		}
	}
}

// ask sends req in a dialect. A key that is refused is asked for anew, once.
func (s *Speaker[F, D, S]) ask(ctx context.Context, req provider.Request, d D, emit func(provider.Delta) bool) error {
	u, err := s.wire.Address(s.opt.BaseURL, req.Model)
	if err != nil {
		return err
	}
	h := Head[D]{Model: req.Model, System: req.System, Tools: req.Tools, MaxTokens: req.MaxTokens, Effort: req.Effort, Temperature: number(req.Temperature), Dialect: d}
	if s.wire.Tune != nil {
		s.wire.Tune(&h, s.Client, req)
	}
	body, sent, done := s.memory.Body(h, req.Messages)
	sent.Wire = s.wire.Name
	defer done()
	signed := func(d provider.Delta) bool {
		if end, ok := d.(provider.Done); ok {
			end.Sent = sent
			d = end
		}
		return emit(d)
	}
	header := s.header("text/event-stream")
	header.Set("Content-Type", "application/json")
	return s.withKey(ctx, Request{Method: http.MethodPost, URL: u, Header: header, Body: body, Length: int64(sent.Size)}, func(r Request) error {
		return s.exchange(ctx, r, s.wire.Decoder, signed)
	})
}

func (s *Speaker[F, D, S]) header(accept string) http.Header {
	h := s.wire.Header.Clone()
	if h == nil {
		h = make(http.Header)
	}
	h.Set("Accept", accept)
	s.opt.setKey(h, s.wire.KeyHeader, s.wire.KeyPrefix)
	return h
}

// dialects is what a server has told us to leave out or to say otherwise, for
// each of its models; D holds that. It is safe for concurrent use.
type dialects[D comparable] struct {
	start  D          // what is known before anything was asked
	mu     sync.Mutex // guards the field below
	learnt map[string]D
}

// of is what is known of a model.
func (l *dialects[D]) of(model string) D {
	if d, ok := l.learnt[model]; ok {
		return d
	}
	return l.start
}

// ask asks in the dialect that the server has for a model. If it complains about
// a word of ours, in lower case, and adapted knows another way to say it, it is
// asked again.
func (l *dialects[D]) ask(model string, ask func(D) error, adapted func(d D, complaint string) D) error {
	for {
		l.mu.Lock()
		d := l.of(model)
		l.mu.Unlock()
		err := ask(d)
		e, ok := errors.AsType[*provider.Error](err)
		if !ok || !slices.Contains([]int{http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity}, e.Status) {
			return err
		}
		complaint := strings.ToLower(e.Error())
		if adapted(d, complaint) == d {
			return err
		}
		l.mu.Lock()
		if l.learnt == nil {
			l.learnt = make(map[string]D)
		}
		l.learnt[model] = adapted(l.of(model), complaint)
		l.mu.Unlock()
	}
}

// number is how a figure of a request is written; "" if there is none.
func number(f *float64) string {
	if f == nil {
		return ""
	}
	return strconv.FormatFloat(*f, 'f', -1, 64)
}

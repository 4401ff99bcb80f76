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

// A Wire describes how to talk to servers of one kind. F writes bodies, D holds what a server wants
// said differently, S is what F must know about a body so far.
type Wire[F Form[D, S], D comparable, S any] struct {
	Name string // as recorded
	// Address returns where to ask a model, and List where its
	// server lists models, for the base URL that the user wrote.
	Address func(base, model string) (*url.URL, error)
	List    func(base string) (*url.URL, error)

	KeyHeader, KeyPrefix string      // for the key, unless the user named another header
	Header               http.Header // additional, on every request

	// Tune adapts a head to the server; nil means no adaptation.
	Tune func(h *Head[D], c *Client, req provider.Request)
	// Adapt returns d changed in response to a complaint in lower case.
	Adapt   func(d D, req provider.Request, complaint string) D
	Decoder func(put func(provider.Delta)) Decoder
}

// Provider is a [provider.Provider] for a wire. It is safe for concurrent use.
type Provider[F Form[D, S], D comparable, S any] struct {
	*Client
	Listing
	wire     Wire[F, D, S]
	bodies   BodyCache[F, D, S]
	dialects dialectCache[D]
}

// NewProvider returns a provider for w. start is the dialect before the first request.
func NewProvider[F Form[D, S], D comparable, S any](o Options, w Wire[F, D, S], start D) *Provider[F, D, S] {
	o.APIKey = strings.TrimSpace(o.APIKey)
	s := &Provider[F, D, S]{Client: New(o), wire: w, dialects: dialectCache[D]{initial: start}}
	s.Listing = Listing{Client: s.Client, Endpoint: func() (*url.URL, http.Header, error) {
		u, err := w.List(o.BaseURL)
		return u, s.header("application/json"), err
	}}
	return s
}

// Stream sends req and yields the reply as it arrives. If a server rejects a part of the request that
// coder can express differently or omit, Stream sends it again. When ctx ends, the reply ends with its
// error; in other errors the key is masked.
func (s *Provider[F, D, S]) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		emit := func(d provider.Delta) bool { return yield(d, nil) }
		err := s.dialects.withDialect(req.Model, func(d D) error { return s.ask(ctx, req, d, emit) },
			func(d D, complaint string) D { return s.wire.Adapt(d, req, complaint) })
		switch {
		case err == nil || err == errConsumerGone:
		case ctx.Err() != nil:
			yield(nil, ctx.Err())
		default:
			yield(nil, s.maskError(err))
		}
	}
}

// ask sends req in a dialect. If the key is refused, it fetches a new one, once.
func (s *Provider[F, D, S]) ask(ctx context.Context, req provider.Request, d D, emit func(provider.Delta) bool) error {
	u, err := s.wire.Address(s.opt.BaseURL, req.Model)
	if err != nil {
		return err
	}
	h := Head[D]{Model: req.Model, System: req.System, Tools: req.Tools, MaxTokens: req.MaxTokens, Effort: req.Effort,
		Temperature: formatNumber(req.Temperature), Dialect: d}
	if s.wire.Tune != nil {
		s.wire.Tune(&h, s.Client, req)
	}
	body, sent, done := s.bodies.Body(h, req.Messages)
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
	return s.withKey(ctx, Request{Method: http.MethodPost, URL: u, Header: header, Body: body, Length: int64(sent.Size)},
		func(r Request) error {
			return s.exchange(ctx, r, s.wire.Decoder, signed)
		})
}

func (s *Provider[F, D, S]) header(accept string) http.Header {
	h := s.wire.Header.Clone()
	if h == nil {
		h = make(http.Header)
	}
	h.Set("Accept", accept)
	s.opt.setKey(h, s.wire.KeyHeader, s.wire.KeyPrefix)
	return h
}

// dialectCache holds what a server has rejected or wants said differently,
// for each of its models. It is safe for concurrent use.
type dialectCache[D comparable] struct {
	initial D          // the dialect before the first request
	mu      sync.Mutex // guards the field below
	learned map[string]D
}

// get returns the dialect of a model.
func (l *dialectCache[D]) get(model string) D {
	if d, ok := l.learned[model]; ok {
		return d
	}
	return l.initial
}

// withDialect calls ask with the server's dialect for a model. If the server complains and adapted, which gets
// the complaint in lower case, finds another dialect, ask tries again.
func (l *dialectCache[D]) withDialect(model string, ask func(D) error, adapted func(d D, complaint string) D) error {
	for {
		l.mu.Lock()
		d := l.get(model)
		l.mu.Unlock()
		err := ask(d)
		e, ok := errors.AsType[*provider.Error](err)
		if !ok || !slices.Contains([]int{http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity},
			e.Status) {
			return err
		}
		complaint := strings.ToLower(e.Error())
		if adapted(d, complaint) == d {
			return err
		}
		l.mu.Lock()
		if l.learned == nil {
			l.learned = make(map[string]D)
		}
		l.learned[model] = adapted(l.get(model), complaint)
		l.mu.Unlock()
	}
}

// formatNumber formats a figure of a request; "" for nil.
func formatNumber(f *float64) string {
	if f == nil {
		return ""
	}
	return strconv.FormatFloat(*f, 'f', -1, 64)
}

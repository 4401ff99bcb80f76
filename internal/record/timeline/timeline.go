// Package timeline defines the order of a session's events, and is their only writer. A record is
// numbered, stored, and then shown, so nobody sees a fact that could be lost, and all observers see the
// same order.
//
// A fact that happened is recorded even if its turn has been canceled.
package timeline

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"coder/internal/core/event"
	"coder/internal/core/message"
)

// ErrClosed reports that the timeline accepts no more records.
var ErrClosed = errors.New("timeline is closed")

// Options configure a timeline.
type Options struct {
	// Now dates records without a time. If nil, they stay without.
	Now func() time.Time
	// New reports that the session has no records, so that nothing is read. If it has some, the first
	// durable record fails with [event.ErrConflict].
	New bool
	// Mask, if set, removes what must not be saved, such as keys, from all records. Shown records are masked
	// as well.
	Mask event.Masker
	// Seal, if set, signs every record that is about to be stored, numbered and dated.
	Seal func(*event.Record)
	// Fold receives every stored record, oldest first, while the session opens, so that resuming reads the
	// logs once. An error from it ends Open.
	Fold func(event.Record) error
}

// Timeline orders the records of one session. Use [Open].
type Timeline struct {
	store   event.Store
	session string
	now     func() time.Time
	mask    event.Masker
	seal    func(*event.Record)
	release func() error

	mu     sync.Mutex // guards the fields below, and the order of everything
	last   uint64
	closed bool
}

// Open claims session and continues it from the records in store.
func Open(ctx context.Context, store event.Store, session string, o Options) (*Timeline, error) {
	release, err := store.Claim(ctx, session)
	if err != nil {
		return nil, message.Errorf("open session %s: %w", session, err)
	}
	t := &Timeline{store: store, session: session, now: o.Now, mask: o.Mask, seal: o.Seal, release: release}
	if !o.New {
		for r, err := range t.store.Read(ctx, t.session, 0) {
			if err != nil {
				return nil, errors.Join(message.Errorf("recall session %s: %w", session, err), release())
			}
			t.last = r.Seq
			if o.Fold == nil {
				continue
			}
			if err := o.Fold(r); err != nil {
				return nil, errors.Join(message.Errorf("recall session %s: %w", session, err), release())
			}
		}
	}
	return t, nil
}

// Close releases the session. Closing twice is harmless.
func (t *Timeline) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	t.closed = true
	return t.release()
}

// Last returns the Seq of the newest stored record.
func (t *Timeline) Last() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// Wrap returns a Sink that sends each record through the timeline and then to out. out must not emit
// to the timeline.
func (t *Timeline) Wrap(out event.Sink) event.Sink {
	return event.SinkFunc(func(ctx context.Context, r event.Record) error {
		return t.EmitAll(ctx, out, r)
	})
}

// EmitAll stores the durable records of rs in one step, then shows all of rs to out without
// interruption. If storing fails, nobody sees any of them; if out fails, the error is an
// [event.NotShownError].
func (t *Timeline) EmitAll(ctx context.Context, out event.Sink, rs ...event.Record) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return ErrClosed
	}
	filled := slices.Clone(rs) // numbered and dated
	durable := make([]event.Record, 0, len(rs))
	for i := range filled {
		r := &filled[i]
		r.Session, r.Seq = t.session, 0
		if r.Time.IsZero() && t.now != nil {
			r.Time = t.now().UTC()
		}
		if t.mask != nil && !r.Clean {
			r.Event = event.Mask(r.Event, t.mask)
		}
		r.Clean = false
		if event.LogOf(r.Event) == event.LogNone {
			continue
		}
		r.Seq = t.last + 1 + uint64(len(durable))
		if t.seal != nil {
			t.seal(r)
		}
		durable = append(durable, *r)
	}
	if len(durable) != 0 {
		if err := t.store.Append(context.WithoutCancel(ctx), t.last, durable...); err != nil {
			name, _ := event.WireName(durable[0].Event)
			return message.Errorf("record %s: %w", name, err)
		}
		t.last += uint64(len(durable))
	}
	for _, r := range filled {
		if err := out.Emit(ctx, r); err != nil {
			return &event.NotShownError{Err: err}
		}
	}
	return nil
}

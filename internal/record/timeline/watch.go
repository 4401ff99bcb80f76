package timeline

import (
	"context"
	"errors"
	"iter"

	"coder/internal/core/event"
)

// ErrLagged tells a watcher that it fell behind.
var ErrLagged = errors.New("watcher fell behind")

// lag is how many records a watcher may be behind.
const lag = 1024

// A watcher's channel is closed when it is dropped; why is set before that.
type watcher struct {
	records chan event.Record
	why     error
}

// Watch yields the stored records after seq and then whatever happens next,
// transient records included, without a gap. It ends with ctx's error when ctx
// ends, with [ErrLagged] if the watcher falls behind, and without an error when
// the timeline is closed.
func (t *Timeline) Watch(ctx context.Context, after uint64) iter.Seq2[event.Record, error] {
	return func(yield func(event.Record, error) bool) {
		// The long way is read before joining, so that only what is emitted
		// during the second, short reading has to wait in the channel.
		if !t.replay(ctx, &after, yield) {
			return
		}
		w := t.watch()
		defer t.unwatch(w)
		if t.replay(ctx, &after, yield) {
			for {
				select {
				case <-ctx.Done():
					yield(event.Record{}, ctx.Err())
					return
				case r, ok := <-w.records:
					if !ok {
						if w.why != nil {
							yield(event.Record{}, w.why)
						}
						return
					}
					if r.Seq != 0 && r.Seq <= after {
						continue // already replayed from the store
					}
					if !yield(r, nil) {
						return
					}
				}
			}
		}
	}
}

func (t *Timeline) replay(ctx context.Context, after *uint64, yield func(event.Record, error) bool) (on bool) {
	if t.Last() <= *after {
		return true
	}
	for r, err := range t.store.Read(ctx, t.session, *after) {
		if !yield(r, err) || err != nil {
			return false
		}
		*after = r.Seq
	}
	return true
}

func (t *Timeline) watch() *watcher {
	w := &watcher{records: make(chan event.Record, lag)}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		close(w.records)
		return w
	}
	if t.watchers == nil {
		t.watchers = make(map[*watcher]struct{})
	}
	t.watchers[w] = struct{}{}
	return w
}

func (t *Timeline) unwatch(w *watcher) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, on := t.watchers[w]; on {
		t.drop(w, nil)
	}
}

func (t *Timeline) drop(w *watcher, why error) { // t.mu held
	w.why = why
	delete(t.watchers, w)
	close(w.records)
}

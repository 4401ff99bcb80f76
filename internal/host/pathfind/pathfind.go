// Package pathfind finds files of a tree by some letters of their paths, while
// these are typed.
//
// What it promises:
//   - Nobody waits for the tree: it is read beside the callers, kept, and read
//     anew while the old list serves. What has been read so far can be found.
//   - A letter more costs what the letters before it left over.
package pathfind

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	most      = 500_000     // paths of a tree that are known
	freshness = time.Second // how long a list is as good as new
	share     = 20          // reading takes at most one part of so many of the time
	pieces    = 4096        // paths that are taken in together
)

// Finder knows the paths of a tree. It is safe for concurrent use. [Finder.Close]
// ends what it does beside its callers.
type Finder struct {
	list func(ctx context.Context, each func(path string) bool)
	now  func() time.Time

	ctx     context.Context
	stop    context.CancelFunc
	reading sync.WaitGroup

	mu    sync.Mutex // guards the fields below
	paths []path
	ready chan struct{} // closed when the tree has been read once; nil before it is first asked for
	busy  bool          // it is being read
	due   time.Time     // when it may be read again
	steps []step        // what was found for the beginnings of what was last typed
}

// step is what is left of the tree after some letters.
type step struct {
	typed string
	found []int32 // indices of paths
}

// New makes a finder of the paths that list gives: the near before the far, those
// of folders with a slash at their end.
func New(list func(ctx context.Context, each func(path string) bool), now func() time.Time) *Finder {
	f := &Finder{list: list, now: now}
	f.ctx, f.stop = context.WithCancel(context.Background())
	return f
}

// Close ends reading.
func (f *Finder) Close() {
	f.stop()
	f.reading.Wait()
}

// Wait waits until the tree has been read once, or ctx ends.
func (f *Finder) Wait(ctx context.Context) {
	f.mu.Lock()
	f.refresh()
	ready := f.ready
	f.mu.Unlock()
	select {
	case <-ready:
	case <-ctx.Done():
	}
}

// Changed says that the tree may be another by now: it is read again as soon as something
// is looked for.
func (f *Finder) Changed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.due = time.Time{}
}

// Find is at most limit of the paths that have the letters of typed in their
// order, the best first. More says that the tree has not been read to its end yet.
func (f *Finder) Find(typed string, limit int) (found []string, more bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refresh() // what is there by now may be meant
	select {
	case <-f.ready:
	default:
		more = true
	}
	q := newQuery(typed)
	if q.want == "" {
		for i := range f.paths {
			if p := &f.paths[i]; !p.hidden && len(found) < limit {
				found = append(found, p.text)
			}
		}
		return found, more
	}
	for _, m := range f.narrow(q, limit) {
		found = append(found, f.paths[m.path].text)
	}
	return found, more || f.busy && len(found) == 0
}

// refresh reads the tree unless that is under way or was done just now. The
// caller holds mu.
func (f *Finder) refresh() {
	first := f.ready == nil
	if first {
		f.ready = make(chan struct{})
	}
	if f.busy || f.now().Before(f.due) {
		return
	}
	f.busy = true
	f.reading.Go(func() { f.read(first) })
}

// read reads the tree. The first time what has been read can be found at once.
func (f *Finder) read(first bool) {
	began := f.now()
	var all []path
	seen := 0
	f.list(f.ctx, func(text string) bool {
		if all = append(all, newPath(text)); first && len(all) == pieces {
			f.take(all, false)
			all = nil
		}
		seen++
		return seen < most
	})
	if f.ctx.Err() == nil {
		f.take(all, !first)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if first {
		close(f.ready)
	}
	f.busy = false
	f.due = f.now().Add(max(freshness, share*f.now().Sub(began)))
}

// take takes paths in, behind those that are known or in their place.
func (f *Finder) take(paths []path, instead bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if instead {
		f.paths = f.paths[:0:0]
	}
	f.paths, f.steps = append(f.paths, paths...), nil
}

// match is a path and how far it is from what was typed.
type match struct{ path, rank int }

// narrow finds the best paths among those that the letters before left over. The
// caller holds mu.
func (f *Finder) narrow(q query, limit int) (best []match) {
	for len(f.steps) > 0 && !strings.HasPrefix(q.want, f.steps[len(f.steps)-1].typed) {
		f.steps = f.steps[:len(f.steps)-1]
	}
	better := func(a, b match) int {
		if a.rank != b.rank {
			return a.rank - b.rank
		}
		p, o := &f.paths[a.path], &f.paths[b.path]
		if len(p.text) != len(o.text) {
			return len(p.text) - len(o.text)
		}
		return strings.Compare(p.text, o.text)
	}
	var found []int32
	look := func(i int) {
		p := &f.paths[i]
		rank, ok := q.rank(p)
		if !ok {
			return
		}
		found = append(found, int32(i))
		m := match{i, rank}
		if len(best) == limit {
			if limit == 0 || better(m, best[limit-1]) >= 0 {
				return
			}
			best = best[:limit-1]
		}
		at, _ := slices.BinarySearchFunc(best, m, better)
		best = slices.Insert(best, at, m)
	}
	if n := len(f.steps); n > 0 {
		for _, i := range f.steps[n-1].found {
			look(int(i))
		}
	} else {
		for i := range f.paths {
			look(i)
		}
	}
	f.steps = append(f.steps, step{q.want, found})
	return best
}

// Package pathfind finds files of a tree by some letters of their paths, as the user types them.
//
// It guarantees:
//   - Callers never wait for the tree: it is read in the background, cached, and
//     re-read while the old list serves. Paths read so far can be found.
//   - One more letter only searches the results of the letters before.
package pathfind

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	maxPaths  = 500_000     // limit on paths of a tree
	freshness = time.Second // how long a list counts as fresh
	readShare = 20          // reading takes at most 1/share of the time
	batchSize = 4096        // paths added in one batch
)

// Finder searches the paths of a tree. It is safe for concurrent use. [Finder.Close] ends its background
// work.
type Finder struct {
	list func(ctx context.Context, each func(path string) bool)
	now  func() time.Time

	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu        sync.Mutex // guards the fields below
	paths     []path
	ready     chan struct{} // closed after the first full read; nil before the first use
	isReading bool          // a read is in progress
	nextRead  time.Time     // earliest time of the next read
	steps     []step        // results for the prefixes of the last input
}

// step holds the paths that match a prefix of the input.
type step struct {
	input string
	found []int32 // indices of paths
}

// New returns a finder for the paths that list yields: near ones before far ones, folders with a
// trailing slash.
func New(list func(ctx context.Context, each func(path string) bool), now func() time.Time) *Finder {
	f := &Finder{list: list, now: now}
	f.ctx, f.stop = context.WithCancel(context.Background())
	return f
}

// Close stops reading.
func (f *Finder) Close() {
	f.stop()
	f.wg.Wait()
}

// Wait waits until the tree was read once, or ctx ends.
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

// Invalidate reports that the tree may have changed: the next search reads it again.
func (f *Finder) Invalidate() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nextRead = time.Time{}
}

// Find returns at most limit paths that contain the letters of typed in order, the best first. more
// reports that the tree is not completely read yet.
func (f *Finder) Find(typed string, limit int) (found []string, more bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refresh() // the user may mean a new path
	select {
	case <-f.ready:
	default:
		more = true
	}
	q := newQuery(typed)
	if q.want == "" {
		for i := range f.paths {
			if p := &f.paths[i]; !p.isHidden && len(found) < limit {
				found = append(found, p.text)
			}
		}
		return found, more
	}
	for _, m := range f.narrow(q, limit) {
		found = append(found, f.paths[m.path].text)
	}
	return found, more || f.isReading && len(found) == 0
}

// refresh reads the tree unless that is in progress or recent. The caller holds mu.
func (f *Finder) refresh() {
	first := f.ready == nil
	if first {
		f.ready = make(chan struct{})
	}
	if f.isReading || f.now().Before(f.nextRead) {
		return
	}
	f.isReading = true
	f.wg.Go(func() { f.read(first) })
}

// read reads the tree. During the first read, paths can be found immediately.
func (f *Finder) read(first bool) {
	began := f.now()
	var all []path
	seen := 0
	f.list(f.ctx, func(text string) bool {
		if all = append(all, newPath(text)); first && len(all) == batchSize {
			f.addPaths(all, false)
			all = nil
		}
		seen++
		return seen < maxPaths
	})
	if f.ctx.Err() == nil {
		f.addPaths(all, !first)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if first {
		close(f.ready)
	}
	f.isReading = false
	f.nextRead = f.now().Add(max(freshness, readShare*f.now().Sub(began)))
}

// addPaths adds paths, or replaces the known paths if instead is set.
func (f *Finder) addPaths(paths []path, instead bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if instead {
		f.paths = f.paths[:0:0]
	}
	f.paths, f.steps = append(f.paths, paths...), nil
}

// match is a path and its distance from the input.
type match struct{ path, rank int }

// narrow returns the best paths among those that match the previous letters. The caller holds mu.
func (f *Finder) narrow(q query, limit int) (best []match) {
	for len(f.steps) > 0 && !strings.HasPrefix(q.want, f.steps[len(f.steps)-1].input) {
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

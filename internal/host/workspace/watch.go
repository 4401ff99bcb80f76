package workspace

import (
	"os"
	"path"
	"slices"
	"strings"
	"sync"
)

// A watcher makes the system report changed directories, so that consumers of a tree examine only those
// again. All consumers share it. It stores only directories, and costs nothing while nobody asks: events
// wait in the system until then.
//
// It is either correct or off. If the system cannot report changes (a file system shared with other
// machines, too many directories for one program, no such service), everything always counts as changed,
// and consumers walk the tree.
type watcher struct {
	mu       sync.Mutex // guards all fields below and those of feeds
	roots    []string   // roots of the trees
	src      *source    // nil before the first directory, and when off
	disabled bool
	dirs     map[string]handle
	names    map[handle]string
	feeds    []*Feed

	moveCookie uint32 // cookie of the last move out
	movedName  string // and the name it moved
}

// handle identifies a watched directory.
type handle int32

// Feed is one consumer's view of what changed. Ask it before listing a directory, never after, so that
// changes in between are reported the next time.
type Feed struct {
	w          *watcher
	allChanged bool
	changed    map[string]bool
	rescan     map[string]bool
	countsOps  bool
	ops        map[string]Ops
}

// Ops counts what all programs did to a file of one name.
type Ops struct {
	Closed    int      // how often a program with write access closed it
	Moved     int      // how often it was moved to or from this name
	Removed   int      // how often it was removed
	MovedFrom []string // the names that files had which were moved there; "" is one outside
	StillOpen bool     // written, and not closed since
}

// Then returns the sum of o and the later operations p.
func (o Ops) Then(p Ops) Ops {
	return Ops{o.Closed + p.Closed, o.Moved + p.Moved, o.Removed + p.Removed, slices.Concat(o.MovedFrom, p.MovedFrom),
		p.StillOpen}
}

// Subscribe returns a feed of changes. At first everything counts as changed.
func (w *Workspace) Subscribe() *Feed {
	f := &Feed{w: &w.watch, allChanged: true}
	w.watch.mu.Lock()
	defer w.watch.mu.Unlock()
	if w.watch.roots == nil {
		for _, tree := range w.separateTrees() {
			w.watch.roots = append(w.watch.roots, tree.real)
		}
	}
	w.watch.feeds = append(w.watch.feeds, f)
	return f
}

// CountOps makes the feed count file operations. Several close together may count as one.
func (f *Feed) CountOps() *Feed {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	f.countsOps = true
	return f
}

// Changes lists directories for which a view may be outdated.
type Changes struct {
	All    bool            // everything is unknown: walk
	Dirs   map[string]bool // directories whose direct entries changed
	Rescan map[string]bool // directories to examine again with everything below
	Ops    map[string]Ops  // by path, if the feed counts; incomplete if All is set
}

// NeedsRescan reports whether a directory must be examined again because one above it must.
func (c Changes) NeedsRescan(dir string) bool {
	if len(c.Rescan) == 0 {
		return false
	}
	for dir != "." && dir != "/" {
		if dir = path.Dir(dir); c.Rescan[dir] {
			return true
		}
	}
	return false
}

// Changes returns what changed since its last call.
func (f *Feed) Changes() Changes {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	c := f.takeOpsLocked()
	c.Dirs, c.Rescan = f.changed, f.rescan
	f.allChanged, f.changed, f.rescan = false, nil, nil
	return c
}

// TakeOps returns the operations since the last call of it or of Changes. A later Changes returns the
// directories that they changed.
func (f *Feed) TakeOps() Changes {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	return f.takeOpsLocked()
}

func (f *Feed) takeOpsLocked() Changes {
	if f.w.src != nil && !f.w.src.read(f.w.handleEvent) {
		for _, other := range f.w.feeds {
			other.allChanged = true
		}
	}
	c := Changes{All: f.allChanged || f.w.disabled || f.w.src == nil, Ops: f.ops}
	f.ops = nil
	return c
}

// MarkFailed records that the changes could not be examined, so that the next call reports everything as
// changed.
func (f *Feed) MarkFailed() {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	f.allChanged = true
}

// add watches the open directory dir under its name. If content is set, the watch also reports changes
// to its files' content, otherwise only to its names.
func (f *Feed) add(dir *os.File, name string, content bool) {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	if f.w.disabled {
		return
	}
	if f.w.src == nil {
		if f.w.src = newSource(f.w.roots); f.w.src == nil {
			f.w.stop()
			return
		}
		f.w.dirs, f.w.names = make(map[string]handle), make(map[handle]string)
	}
	h, ok := f.w.src.add(dir, content, len(f.w.dirs))
	if !ok {
		f.w.stop()
		return
	}
	if old, again := f.w.names[h]; again && old != name {
		delete(f.w.dirs, old) // it was moved
	}
	if old, other := f.w.dirs[name]; other && old != h {
		delete(f.w.names, old)
		f.w.src.remove(old)
	}
	f.w.dirs[name], f.w.names[h] = h, name
}

// stop turns the watch off permanently and releases its resources.
func (w *watcher) stop() {
	w.disabled = true
	if w.src != nil {
		w.src.close()
	}
	w.src, w.dirs, w.names = nil, nil, nil
}

// watchEvent is one event in a watched directory.
type watchEvent struct {
	dir        handle
	name       string // the changed name in it, or empty
	movedAway  bool   // a directory of that name was moved away
	unwatched  bool   // the directory is no longer watched
	op         op
	moveCookie uint32 // cookie shared by both ends of a move
}

// op is an operation on a file.
type op uint8

const (
	opOther op = iota
	opWrite
	opClose
	opMoveOut
	opMoveIn
	opRemove
)

func (w *watcher) handleEvent(h watchEvent) {
	dir, ok := w.names[h.dir]
	if !ok {
		return
	}
	if h.unwatched {
		delete(w.names, h.dir)
		delete(w.dirs, dir)
		w.notify(dir, true)
		return
	}
	if h.movedAway {
		gone := path.Join(dir, h.name) // its new place counts as a new directory
		for name, h := range w.dirs {
			if name == gone || strings.HasPrefix(name, gone+"/") {
				delete(w.dirs, name)
				delete(w.names, h)
				w.src.remove(h)
			}
		}
		w.notify(gone, true)
	}
	w.notify(dir, h.name == ignoreFile)
	if h.op != opOther {
		w.countOp(path.Join(dir, h.name), h)
	}
}

// countOp adds a file operation to the feeds that count.
func (w *watcher) countOp(name string, h watchEvent) {
	from := ""
	switch {
	case h.op == opMoveOut:
		w.moveCookie, w.movedName = h.moveCookie, name
	case h.op == opMoveIn && h.moveCookie == w.moveCookie:
		from = w.movedName
	}
	for _, f := range w.feeds {
		if !f.countsOps {
			continue
		}
		o := f.ops[name]
		if h.op != opWrite || !o.StillOpen { // many writes count as one change
			o.add(h.op, from)
			if f.ops == nil {
				f.ops = make(map[string]Ops)
			}
			f.ops[name] = o
		}
	}
}

func (o *Ops) add(what op, from string) {
	o.StillOpen = what == opWrite
	switch what {
	case opClose:
		o.Closed++
	case opMoveOut:
		o.Moved++
	case opMoveIn:
		o.Moved++
		o.MovedFrom = append(o.MovedFrom, from)
	case opRemove:
		o.Removed++
	}
}

func (w *watcher) notify(dir string, anew bool) {
	for _, f := range w.feeds {
		set := &f.changed
		if anew {
			set = &f.rescan
		}
		if *set == nil {
			*set = make(map[string]bool)
		}
		(*set)[dir] = true
	}
}

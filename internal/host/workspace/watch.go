package workspace

import (
	"os"
	"path"
	"slices"
	"strings"
	"sync"
)

// A watch makes the system report changed directories, so that consumers of a tree examine only those
// again. All consumers share it. It stores only directories, and costs nothing while nobody asks: events
// wait in the system until then.
//
// It is either correct or off. If the system cannot report changes (a file system shared with other
// machines, too many directories for one program, no such service), everything always counts as changed,
// and consumers walk the tree.
type watch struct {
	mu    sync.Mutex // guards all fields below and those of feeds
	roots []string   // roots of the trees
	src   *source    // nil before the first directory, and when off
	off   bool
	dirs  map[string]handle
	names map[handle]string
	feeds []*Feed

	leaving uint32 // cookie of the last move out
	left    string // and the name it moved
}

// handle identifies a watched directory.
type handle int32

// Feed is one consumer's view of what changed. Ask it before listing a directory, never after, so that
// changes in between are reported the next time.
type Feed struct {
	w       *watch
	all     bool
	changed map[string]bool
	anew    map[string]bool
	counts  bool
	ops     map[string]Ops
}

// Ops counts what all programs did to a file of one name.
type Ops struct {
	Closed  int      // how often a program with write access closed it
	Moved   int      // how often it was moved to or from this name
	Removed int      // how often it was removed
	From    []string // the names that files had which were moved there; "" is one outside
	Open    bool     // written, and not closed since
}

// Then returns the sum of o and the later operations p.
func (o Ops) Then(p Ops) Ops {
	return Ops{o.Closed + p.Closed, o.Moved + p.Moved, o.Removed + p.Removed, slices.Concat(o.From, p.From), p.Open}
}

// Follow returns a feed of changes. At first everything counts as changed.
func (w *Workspace) Follow() *Feed {
	f := &Feed{w: &w.watch, all: true}
	w.watch.mu.Lock()
	defer w.watch.mu.Unlock()
	if w.watch.roots == nil {
		for _, tree := range w.apart() {
			w.watch.roots = append(w.watch.roots, tree.real)
		}
	}
	w.watch.feeds = append(w.watch.feeds, f)
	return f
}

// Count makes the feed count file operations. Several close together may count as one.
func (f *Feed) Count() *Feed {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	f.counts = true
	return f
}

// Changes lists directories for which a view may be outdated.
type Changes struct {
	All  bool            // everything is unknown: walk
	Dirs map[string]bool // directories whose direct entries changed
	Anew map[string]bool // directories to examine again with everything below
	Ops  map[string]Ops  // by path, if the feed counts; incomplete if All is set
}

// AnewAbove reports whether a directory must be examined again because one above it must.
func (c Changes) AnewAbove(dir string) bool {
	if len(c.Anew) == 0 {
		return false
	}
	for dir != "." && dir != "/" {
		if dir = path.Dir(dir); c.Anew[dir] {
			return true
		}
	}
	return false
}

// Changes returns what changed since its last call.
func (f *Feed) Changes() Changes {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	c := f.counted()
	c.Dirs, c.Anew = f.changed, f.anew
	f.all, f.changed, f.anew = false, nil, nil
	return c
}

// Counted returns the operations since the last call of it or of Changes. A later Changes returns the
// directories that they changed.
func (f *Feed) Counted() Changes {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	return f.counted()
}

func (f *Feed) counted() Changes {
	if f.w.src != nil && !f.w.src.read(f.w.note) {
		for _, other := range f.w.feeds {
			other.all = true
		}
	}
	c := Changes{All: f.all || f.w.off || f.w.src == nil, Ops: f.ops}
	f.ops = nil
	return c
}

// Fail records that the changes could not be examined, so that the next call reports everything as
// changed.
func (f *Feed) Fail() {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	f.all = true
}

// add watches the open directory dir under its name. If content is set, the watch also reports changes
// to its files' content, otherwise only to its names.
func (f *Feed) add(dir *os.File, name string, content bool) {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	if f.w.off {
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
func (w *watch) stop() {
	w.off = true
	if w.src != nil {
		w.src.close()
	}
	w.src, w.dirs, w.names = nil, nil, nil
}

// happening is one event in a watched directory.
type happening struct {
	dir   handle
	name  string // the changed name in it, or empty
	left  bool   // a directory of that name was moved away
	ended bool   // the directory is no longer watched
	op    op
	move  uint32 // cookie shared by both ends of a move
}

// op is an operation on a file.
type op uint8

const (
	opOther op = iota
	opWrite
	opClose
	opLeave
	opArrive
	opRemove
)

func (w *watch) note(h happening) {
	dir, ok := w.names[h.dir]
	if !ok {
		return
	}
	if h.ended {
		delete(w.names, h.dir)
		delete(w.dirs, dir)
		w.tell(dir, true)
		return
	}
	if h.left {
		gone := path.Join(dir, h.name) // its new place counts as a new directory
		for name, h := range w.dirs {
			if name == gone || strings.HasPrefix(name, gone+"/") {
				delete(w.dirs, name)
				delete(w.names, h)
				w.src.remove(h)
			}
		}
		w.tell(gone, true)
	}
	w.tell(dir, h.name == ignoreFile)
	if h.op != opOther {
		w.count(path.Join(dir, h.name), h)
	}
}

// count adds a file operation to the feeds that count.
func (w *watch) count(name string, h happening) {
	from := ""
	switch {
	case h.op == opLeave:
		w.leaving, w.left = h.move, name
	case h.op == opArrive && h.move == w.leaving:
		from = w.left
	}
	for _, f := range w.feeds {
		if !f.counts {
			continue
		}
		o := f.ops[name]
		if h.op != opWrite || !o.Open { // many writes count as one change
			o.add(h.op, from)
			if f.ops == nil {
				f.ops = make(map[string]Ops)
			}
			f.ops[name] = o
		}
	}
}

func (o *Ops) add(what op, from string) {
	o.Open = what == opWrite
	switch what {
	case opClose:
		o.Closed++
	case opLeave:
		o.Moved++
	case opArrive:
		o.Moved++
		o.From = append(o.From, from)
	case opRemove:
		o.Removed++
	}
}

func (w *watch) tell(dir string, anew bool) {
	for _, f := range w.feeds {
		set := &f.changed
		if anew {
			set = &f.anew
		}
		if *set == nil {
			*set = make(map[string]bool)
		}
		(*set)[dir] = true
	}
}

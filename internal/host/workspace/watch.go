package workspace

import (
	"os"
	"path"
	"slices"
	"strings"
	"sync"
)

// A watch has the system tell which directories change, so that who keeps a view
// of a tree looks again at those only. It is shared by all who do, holds nothing
// but directories, and costs nothing while nobody asks: what happened waits in
// the system until then.
//
// It is right or it is off. Where the system cannot tell (a file system whose
// other users are elsewhere, more directories than one program should have
// watched, no such service) everything counts as changed, always, and who asks
// walks.
type watch struct {
	mu    sync.Mutex // guards all below and the fields of feeds
	roots []string   // where the trees lie
	src   *source    // nil before the first directory, and once it is off
	off   bool
	dirs  map[string]handle
	names map[handle]string
	feeds []*Feed

	leaving uint32 // the move that was begun last
	left    string // and the name of what it moves
}

// handle is what the system calls a directory that it watches.
type handle int32

// Feed is one party's view of what changed. It must be asked before a directory
// is listed, never after: what happens in between is then told the next time.
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
	Closed  int      // how often a program closed it that could write it
	Moved   int      // how often it was moved to the name or away from it
	Removed int      // how often it was removed
	From    []string // the names that files had which were moved there; "" is one outside
	Open    bool     // it was written, and not closed since
}

// Then returns the operations of both, o first.
func (o Ops) Then(p Ops) Ops {
	return Ops{o.Closed + p.Closed, o.Moved + p.Moved, o.Removed + p.Removed, slices.Concat(o.From, p.From), p.Open}
}

// Follow returns a feed of what changes. At first everything has.
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

// Count has the feed count operations on files. Several at once may be counted as one.
func (f *Feed) Count() *Feed {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	f.counts = true
	return f
}

// Changes are directories of which a view may be wrong.
type Changes struct {
	All  bool            // nothing is known: walk
	Dirs map[string]bool // something in them changed, not below them
	Anew map[string]bool // nothing that was known of them and of what is below them holds
	Ops  map[string]Ops  // by path, if the feed counts; incomplete if All is set
}

// AnewAbove reports whether nothing holds of what was known of a directory
// because nothing does of one above it.
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

// Changes tells what changed since it was last asked.
func (f *Feed) Changes() Changes {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	c := f.counted()
	c.Dirs, c.Anew = f.changed, f.anew
	f.all, f.changed, f.anew = false, nil, nil
	return c
}

// Counted tells the operations since it or Changes was last asked. Changes tells later
// which directories they changed.
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

// Fail takes note that what was told could not be looked at: it will be told as
// if all had changed.
func (f *Feed) Fail() {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	f.all = true
}

// add has the directory that dir is open on watched under its name. If its
// content counts, changes within its files are told too, otherwise only which
// names there are.
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

// stop turns the watch off for good and gives back what it had.
func (w *watch) stop() {
	w.off = true
	if w.src != nil {
		w.src.close()
	}
	w.src, w.dirs, w.names = nil, nil, nil
}

// happening is what the system tells of a directory it watches.
type happening struct {
	dir   handle
	name  string // of what changed in it, or empty
	left  bool   // a directory of that name was moved away
	ended bool   // the directory is not watched any more
	op    op
	move  uint32 // what both ends of a move have in common
}

// op is what was done to a file.
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
		gone := path.Join(dir, h.name) // where it has gone it is found as a new one
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

// count tells the feeds that count what was done to a file.
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
		if h.op != opWrite || !o.Open { // many writes make one change
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

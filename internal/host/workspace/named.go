package workspace

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	maxNamed    = 200_000         // directories that a Named list may track
	slowestTick = 3 * time.Second // coarsest clock tick of a file system
)

// Named lists the files and directories of a workspace with certain names, including ignored ones and
// those in ignored directories. It walks the tree the first time; later it examines only changed
// directories, if the system reports changes. Use [Workspace.Named]. It is safe for concurrent use.
type Named struct {
	ws    *Workspace
	match func(rel string, dir bool) bool
	skip  func(rel string) bool

	mu    sync.Mutex // guards the fields below
	feed  *Feed
	dirs  map[string]*namedDir
	old   map[string]*namedDir // the state before a walk in progress
	whole bool
	clock FileTime // start of the current walk
}

// namedDir is a directory as known to Named.
type namedDir struct {
	found []string // matching names
	below []string // paths of directories to enter
	err   bool     // listing failed or is incomplete
	stamp [3]int64 // of the directory when listed; all zero if unreliable
}

// Named returns a list of everything that match accepts. It does not enter directories that skip
// accepts. Both get names as [Workspace.Resolve] returns them, and must always give the same answer for
// a name.
func (w *Workspace) Named(match func(rel string, dir bool) bool, skip func(rel string) bool) *Named {
	return &Named{ws: w, match: match, skip: skip}
}

// List returns all currently matching names, sorted. It does not follow links. whole is false if some
// directory could not be examined. The error is ctx.Err().
func (n *Named) List(ctx context.Context) (names []string, whole bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.feed == nil {
		n.feed = n.ws.Follow()
	}
	dirs := n.stale(n.feed.Changes())
	if len(dirs) > 0 {
		n.clock = n.ws.FileTime()
	}
	for _, dir := range dirs {
		if err := n.walk(ctx, dir); err != nil {
			n.feed.Fail()
			return nil, false, err
		}
	}
	n.old = nil
	whole = n.whole
	for dir, d := range n.dirs {
		for _, name := range d.found {
			names = append(names, path.Join(dir, name))
		}
		whole = whole && !d.err
	}
	slices.Sort(names)
	return names, whole, nil
}

// stale drops what may be outdated and returns the directories to examine.
func (n *Named) stale(c Changes) (dirs []string) {
	if c.All || !n.whole {
		n.old, n.dirs, n.whole = n.dirs, make(map[string]*namedDir), true
		for _, tree := range n.ws.apart() {
			dirs = append(dirs, tree.called("."))
		}
		return dirs
	}
	for dir := range c.Anew {
		if n.dirs[dir] != nil {
			// Drop everything below dir; dir itself stays known, as empty.
			prefix := dir + "/"
			if dir == "." {
				prefix = ""
			}
			for name := range n.dirs {
				if strings.HasPrefix(name, prefix) && (prefix != "" || !path.IsAbs(name)) {
					delete(n.dirs, name)
				}
			}
			n.dirs[dir] = &namedDir{}
			dirs = append(dirs, dir)
		}
	}
	for dir, d := range n.dirs {
		if d.err || c.Dirs[dir] {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	return dirs
}

// walk examines dir, and everything below it that is not known.
func (n *Named) walk(ctx context.Context, dir string) error {
	if tree, rel, err := n.ws.home(dir); err != nil || !tree.straight(rel) {
		delete(n.dirs, dir)
		return nil
	}
	for queue := []string{dir}; len(queue) > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(n.dirs) > maxNamed {
			n.whole = false
			return nil
		}
		at := queue[0]
		queue = queue[1:]
		d := n.list(at)
		if d == nil {
			delete(n.dirs, at)
			continue
		}
		n.dirs[at] = d
		for _, sub := range d.below {
			if n.dirs[sub] == nil {
				queue = append(queue, sub)
			}
		}
	}
	return nil
}

// list examines one directory; it returns nil if the directory is gone. The content of a directory is
// unchanged as long as its times are the same.
func (n *Named) list(dir string) *namedDir {
	tree, rel, err := n.ws.home(dir)
	if err != nil {
		return nil
	}
	f, err := tree.openDir(rel)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ELOOP):
		return nil
	case err != nil:
		return &namedDir{err: true}
	}
	defer f.Close()
	n.feed.add(f, dir, false)
	var stamp [3]int64 // zero if it might change without a new time: file system clocks tick slowly
	if st := (unix.Stat_t{}); unix.Fstat(int(f.Fd()), &st) == nil && uint64(st.Dev) == n.clock.Device {
		written, changed := unix.TimespecToNsec(st.Mtim), unix.TimespecToNsec(st.Ctim)
		if max(written, changed) <= n.clock.Now-int64(slowestTick) {
			stamp = [3]int64{written, changed, int64(st.Ino)}
		}
	}
	if old := n.old[dir]; old != nil && stamp == old.stamp && stamp != [3]int64{} {
		return old
	}
	entries, more, err := readEntries(f, nil, maxDir)
	d := &namedDir{err: more || err != nil, stamp: stamp}
	if d.err {
		d.stamp = [3]int64{}
	}
	for _, e := range entries {
		name := path.Join(dir, e.name)
		if e.vague {
			if t, err := lstatAt(int(f.Fd()), e.name, append([]byte(e.name), 0)); err == nil {
				e.kind = t.Mode.Type()
			}
		}
		if n.match(name, e.kind.IsDir()) {
			d.found = append(d.found, strings.Clone(e.name))
		}
		if e.kind.IsDir() && !n.skip(name) {
			d.below = append(d.below, name)
		}
	}
	return d
}

// FileTime is the current time on a file system: a file changed now gets the time Now. The zero FileTime
// is unknown.
type FileTime struct {
	Now    int64 // nanoseconds
	Device uint64
}

// FileTime returns the time of the workspace's file system, by creating and removing a file there. The
// local clock is no substitute: a file server has another one, and the local one may be changed.
func (w *Workspace) FileTime() (t FileTime) {
	if w.clock != nil {
		return w.clock()
	}
	d := &draft{ws: w, dir: w.root}
	defer d.discard()
	var err error
	if d.file, err = unnamed(w.root); err != nil {
		d.file = nil
		if d.create() != nil {
			return t
		}
	}
	var st unix.Stat_t
	if unix.Fstat(int(d.file.Fd()), &st) != nil {
		return t
	}
	return FileTime{unix.TimespecToNsec(st.Ctim), uint64(st.Dev)}
}

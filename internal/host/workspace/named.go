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
	maxNamed    = 200_000         // how many directories a list of names looks at
	slowestTick = 3 * time.Second // how slowly the clock of a file system may tick
)

// Named keeps a list of the things in a workspace that have certain names, also
// of those that are ignored and in directories that are. The first time it is
// asked it walks; afterwards, where the system tells what changes, it looks at
// the directories that did. Use [Workspace.Named]. It is safe for concurrent use.
type Named struct {
	ws    *Workspace
	match func(rel string, dir bool) bool
	skip  func(rel string) bool

	mu    sync.Mutex // guards the fields below
	feed  *Feed
	dirs  map[string]*namedDir
	old   map[string]*namedDir // as they were before a walk that is under way
	whole bool
	clock FileTime // when the look under way began
}

// namedDir is a directory as Named knows it.
type namedDir struct {
	found []string // names of things that match
	below []string // paths of directories that are entered
	err   bool     // it could not be listed, or not whole
	stamp [3]int64 // of the directory when it was listed; all zero if that cannot be relied on
}

// Named returns a list of what match says yes to. Directories that skip says yes
// to are not entered. Both are given names as [Workspace.Resolve] gives them, and
// must always say the same of one name.
func (w *Workspace) Named(match func(rel string, dir bool) bool, skip func(rel string) bool) *Named {
	return &Named{ws: w, match: match, skip: skip}
}

// List returns the names of all that matches now, in order. Links are named, not
// followed. Whole is false if not everything could be looked at. The error is
// ctx.Err().
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

// stale forgets what may not hold any more and names the directories to look at.
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
			// All below dir is forgotten; dir itself stays known, as empty.
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

// walk looks at dir, and at what is below it as far as that is not known.
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

// list looks at one directory; nil if it is not there any more. What a directory
// holds is what it held as long as its own times are the same.
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
	var stamp [3]int64 // zero if it may yet change without that being seen: the clocks of file systems tick slowly
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

// FileTime is what time it is on a file system: Now is what a file that is
// changed at this moment is stamped with. The zero FileTime is not known.
type FileTime struct {
	Now    int64 // nanoseconds
	Device uint64
}

// FileTime tells the time of the file system that the workspace lies on, by
// making a file there that goes at once. Our own clock says nothing about it: a
// file server has another one, and anybody may set ours.
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

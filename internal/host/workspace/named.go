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
	maxNamedDirs = 200_000         // directories that a Named list may track
	maxClockTick = 3 * time.Second // coarsest clock tick of a file system
)

// NameIndex lists the files and directories of a workspace with certain names, including ignored ones and
// those in ignored directories. It walks the tree the first time; later it examines only changed
// directories, if the system reports changes. Use [Workspace.IndexNames]. It is safe for concurrent use.
type NameIndex struct {
	ws    *Workspace
	match func(rel string, dir bool) bool
	skip  func(rel string) bool

	mu         sync.Mutex // guards the fields below
	feed       *Feed
	dirs       map[string]*indexedDir
	previous   map[string]*indexedDir // the state before a walk in progress
	isComplete bool
	walkStart  FileTime // start of the current walk
}

// indexedDir is a directory as known to Named.
type indexedDir struct {
	matches      []string // matching names
	subdirs      []string // paths of directories to enter
	isIncomplete bool     // listing failed or is incomplete
	stamp        [3]int64 // of the directory when listed; all zero if unreliable
}

// IndexNames returns a list of everything that match accepts. It does not enter directories that skip
// accepts. Both get names as [Workspace.Resolve] returns them, and must always give the same answer for
// a name.
func (w *Workspace) IndexNames(match func(rel string, dir bool) bool, skip func(rel string) bool) *NameIndex {
	return &NameIndex{ws: w, match: match, skip: skip}
}

// List returns all currently matching names, sorted. It does not follow links. whole is false if some
// directory could not be examined. The error is ctx.Err().
func (n *NameIndex) List(ctx context.Context) (names []string, whole bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.feed == nil {
		n.feed = n.ws.Subscribe()
	}
	dirs := n.dropStale(n.feed.Changes())
	if len(dirs) > 0 {
		n.walkStart = n.ws.FileTime()
	}
	for _, dir := range dirs {
		if err := n.walk(ctx, dir); err != nil {
			n.feed.MarkFailed()
			return nil, false, err
		}
	}
	n.previous = nil
	whole = n.isComplete
	for dir, d := range n.dirs {
		for _, name := range d.matches {
			names = append(names, path.Join(dir, name))
		}
		whole = whole && !d.isIncomplete
	}
	slices.Sort(names)
	return names, whole, nil
}

// dropStale drops what may be outdated and returns the directories to examine.
func (n *NameIndex) dropStale(c Changes) (dirs []string) {
	if c.All || !n.isComplete {
		n.previous, n.dirs, n.isComplete = n.dirs, make(map[string]*indexedDir), true
		for _, tree := range n.ws.separateTrees() {
			dirs = append(dirs, tree.callerName("."))
		}
		return dirs
	}
	for dir := range c.Rescan {
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
			n.dirs[dir] = &indexedDir{}
			dirs = append(dirs, dir)
		}
	}
	for dir, d := range n.dirs {
		if d.isIncomplete || c.Dirs[dir] {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	return dirs
}

// walk examines dir, and everything below it that is not known.
func (n *NameIndex) walk(ctx context.Context, dir string) error {
	if tree, rel, err := n.ws.findTree(dir); err != nil || !tree.isDirect(rel) {
		delete(n.dirs, dir)
		return nil
	}
	for queue := []string{dir}; len(queue) > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(n.dirs) > maxNamedDirs {
			n.isComplete = false
			return nil
		}
		at := queue[0]
		queue = queue[1:]
		d := n.listDir(at)
		if d == nil {
			delete(n.dirs, at)
			continue
		}
		n.dirs[at] = d
		for _, sub := range d.subdirs {
			if n.dirs[sub] == nil {
				queue = append(queue, sub)
			}
		}
	}
	return nil
}

// listDir examines one directory; it returns nil if the directory is gone. The content of a directory is
// unchanged as long as its times are the same.
func (n *NameIndex) listDir(dir string) *indexedDir {
	tree, rel, err := n.ws.findTree(dir)
	if err != nil {
		return nil
	}
	f, err := tree.openDir(rel)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ELOOP):
		return nil
	case err != nil:
		return &indexedDir{isIncomplete: true}
	}
	defer f.Close()
	n.feed.add(f, dir, false)
	var stamp [3]int64 // zero if it might change without a new time: file system clocks tick slowly
	if st := (unix.Stat_t{}); unix.Fstat(int(f.Fd()), &st) == nil && uint64(st.Dev) == n.walkStart.Device {
		written, changed := unix.TimespecToNsec(st.Mtim), unix.TimespecToNsec(st.Ctim)
		if max(written, changed) <= n.walkStart.Now-int64(maxClockTick) {
			stamp = [3]int64{written, changed, int64(st.Ino)}
		}
	}
	if old := n.previous[dir]; old != nil && stamp == old.stamp && stamp != [3]int64{} {
		return old
	}
	entries, more, err := readEntries(f, nil, maxDir)
	d := &indexedDir{isIncomplete: more || err != nil, stamp: stamp}
	if d.isIncomplete {
		d.stamp = [3]int64{}
	}
	for _, e := range entries {
		name := path.Join(dir, e.name)
		if e.typeUnknown {
			if t, err := lstatAt(int(f.Fd()), e.name, append([]byte(e.name), 0)); err == nil {
				e.kind = t.Mode.Type()
			}
		}
		if n.match(name, e.kind.IsDir()) {
			d.matches = append(d.matches, strings.Clone(e.name))
		}
		if e.kind.IsDir() && !n.skip(name) {
			d.subdirs = append(d.subdirs, name)
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
	d := &draft{ws: w, destDir: w.root}
	defer d.discard()
	var err error
	if d.file, err = createUnnamed(w.root); err != nil {
		d.file = nil
		if d.createNamed() != nil {
			return t
		}
	}
	var st unix.Stat_t
	if unix.Fstat(int(d.file.Fd()), &st) != nil {
		return t
	}
	return FileTime{unix.TimespecToNsec(st.Ctim), uint64(st.Dev)}
}

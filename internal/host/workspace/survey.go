package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Folder is one directory as found by [Workspace.Survey].
type Folder struct {
	Path    string     // a name as [Workspace.Resolve] gives it, "." for the root
	Root    bool       // the root of a tree
	Entries []FileStat // sorted by name, without ignored ones
	Ignored []string   // ignored names, sorted
	Err     error      // why the listing failed or is incomplete
}

// FileStat is a file, link or directory as described by Lstat.
type FileStat struct {
	Name         string
	Mode         fs.FileMode
	Size         int64
	Mtime, Ctime int64 // nanoseconds
	Ino          uint64
	Links        uint64 // number of hard links
	Device       uint64 // its device
}

// dirent is a directory's entry for a file.
type dirent struct {
	name        string
	kind        fs.FileMode // file type
	typeUnknown bool        // file type unknown
}

// Survey configures [Workspace.Survey].
type Survey struct {
	// Dirs are the directories to begin with; if empty, the roots of all trees.
	Dirs []string
	// Skip, if set, reports directories not to enter from above. It is called between calls of Each.
	Skip func(dir string) bool
	// Limit is the maximum number of entries. Near ones come before far ones.
	Limit int
	// Feed, if set, is told of each directory before it is listed.
	Feed *Feed
	// Each is called with each directory, one at a time and in no order. Entries are valid only until it
	// returns.
	Each func(Folder)
}

// Survey describes everything that is not ignored, including the added trees, directory by directory,
// each file as Lstat would. It is designed for frequent use: one system call per file. more reports that
// the limit was reached. When ctx ends it returns ctx.Err().
func (w *Workspace) Survey(ctx context.Context, o Survey) (more bool, err error) {
	var queue []pendingDir
	if o.Dirs == nil {
		for _, tree := range w.separateTrees() {
			queue = append(queue, pendingDir{tree, walkDir{dir: ".", rules: tree.rulesAbove(".")}})
		}
	}
	for _, dir := range o.Dirs {
		tree, rel, err := w.findTree(dir)
		if err != nil || !tree.isDirect(rel) {
			o.Each(Folder{Path: dir, Err: fs.ErrNotExist})
			continue
		}
		queue = append(queue, pendingDir{tree, walkDir{dir: rel, rules: tree.rulesAbove(rel)}})
	}
	var crew sync.WaitGroup
	var mu sync.Mutex         // held except while listing a directory
	wake := sync.NewCond(&mu) // signals a directory to list, or the end
	busy, seen := 0, 0        // directories being listed, and entries so far
	for range maxListers {
		crew.Go(func() {
			l := lister{workspace: w, feed: o.Feed}
			mu.Lock()
			defer mu.Unlock()
			for {
				for len(queue) == 0 && busy > 0 && ctx.Err() == nil {
					wake.Wait()
				}
				if len(queue) == 0 || ctx.Err() != nil {
					return
				}
				at := queue[0]
				queue = queue[1:]
				busy++
				mu.Unlock()
				f, below := l.listDir(at)
				mu.Lock()
				busy--
				seen += len(f.Entries)
				o.Each(f)
				if o.Skip != nil {
					below = slices.DeleteFunc(below, func(at pendingDir) bool { return o.Skip(at.tree.callerName(at.dir)) })
				}
				if seen > o.Limit {
					more = more || len(below) > 0 || len(queue) > 0
					queue, below = nil, nil
				}
				queue = append(queue, below...)
				wake.Broadcast()
			}
		})
	}
	crew.Wait()
	return more, ctx.Err()
}

// separateTrees returns the trees that are not inside another listed one. Files in the main tree have their
// names there.
func (w *Workspace) separateTrees() []*Workspace {
	list := []*Workspace{w}
	for i, a := range w.added {
		within := func(other *Workspace) bool { _, ok := other.relative(a.real); return ok }
		twice := slices.ContainsFunc(w.added[:i], func(o *Workspace) bool { return o.real == a.real })
		larger := slices.ContainsFunc(w.added, func(o *Workspace) bool { return o.real != a.real && within(o) })
		if !within(w) && !twice && !larger {
			list = append(list, a)
		}
	}
	return list
}

// pendingDir is a directory of one of the trees, yet to be listed.
type pendingDir struct {
	tree *Workspace
	walkDir
}

// lister lists directories, one at a time, and reuses its memory.
type lister struct {
	workspace *Workspace
	feed      *Feed
	names     []dirent
	stats     []FileStat
	cname     []byte
}

// listDir lists one directory and returns the subdirectories to enter.
func (l *lister) listDir(at pendingDir) (f Folder, below []pendingDir) {
	w := at.tree
	f.Path, f.Root = w.callerName(at.dir), at.dir == "."
	dir, err := w.openDir(at.dir)
	if err != nil {
		f.Err = w.explainError(at.dir, err)
		return f, nil
	}
	defer dir.Close()
	if l.feed != nil {
		l.feed.add(dir, f.Path, true)
	}
	var more bool
	l.names, more, err = readEntries(dir, l.names[:0], maxDir)
	switch {
	case err != nil:
		f.Err = w.explainError(at.dir, err)
	case more:
		f.Err = ErrTooLarge
	}
	slices.SortFunc(l.names, func(a, b dirent) int { return strings.Compare(a.name, b.name) })
	// Whether it is a repository is decided when it is first listed: creating one later must not make
	// ignored files appear, or others disappear.
	has := func(name string) bool {
		_, found := slices.BinarySearchFunc(l.names, name, func(d dirent,
			name string) int {
			return strings.Compare(d.name, name)
		})
		return found
	}
	repository := false
	if at.dir != "." {
		known, ok := at.tree.repositories.Load(at.dir)
		if !ok {
			known, _ = at.tree.repositories.LoadOrStore(at.dir, has(".git") && at.tree.isRepository(at.dir))
		}
		repository = known.(bool)
	}
	rules := at.tree.dirRules(at.dir, has(ignoreFile), repository, at.rules)
	l.stats = l.stats[:0]
	fd := int(dir.Fd())
	for _, d := range l.names {
		if !d.typeUnknown && l.skips(w, rules, at.dir, d.name, d.kind) {
			f.Ignored = append(f.Ignored, d.name)
			continue
		}
		l.cname = append(append(l.cname[:0], d.name...), 0)
		t, err := lstatAt(fd, d.name, l.cname)
		if err != nil || d.typeUnknown && l.skips(w, rules, at.dir, d.name, t.Mode.Type()) {
			continue // deleted meanwhile, or ignored
		}
		l.stats = append(l.stats, t)
		if t.Mode.IsDir() {
			below = append(below, pendingDir{w, walkDir{dir: path.Join(at.dir, d.name), rules: rules}})
		}
	}
	f.Entries = l.stats
	return f, below
}

// openDir opens a directory for listing, without following links if the system supports that.
func (w *Workspace) openDir(rel string) (*os.File, error) {
	f, err := w.openBeneath(rel)
	if errors.Is(err, errors.ErrUnsupported) {
		return w.root.OpenFile(rel, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	}
	return f, err
}

// isDirect reports whether neither a directory nor any above it is a link.
func (w *Workspace) isDirect(rel string) bool {
	at, err := w.resolveLinks(rel)
	return err == nil && at == rel
}

// skips reports whether a file or directory is skipped. A directory of an added tree may be the main
// tree.
func (l *lister) skips(w *Workspace, r *rules, dir, name string, kind fs.FileMode) bool {
	if r == nil && !kind.IsDir() {
		return name == ".git"
	}
	rel := name
	if dir != "." {
		rel = dir + "/" + name
	}
	return r.isIgnored(rel, kind.IsDir()) || kind.IsDir() && w != l.workspace && w.callerName(rel) == l.workspace.real
}

// lstatAt describes a directory's file by name; cname is the name with a NUL at the end.
func lstatAt(dir int, name string, cname []byte) (FileStat, error) {
	var st unix.Stat_t
	if err := retryInterrupted(func() error { return fstatat(dir, cname, &st) }); err != nil {
		return FileStat{}, err
	}
	m := uint32(st.Mode)
	mode, known := kinds[byte(m&unix.S_IFMT>>12)]
	if !known {
		mode = fs.ModeIrregular
	}
	mode |= fs.FileMode(m & 0o777)
	if m&unix.S_ISUID != 0 {
		mode |= fs.ModeSetuid
	}
	if m&unix.S_ISGID != 0 {
		mode |= fs.ModeSetgid
	}
	if m&unix.S_ISVTX != 0 {
		mode |= fs.ModeSticky
	}
	return FileStat{
		Name: name, Mode: mode, Size: st.Size, Ino: st.Ino, Links: uint64(st.Nlink), Device: uint64(st.Dev),
		Mtime: unix.TimespecToNsec(st.Mtim), Ctime: unix.TimespecToNsec(st.Ctim),
	}, nil
}

// kinds maps directory entry types to file types.
var kinds = map[byte]fs.FileMode{
	unix.DT_REG: 0, unix.DT_DIR: fs.ModeDir, unix.DT_LNK: fs.ModeSymlink, unix.DT_FIFO: fs.ModeNamedPipe,
	unix.DT_SOCK: fs.ModeSocket,
	unix.DT_BLK:  fs.ModeDevice, unix.DT_CHR: fs.ModeDevice | fs.ModeCharDevice,
}

package undo

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"

	"coder/internal/core/clip"
	"coder/internal/host/workspace"
	"coder/internal/record/undo/blob"
	"coder/internal/record/undo/gitindex"
)

// keepTree ensures that every file can be restored, and returns the name of the saved state of all
// files.
func (k *Keeper) keepTree(ctx context.Context) (string, error) {
	k.recall()
	t, err := k.scan(ctx)
	if err != nil {
		return "", fmt.Errorf("scan files: %w", err)
	}
	if k.fault != nil {
		return "", k.fault
	}
	if !k.answers(ctx) {
		return k.keepTree(ctx)
	}
	return k.keepScanned(ctx, t)
}

// answers reports whether git can confirm the names given to files before it was run. Otherwise all
// files must be read again.
func (k *Keeper) answers(ctx context.Context) bool {
	for _, r := range k.repos {
		if r.assumed && !r.usable(ctx) {
			k.o.GitFiles, k.tree, k.kept, r.assumed = nil, nil, nil, false
			return false
		}
		r.assumed = false
	}
	return true
}

// keepScanned saves a tree and gives it its name.
func (k *Keeper) keepScanned(ctx context.Context, t *tree) (string, error) {
	switch err := k.persist(ctx, t); {
	case errors.Is(err, blob.ErrFull):
		k.warn(fmt.Sprintf("changes by commands cannot be undone: %v", err))
		t.chain = []string{fmt.Sprintf("not kept %d", t.at)}
	case err != nil:
		return "", err
	}
	for _, name := range t.chain {
		k.store.Use(name) // keep what a tree is based on as long as the tree
	}
	if len(k.open) >= maxOpen {
		clear(k.open) // they can be read back
	}
	k.open[t.name()] = t
	return t.name(), nil
}

// maxOpen limits the trees in memory for running calls.
const maxOpen = 16

// recall loads the tree of an earlier process, if any. It does not ask git for its part: the scan will
// find that the same, or not.
func (k *Keeper) recall() {
	if k.tree != nil || k.o.Tree == "" {
		return
	}
	c, err := k.readChain(k.o.Tree)
	if err != nil {
		return
	}
	base := &tree{folders: make(map[string]*folder)}
	if c.head != "" && !isHead(c.head) {
		if base, err = treeOfIndex(c.head, c.index); err != nil {
			return
		}
	}
	t, err := c.on(base)
	if err != nil {
		return
	}
	files := 0
	for _, f := range t.folders {
		files += f.len()
	}
	k.expect(files)
	k.tree, k.kept = t, t
	if c.head != "" || isStart(k.o.Tree) {
		t.chain, k.kept = nil, nil
	}
}

// scan updates k.tree to the current state of all files. It examines the directories that changed since
// the last scan, as far as the system reports them, and reads files that may have changed.
func (k *Keeper) scan(ctx context.Context) (*tree, error) {
	if k.feed == nil && (k.light == nil || k.light.follows) {
		k.feed = k.ws.Follow().Count()
	}
	k.fault = nil
	s := scanning{k: k, old: k.tree, next: &tree{folders: make(map[string]*folder)}}
	s.clock = k.ws.FileTime()
	unsaid := k.unsaid
	k.unsaid = nil
	for _, text := range unsaid {
		k.warn(text)
	}
	s.next.at = cmp.Or(s.clock.Now, k.now().UnixNano())
	changes := workspace.Changes{All: true}
	if k.feed != nil {
		changes = k.feed.Changes()
	}
	k.counted.add(changes)
	t, err := s.run(ctx, changes)
	if err != nil {
		k.failed()
		return nil, err
	}
	k.tree = t
	return t, nil
}

// failed makes the next scan examine everything.
func (k *Keeper) failed() {
	if k.feed != nil {
		k.feed.Fail()
	}
}

func (s *scanning) run(ctx context.Context, c workspace.Changes) (*tree, error) {
	if c.All || s.old == nil || s.old.partial {
		return s.walk(ctx)
	}
	dirs := s.stale(c)
	if len(dirs) == 0 {
		same := *s.old
		same.at = s.next.at
		return &same, nil
	}
	known := func(dir string) bool {
		_, listed := slices.BinarySearch(dirs, dir)
		return listed || s.next.folders[dir] != nil
	}
	if err := s.scanDirs(ctx, dirs, known); err != nil {
		return nil, err
	}
	size := 0
	for _, f := range s.next.folders {
		size += f.len()
	}
	if size > s.k.o.MaxEntries {
		s.next.folders = make(map[string]*folder)
		return s.walk(ctx)
	}
	return s.next, nil
}

func (s *scanning) walk(ctx context.Context) (*tree, error) {
	s.todo, s.errs, s.k.closed, s.k.again, s.k.ignored = nil, nil, nil, nil, nil
	if err := s.scanDirs(ctx, nil, nil); err != nil {
		return nil, err
	}
	if s.next.partial {
		s.k.warn(fmt.Sprintf("more than %d files: changes by commands to the others cannot be undone", s.k.o.MaxEntries))
	}
	return s.next, nil
}

// stale starts the next tree with the valid part of the old one, and returns the directories to examine.
func (s *scanning) stale(c workspace.Changes) (dirs []string) {
	for dir, f := range s.old.folders {
		switch {
		case c.AnewAbove(dir):
		case c.Anew[dir], c.Dirs[dir], f.shared, s.k.closed[dir], s.k.again[dir] && !s.k.light.looking():
			dirs = append(dirs, dir)
		}
	}
	if len(dirs) == 0 {
		return nil
	}
	s.next.folders, s.next.roots = make(map[string]*folder, len(s.old.folders)), s.old.roots
	for dir, f := range s.old.folders {
		if !c.Anew[dir] && !c.AnewAbove(dir) {
			s.next.folders[dir] = f
		}
	}
	slices.Sort(dirs)
	return dirs
}

// scanDirs examines directories and everything below, and determines the hashes of their files.
func (s *scanning) scanDirs(ctx context.Context, dirs []string, known func(string) bool) (err error) {
	visit := func(f workspace.Folder) { err = errors.Join(err, s.take(f)) }
	more, ended := s.k.ws.Survey(ctx, workspace.Survey{Dirs: dirs, Known: known, Limit: s.k.o.MaxEntries, Feed: s.k.feed, Each: visit})
	s.next.partial = more
	s.k.expect(len(s.todo))
	if err := errors.Join(err, ended); err != nil {
		return err
	}
	slices.Sort(s.next.roots)
	if err := s.identify(ctx); err != nil {
		return err
	}
	for _, dir := range s.errs {
		up := path.Dir(dir)
		if f := s.next.folders[up]; f != nil {
			s.next.folders[up] = f.close(path.Base(dir))
		}
		if s.k.closed == nil {
			s.k.closed = make(map[string]bool)
		}
		s.k.closed[dir] = true
	}
	if len(s.scratch) > 0 {
		s.k.ws.Sweep(s.scratch, s.k.Keeps)
	}
	return nil
}

// scanning is a scan in progress.
type scanning struct {
	k    *Keeper
	old  *tree // may be nil
	next *tree
	todo []find
	errs []string // directories whose listing failed or is incomplete

	clock   workspace.FileTime // start of the scan
	scratch []string           // temporary files found
	pack    packer
}

// draft is a folder under construction, based on its previous state.
type draft struct {
	dir string
	*folder
	old *folder // may be nil
}

// find is a file whose hash is to be determined.
type find struct {
	*draft
	i    int // index in its folder
	size int64
}

func (f find) base() string     { return f.name(f.i) }
func (f find) path() string     { return path.Join(f.dir, f.base()) }
func (f find) seen() stamp      { return f.stamp(f.i) }
func (f find) call(hash string) { f.hashes[f.i] = packHash(hash) }
func (f find) mark(flag byte)   { f.setFlag(f.i, flag) }

// fresh reports whether the file's stamp is unreliable.
func (f find) fresh(clock workspace.FileTime) bool { return f.foreign || f.seen().fresh(clock.Now) }

// lose marks a file's content as unknown.
func (f find) lose() {
	f.call("")
	f.mark(nodeLost)
}

// take processes a listed directory. A missing main root is an error; an unreachable added one is
// skipped.
func (s *scanning) take(f workspace.Folder) error {
	delete(s.k.closed, f.Path)
	delete(s.k.again, f.Path)
	switch {
	case f.Root && f.Err != nil && f.Path == ".":
		return f.Err
	case f.Root && f.Err != nil:
		s.k.warn(fmt.Sprintf("changes by commands in %s cannot be undone: %v", f.Path, f.Err))
		return nil
	case f.Root && !slices.Contains(s.next.roots, f.Path):
		s.next.roots = append(slices.Clone(s.next.roots), f.Path)
	case missing(f.Err):
		delete(s.next.folders, f.Path)
		return nil
	case f.Err != nil:
		s.errs = append(s.errs, f.Path)
	}
	for _, name := range f.Ignored {
		s.k.ignored = append(s.k.ignored, path.Join(f.Path, name))
	}
	for _, t := range f.Entries {
		if workspace.IsScratch(t.Name) {
			s.scratch = append(s.scratch, path.Join(f.Path, t.Name))
		}
	}
	s.next.folders[f.Path] = s.merge(f)
	return nil
}

// merge builds the folder described by f from the previous one. If nothing changed, it returns the
// previous one.
func (s *scanning) merge(f workspace.Folder) *folder {
	var old *folder
	if s.old != nil {
		old = s.old.folders[f.Path]
	}
	s.pack.packed, s.pack.ends, s.pack.hashes, s.pack.flags = s.pack.packed[:0], s.pack.ends[:0], s.pack.hashes[:0], s.pack.flags[:0]
	shared, foreign := false, false
	for _, t := range f.Entries {
		st, hash := stamp{mode: t.Mode, size: t.Size, mtime: t.Mtime, ctime: t.Ctime, ino: t.Ino}, pending
		switch {
		case t.Mode.IsDir():
			hash, st = packedDir, stamp{mode: t.Mode &^ (fs.ModeSticky | fs.ModeSetgid)} // a directory's times are irrelevant
		case t.Mode&fs.ModeSymlink != 0:
		case !t.Mode.IsRegular(), workspace.IsScratch(t.Name): // skip coder's own temporary files
			continue
		}
		s.pack.packed = appendStamped(s.pack.packed, t.Name, st)
		s.pack.put(hash, 0)
		if !t.Mode.IsDir() {
			shared, foreign = shared || t.Names > 1, foreign || t.Device != s.clock.Device
		}
	}
	unsettled := func(flag byte) bool { return flag&(nodeFresh|nodeClosed|nodeLight) != 0 } // to be examined again
	if old != nil && old.packed == string(s.pack.packed) && old.shared == shared && !slices.ContainsFunc(old.flags, unsettled) {
		return old
	}
	d := &draft{dir: f.Path, folder: s.pack.folder(), old: old}
	d.shared, d.foreign = shared, foreign
	for i := range d.len() {
		j, known := old.index(d.name(i))
		switch {
		case known && old.stamped(j) == d.stamped(i) && (!unsettled(old.flag(j)) || s.gathered(old, j)):
			d.hashes[i] = old.hashes[j]
			if was := old.flag(j); was != 0 {
				d.setFlag(i, was)
				s.k.lookAgain(f.Path, was&nodeLight != 0)
			}
		case d.hashes[i] == pending:
			s.todo = append(s.todo, find{d, i, d.stamp(i).size})
		}
	}
	return d.folder
}

// gathered reports whether a file's content is available for the start being saved, with a reliable
// stamp.
func (s *scanning) gathered(f *folder, i int) bool {
	return s.k.light.looking() && f.flag(i) == nodeLight && s.k.light.has(unpackHash(f.hashes[i]))
}

// looking reports whether a start uses the contents from a [Keeper.Look].
func (g *gathering) looking() bool { return g != nil && g.looked }

// lookAgain makes the next durable scan examine a directory again.
func (k *Keeper) lookAgain(dir string, again bool) {
	if !again {
		return
	}
	if k.again == nil {
		k.again = make(map[string]bool)
	}
	k.again[dir] = true
}

// pending stands for a hash that is not yet determined.
const pending = "?"

// identify determines the hashes of all new and changed files. It uses git's name for contents that git
// has; it reads and saves the others, within limits.
func (s *scanning) identify(ctx context.Context) error {
	s.todo = slices.DeleteFunc(s.todo, func(f find) bool {
		st := f.seen()
		if st.mode&fs.ModeSymlink == 0 {
			return false
		}
		if f.fresh(s.clock) {
			f.mark(nodeFresh)
		}
		to, err := s.k.ws.Readlink(f.path())
		f.call(leadingTo(to))
		if err != nil {
			f.mark(nodeLost)
		}
		return true
	})
	large, such := s.setAside(func(f find) bool { return f.size > s.k.o.MaxFile })
	if len(s.todo) > few || s.old == nil {
		for _, r := range s.k.repos {
			if err := s.asIn(ctx, r); err != nil {
				return err
			}
		}
	}
	slices.SortFunc(s.todo, func(a, b find) int {
		if a.size != b.size {
			return cmp.Compare(a.size, b.size)
		}
		return cmp.Or(strings.Compare(a.dir, b.dir), cmp.Compare(a.i, b.i))
	})
	files, bytes := 0, int64(0)
	many, also := s.setAside(func(f find) bool {
		files, bytes = files+1, bytes+f.size
		return files > s.k.o.TreeFiles || bytes > s.k.o.TreeBytes
	})
	switch n := large + many; {
	case n == 1:
		s.k.warn(fmt.Sprintf("%s is too large to save, or one file too many: changes by commands to it cannot be undone", cmp.Or(such, also)))
	case n > 1:
		s.k.warn(fmt.Sprintf("%d files are too many or too large to save, such as %s: changes by commands to them cannot be undone", n, cmp.Or(such, also)))
	}
	return s.read(ctx)
}

// setAside marks files as lost instead of hashing them, and returns their number and the last of them.
func (s *scanning) setAside(lost func(find) bool) (n int, last string) {
	var f find
	s.todo = slices.DeleteFunc(s.todo, func(g find) bool {
		if !lost(g) {
			return false
		}
		g.lose()
		n, f = n+1, g
		return true
	})
	if n > 0 {
		last = f.path()
	}
	return n, last
}

// expect prepares for the state of this many files.
func (k *Keeper) expect(files int) {
	if files > many && k.o.Many != nil {
		k.o.Many()
	}
}

// many is the number of files from which their state needs much memory.
var many = 10_000

// maxLight limits the bytes of files in a start.
const maxLight = 256 << 10

// few is the number of files up to which reading them is cheaper than running git.
const few = 200

// asIn uses git's object ids for files of a repository that its index reports as unchanged.
func (s *scanning) asIn(ctx context.Context, r *repo) error {
	found, settings := 0, make(map[string]bool)
	last, in, mine := "", (*folder)(nil), false
	err := r.index.Each(r.prefix, func(e gitindex.Entry, written int64) {
		dir, base := string(e.Name[:max(bytes.LastIndexByte(e.Name, '/'), 0)]), string(e.Name[bytes.LastIndexByte(e.Name, '/')+1:])
		if in == nil || dir != last {
			last, in = dir, s.next.folders[path.Join(r.root, dir)]
			mine = s.k.repoOf(path.Join(r.root, dir, base)) == r
		}
		if base == attributes {
			settings[path.Join(r.root, dir)] = true
		}
		i, ok := in.index(base)
		if ok && mine && in.hashes[i] == pending && e.Unchanged(in.stamp(i).inIndex(), written) {
			in.hashes[i] = packedGit + string(e.ID)
			found++
		}
	})
	ends, sure, other := endsUnknown, false, make(map[string]bool)
	if err == nil && found > 0 {
		ends, sure = s.ownForm(r, settings)
	}
	switch {
	case sure:
		r.assumed, r.ends = r.assumed || !r.works, max(r.ends, ends)
	case err == nil && found > few:
		other, err = r.converts(ctx, func(yield func(string) bool) {
			for _, f := range s.todo {
				if f.inGit() && s.k.repoOf(f.path()) == r && !yield(r.name(f.path())) {
					return
				}
			}
		})
	}
	s.todo = slices.DeleteFunc(s.todo, func(f find) bool {
		if !f.inGit() || len(s.k.repos) > 1 && s.k.repoOf(f.path()) != r {
			return false
		}
		if err == nil && (sure || found > few && !other[r.name(f.path())]) {
			return true
		}
		f.hashes[f.i] = pending // without git it must be read
		return false
	})
	return ctx.Err()
}

func (f find) inGit() bool { return strings.HasPrefix(f.hashes[f.i], packedGit) }

// read reads the remaining files concurrently, and saves their contents.
func (s *scanning) read(ctx context.Context) error {
	if len(s.todo) == 0 {
		return nil
	}
	size := int64(0)
	for _, f := range s.todo {
		size += f.size
	}
	if g := s.k.light; g != nil && (len(s.todo) > few || size > maxLight) {
		if g.ahead {
			return fs.SkipAll // too much for a look ahead
		}
		s.k.light = nil // reading twice would cost more than syncing
	}
	for _, f := range s.todo {
		f.mark(0) // allocate the flags before concurrent writes
	}
	oids := make(map[string]string)
	for _, r := range s.k.repos {
		if s.k.light != nil {
			break // git would take longer than reading a few files
		}
		wanted := make(map[string]bool)
		for _, f := range s.todo {
			if rel := f.path(); s.k.repoOf(rel) == r {
				wanted[r.name(rel)] = true
			}
		}
		found := make(map[string]string)
		err := r.index.Each(r.prefix, func(e gitindex.Entry, _ int64) {
			if wanted[string(e.Name)] {
				found[path.Join(r.root, string(e.Name))] = e.OID()
			}
		})
		if err == nil && len(found) > 0 && r.usable(ctx) {
			maps.Copy(oids, found)
		}
	}
	r := reading{k: s.k, clock: s.clock, tracked: oids}
	r.pinned = sync.OnceValue(s.k.pinned)
	work := make(chan find)
	errs := make([]error, min(runtime.GOMAXPROCS(0)+1, len(s.todo)))
	var crew sync.WaitGroup
	for i := range errs {
		crew.Go(func() {
			for f := range work {
				if ctx.Err() == nil {
					errs[i] = errors.Join(errs[i], r.name(f))
				}
			}
		})
	}
	for _, f := range s.todo {
		work <- f
	}
	close(work)
	crew.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	// A content that is too large or unreadable does not stop the command, although its changes to the file
	// cannot be undone. A failing store does, see Keep.
	err := errors.Join(errs...)
	if s.k.light != nil {
		for _, f := range s.todo {
			s.k.lookAgain(f.dir, f.flag(f.i)&(nodeLight|nodeFresh) != 0)
		}
	}
	lost := 0
	for _, f := range s.todo {
		if f.flag(f.i)&nodeLost != 0 {
			lost++
		}
	}
	if err != nil && !errors.Is(err, blob.ErrFull) {
		s.k.failed() // it may be possible to save it next time
		s.k.fault = err
		return nil
	}
	switch {
	case err != nil:
		s.k.warn(fmt.Sprintf("changes by commands to some files cannot be undone: %v", clip.Text(err.Error(), maxWarning)))
	case lost > 0:
		s.k.warn("some files cannot be saved: changes by commands to them cannot be undone")
	}
	return nil
}

// maxWarning limits the quote in a warning.
const maxWarning = 300

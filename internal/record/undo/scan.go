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
	"coder/internal/core/message"
	"coder/internal/host/workspace"
	"coder/internal/record/undo/blob"
	"coder/internal/record/undo/gitindex"
)

// ensureTree ensures that every file can be restored, and returns the name of the saved state of all
// files.
func (k *Keeper) ensureTree(ctx context.Context) (string, error) {
	k.loadLastTree()
	t, err := k.scan(ctx)
	if err != nil {
		return "", message.Errorf("scan files: %w", err)
	}
	if k.storeErr != nil {
		return "", k.storeErr
	}
	if !k.gitConfirms(ctx) {
		return k.ensureTree(ctx)
	}
	return k.saveScanned(ctx, t)
}

// gitConfirms reports whether git can confirm the names given to files before it was run. Otherwise all
// files must be read again.
func (k *Keeper) gitConfirms(ctx context.Context) bool {
	for _, r := range k.repos {
		if r.hasAssumed && !r.isUsable(ctx) {
			k.o.GitFiles, k.tree, k.savedTree, r.hasAssumed = nil, nil, nil, false
			return false
		}
		r.hasAssumed = false
	}
	return true
}

// saveScanned saves a tree and gives it its name.
func (k *Keeper) saveScanned(ctx context.Context, t *tree) (string, error) {
	switch err := k.saveTree(ctx, t); {
	case errors.Is(err, blob.ErrFull):
		k.warn(fmt.Sprintf("changes by commands cannot be undone: %v", err))
		t.chain = []string{fmt.Sprintf("not kept %d", t.scanTime)}
	case err != nil:
		return "", err
	}
	for _, name := range t.chain {
		k.store.MarkUsed(name) // keep what a tree is based on as long as the tree
	}
	if len(k.openTrees) >= maxOpen {
		clear(k.openTrees) // they can be read back
	}
	k.openTrees[t.name()] = t
	return t.name(), nil
}

// maxOpen limits the trees in memory for running calls.
const maxOpen = 16

// loadLastTree loads the tree of an earlier process, if any. It does not ask git for its part: the scan will
// find that the same, or not.
func (k *Keeper) loadLastTree() {
	if k.tree != nil || k.o.LastTree == "" {
		return
	}
	c, err := k.readChain(k.o.LastTree)
	if err != nil {
		return
	}
	base := &tree{folders: make(map[string]*folder)}
	if c.head != "" && !isHead(c.head) {
		if base, err = treeOfIndex(c.head, c.index); err != nil {
			return
		}
	}
	t, err := c.apply(base)
	if err != nil {
		return
	}
	files := 0
	for _, f := range t.folders {
		files += f.count()
	}
	k.expectFiles(files)
	k.tree, k.savedTree = t, t
	if c.head != "" || isStart(k.o.LastTree) {
		t.chain, k.savedTree = nil, nil
	}
}

// scan updates k.tree to the current state of all files. It examines the directories that changed since
// the last scan, as far as the system reports them, and reads files that may have changed.
func (k *Keeper) scan(ctx context.Context) (*tree, error) {
	if k.feed == nil && (k.gatherer == nil || k.gatherer.watchesChanges) {
		k.feed = k.ws.Subscribe().CountOps()
	}
	k.storeErr = nil
	s := scanner{k: k, old: k.tree, next: &tree{folders: make(map[string]*folder)}}
	s.scanTime = k.ws.FileTime()
	unsaid := k.pendingWarnings
	k.pendingWarnings = nil
	for _, text := range unsaid {
		k.warn(text)
	}
	s.next.scanTime = cmp.Or(s.scanTime.Now, k.now().UnixNano())
	changes := workspace.Changes{All: true}
	if k.feed != nil {
		changes = k.feed.Changes()
	}
	k.opCounts.add(changes)
	t, err := s.run(ctx, changes)
	if err != nil {
		k.forceRescan()
		return nil, err
	}
	k.tree = t
	return t, nil
}

// forceRescan makes the next scan examine everything.
func (k *Keeper) forceRescan() {
	if k.feed != nil {
		k.feed.MarkFailed()
	}
}

func (s *scanner) run(ctx context.Context, c workspace.Changes) (*tree, error) {
	if c.All || s.old == nil || s.old.isPartial {
		return s.walk(ctx)
	}
	dirs := s.startNext(c)
	if len(dirs) == 0 {
		same := *s.old
		same.scanTime = s.next.scanTime
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
		size += f.count()
	}
	if size > s.k.o.MaxEntries {
		s.next.folders = make(map[string]*folder)
		return s.walk(ctx)
	}
	return s.next, nil
}

func (s *scanner) walk(ctx context.Context) (*tree, error) {
	s.todo, s.errs, s.k.unlistedDirs, s.k.rescanDirs, s.k.ignored = nil, nil, nil, nil, nil
	if err := s.scanDirs(ctx, nil, nil); err != nil {
		return nil, err
	}
	if s.next.isPartial {
		s.k.warn(fmt.Sprintf("more than %d files: changes by commands to the others cannot be undone", s.k.o.MaxEntries))
	}
	return s.next, nil
}

// startNext starts the next tree with the valid part of the old one, and returns the directories to examine.
func (s *scanner) startNext(c workspace.Changes) (dirs []string) {
	for dir, f := range s.old.folders {
		switch {
		case c.NeedsRescan(dir):
		case c.Rescan[dir], c.Dirs[dir], f.hasHardLinks, s.k.unlistedDirs[dir],
			s.k.rescanDirs[dir] && !s.k.gatherer.isLooking():
			dirs = append(dirs, dir)
		}
	}
	if len(dirs) == 0 {
		return nil
	}
	s.next.folders, s.next.roots = make(map[string]*folder, len(s.old.folders)), s.old.roots
	for dir, f := range s.old.folders {
		if !c.Rescan[dir] && !c.NeedsRescan(dir) {
			s.next.folders[dir] = f
		}
	}
	slices.Sort(dirs)
	return dirs
}

// scanDirs examines directories and everything below, and determines the hashes of their files.
func (s *scanner) scanDirs(ctx context.Context, dirs []string, known func(string) bool) (err error) {
	visit := func(f workspace.Folder) { err = errors.Join(err, s.addFolder(f)) }
	more, ended := s.k.ws.Survey(ctx, workspace.Survey{Dirs: dirs, Skip: known, Limit: s.k.o.MaxEntries, Feed: s.k.feed,
		Each: visit})
	s.next.isPartial = more
	s.k.expectFiles(len(s.todo))
	if err := errors.Join(err, ended); err != nil {
		return err
	}
	slices.Sort(s.next.roots)
	if err := s.hashFiles(ctx); err != nil {
		return err
	}
	for _, dir := range s.errs {
		up := path.Dir(dir)
		if f := s.next.folders[up]; f != nil {
			s.next.folders[up] = f.markUnlisted(path.Base(dir))
		}
		if s.k.unlistedDirs == nil {
			s.k.unlistedDirs = make(map[string]bool)
		}
		s.k.unlistedDirs[dir] = true
	}
	if len(s.scratch) > 0 {
		s.k.ws.RemoveScratch(s.scratch, s.k.HasContent)
	}
	return nil
}

// scanner is a scan in progress.
type scanner struct {
	k    *Keeper
	old  *tree // may be nil
	next *tree
	todo []pendingFile
	errs []string // directories whose listing failed or is incomplete

	scanTime workspace.FileTime // start of the scan
	scratch  []string           // temporary files found
	packer   folderPacker
}

// folderDraft is a folder under construction, based on its previous state.
type folderDraft struct {
	dir string
	*folder
	old *folder // may be nil
}

// pendingFile is a file whose hash is to be determined.
type pendingFile struct {
	*folderDraft
	i    int // index in its folder
	size int64
}

func (f pendingFile) base() string           { return f.name(f.i) }
func (f pendingFile) path() string           { return path.Join(f.dir, f.base()) }
func (f pendingFile) currentStamp() stamp    { return f.stamp(f.i) }
func (f pendingFile) assignHash(hash string) { f.hashes[f.i] = packHash(hash) }
func (f pendingFile) addFlag(flag byte)      { f.setFlag(f.i, flag) }

// isFresh reports whether the file's stamp is unreliable.
func (f pendingFile) isFresh(clock workspace.FileTime) bool {
	return f.isForeign || f.currentStamp().isFresh(clock.Now)
}

// markLost marks a file's content as unknown.
func (f pendingFile) markLost() {
	f.assignHash("")
	f.addFlag(nodeLost)
}

// addFolder processes a listed directory. A missing main root is an error; an unreachable added one is
// skipped.
func (s *scanner) addFolder(f workspace.Folder) error {
	delete(s.k.unlistedDirs, f.Path)
	delete(s.k.rescanDirs, f.Path)
	switch {
	case f.Root && f.Err != nil && f.Path == ".":
		return f.Err
	case f.Root && f.Err != nil:
		s.k.warn(fmt.Sprintf("changes by commands in %s cannot be undone: %v", f.Path, f.Err))
		return nil
	case f.Root && !slices.Contains(s.next.roots, f.Path):
		s.next.roots = append(slices.Clone(s.next.roots), f.Path)
	case isMissing(f.Err):
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
	s.next.folders[f.Path] = s.mergeFolder(f)
	return nil
}

// mergeFolder builds the folder described by f from the previous one. If nothing changed, it returns the
// previous one.
func (s *scanner) mergeFolder(f workspace.Folder) *folder {
	var old *folder
	if s.old != nil {
		old = s.old.folders[f.Path]
	}
	s.packer.packed, s.packer.ends, s.packer.hashes, s.packer.flags = s.packer.packed[:0], s.packer.ends[:0],
		s.packer.hashes[:0], s.packer.flags[:0]
	shared, foreign := false, false
	for _, t := range f.Entries {
		st, hash := stamp{mode: t.Mode, size: t.Size, mtime: t.Mtime, ctime: t.Ctime, ino: t.Ino}, pendingHash
		switch {
		case t.Mode.IsDir():
			hash, st = packedDir, stamp{mode: t.Mode &^ (fs.ModeSticky | fs.ModeSetgid)} // a directory's times are irrelevant
		case t.Mode&fs.ModeSymlink != 0:
		case !t.Mode.IsRegular(), workspace.IsScratch(t.Name): // skip coder's own temporary files
			continue
		}
		s.packer.packed = appendStamped(s.packer.packed, t.Name, st)
		s.packer.add(hash, 0)
		if !t.Mode.IsDir() {
			shared, foreign = shared || t.Links > 1, foreign || t.Device != s.scanTime.Device
		}
	}
	unsettled := func(flag byte) bool { return flag&(nodeFresh|nodeClosed|nodeLight) != 0 } // to be examined again
	if old != nil && old.packed == string(s.packer.packed) && old.hasHardLinks == shared &&
		!slices.ContainsFunc(old.flags, unsettled) {
		return old
	}
	d := &folderDraft{dir: f.Path, folder: s.packer.build(), old: old}
	d.hasHardLinks, d.isForeign = shared, foreign
	for i := range d.count() {
		j, known := old.index(d.name(i))
		switch {
		case known && old.packedNode(j) == d.packedNode(i) && (!unsettled(old.flag(j)) || s.isGathered(old, j)):
			d.hashes[i] = old.hashes[j]
			if was := old.flag(j); was != 0 {
				d.setFlag(i, was)
				s.k.rescanDir(f.Path, was&nodeLight != 0)
			}
		case d.hashes[i] == pendingHash:
			s.todo = append(s.todo, pendingFile{d, i, d.stamp(i).size})
		}
	}
	return d.folder
}

// isGathered reports whether a file's content is available for the start being saved, with a reliable
// stamp.
func (s *scanner) isGathered(f *folder, i int) bool {
	return s.k.gatherer.isLooking() && f.flag(i) == nodeLight && s.k.gatherer.has(unpackHash(f.hashes[i]))
}

// isLooking reports whether a start uses the contents from a [Keeper.ScanAhead].
func (g *gatherer) isLooking() bool { return g != nil && g.hasLooked }

// rescanDir makes the next durable scan examine a directory again.
func (k *Keeper) rescanDir(dir string, again bool) {
	if !again {
		return
	}
	if k.rescanDirs == nil {
		k.rescanDirs = make(map[string]bool)
	}
	k.rescanDirs[dir] = true
}

// pendingHash stands for a hash that is not yet determined.
const pendingHash = "?"

// hashFiles determines the hashes of all new and changed files. It uses git's name for contents that git
// has; it reads and saves the others, within limits.
func (s *scanner) hashFiles(ctx context.Context) error {
	s.todo = slices.DeleteFunc(s.todo, func(f pendingFile) bool {
		st := f.currentStamp()
		if st.mode&fs.ModeSymlink == 0 {
			return false
		}
		if f.isFresh(s.scanTime) {
			f.addFlag(nodeFresh)
		}
		to, err := s.k.ws.Readlink(f.path())
		f.assignHash(linkHashOf(to))
		if err != nil {
			f.addFlag(nodeLost)
		}
		return true
	})
	large, such := s.skipFiles(func(f pendingFile) bool { return f.size > s.k.o.MaxFile })
	if len(s.todo) > fewFiles || s.old == nil {
		for _, r := range s.k.repos {
			if err := s.useGitIDs(ctx, r); err != nil {
				return err
			}
		}
	}
	slices.SortFunc(s.todo, func(a, b pendingFile) int {
		if a.size != b.size {
			return cmp.Compare(a.size, b.size)
		}
		return cmp.Or(strings.Compare(a.dir, b.dir), cmp.Compare(a.i, b.i))
	})
	files, bytes := 0, int64(0)
	many, also := s.skipFiles(func(f pendingFile) bool {
		files, bytes = files+1, bytes+f.size
		return files > s.k.o.TreeFiles || bytes > s.k.o.TreeBytes
	})
	switch n := large + many; {
	case n == 1:
		s.k.warn(fmt.Sprintf("%s is too large to save, or one file too many: changes by commands to it cannot be undone",
			cmp.Or(such, also)))
	case n > 1:
		s.k.warn(fmt.Sprintf("%d files are too many or too large to save, such as %s: changes by commands to them cannot be undone", n, cmp.Or(such, also)))
	}
	return s.readFiles(ctx)
}

// skipFiles marks files as lost instead of hashing them, and returns their number and the last of them.
func (s *scanner) skipFiles(lost func(pendingFile) bool) (n int, last string) {
	var f pendingFile
	s.todo = slices.DeleteFunc(s.todo, func(g pendingFile) bool {
		if !lost(g) {
			return false
		}
		g.markLost()
		n, f = n+1, g
		return true
	})
	if n > 0 {
		last = f.path()
	}
	return n, last
}

// expectFiles prepares for the state of this many files.
func (k *Keeper) expectFiles(files int) {
	if files > manyFiles && k.o.OnManyFiles != nil {
		k.o.OnManyFiles()
	}
}

// manyFiles is the number of files from which their state needs much memory.
var manyFiles = 10_000

// maxStartBytes limits the bytes of files in a start.
const maxStartBytes = 256 << 10

// fewFiles is the number of files up to which reading them is cheaper than running git.
const fewFiles = 200

// useGitIDs uses git's object ids for files of a repository that its index reports as unchanged.
func (s *scanner) useGitIDs(ctx context.Context, r *repo) error {
	found, settings := 0, make(map[string]bool)
	last, in, mine := "", (*folder)(nil), false
	err := r.index.Each(r.prefix, func(e gitindex.Entry, written int64) {
		dir, base := string(e.Name[:max(bytes.LastIndexByte(e.Name, '/'), 0)]),
			string(e.Name[bytes.LastIndexByte(e.Name, '/')+1:])
		if in == nil || dir != last {
			last, in = dir, s.next.folders[path.Join(r.root, dir)]
			mine = s.k.repoFor(path.Join(r.root, dir, base)) == r
		}
		if base == attributesFile {
			settings[path.Join(r.root, dir)] = true
		}
		i, ok := in.index(base)
		if ok && mine && in.hashes[i] == pendingHash && e.IsUnchanged(in.stamp(i).indexFile(), written) {
			in.hashes[i] = packedGit + string(e.ID)
			found++
		}
	})
	ends, sure, other := endsUnknown, false, make(map[string]bool)
	if err == nil && found > 0 {
		ends, sure = s.storesUnchanged(r, settings)
	}
	switch {
	case sure:
		r.hasAssumed, r.ends = r.hasAssumed || !r.hasAnswered, max(r.ends, ends)
	case err == nil && found > fewFiles:
		other, err = r.convertedFiles(ctx, func(yield func(string) bool) {
			for _, f := range s.todo {
				if f.isInGit() && s.k.repoFor(f.path()) == r && !yield(r.name(f.path())) {
					return
				}
			}
		})
	}
	s.todo = slices.DeleteFunc(s.todo, func(f pendingFile) bool {
		if !f.isInGit() || len(s.k.repos) > 1 && s.k.repoFor(f.path()) != r {
			return false
		}
		if err == nil && (sure || found > fewFiles && !other[r.name(f.path())]) {
			return true
		}
		f.hashes[f.i] = pendingHash // without git it must be read
		return false
	})
	return ctx.Err()
}

func (f pendingFile) isInGit() bool { return strings.HasPrefix(f.hashes[f.i], packedGit) }

// readFiles reads the remaining files concurrently, and saves their contents.
func (s *scanner) readFiles(ctx context.Context) error {
	if len(s.todo) == 0 {
		return nil
	}
	size := int64(0)
	for _, f := range s.todo {
		size += f.size
	}
	if g := s.k.gatherer; g != nil && (len(s.todo) > fewFiles || size > maxStartBytes) {
		if g.isAhead {
			return fs.SkipAll // too much for a look ahead
		}
		s.k.gatherer = nil // reading twice would cost more than syncing
	}
	for _, f := range s.todo {
		f.addFlag(0) // allocate the flags before concurrent writes
	}
	oids := make(map[string]string)
	for _, r := range s.k.repos {
		if s.k.gatherer != nil {
			break // git would take longer than reading a few files
		}
		wanted := make(map[string]bool)
		for _, f := range s.todo {
			if rel := f.path(); s.k.repoFor(rel) == r {
				wanted[r.name(rel)] = true
			}
		}
		found := make(map[string]string)
		err := r.index.Each(r.prefix, func(e gitindex.Entry, _ int64) {
			if wanted[string(e.Name)] {
				found[path.Join(r.root, string(e.Name))] = e.OID()
			}
		})
		if err == nil && len(found) > 0 && r.isUsable(ctx) {
			maps.Copy(oids, found)
		}
	}
	r := contentHasher{keeper: s.k, startTime: s.scanTime, tracked: oids}
	r.pinned = sync.OnceValue(s.k.pinned)
	work := make(chan pendingFile)
	errs := make([]error, min(runtime.GOMAXPROCS(0)+1, len(s.todo)))
	var crew sync.WaitGroup
	for i := range errs {
		crew.Go(func() {
			for f := range work {
				if ctx.Err() == nil {
					errs[i] = errors.Join(errs[i], r.hashFile(f))
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
	if s.k.gatherer != nil {
		for _, f := range s.todo {
			s.k.rescanDir(f.dir, f.flag(f.i)&(nodeLight|nodeFresh) != 0)
		}
	}
	lost := 0
	for _, f := range s.todo {
		if f.flag(f.i)&nodeLost != 0 {
			lost++
		}
	}
	if err != nil && !errors.Is(err, blob.ErrFull) {
		s.k.forceRescan() // it may be possible to save it next time
		s.k.storeErr = err
		return nil
	}
	switch {
	case err != nil:
		s.k.warn(fmt.Sprintf("changes by commands to some files cannot be undone: %v",
			clip.Truncate(err.Error(), maxWarning)))
	case lost > 0:
		s.k.warn("some files cannot be saved: changes by commands to them cannot be undone")
	}
	return nil
}

// maxWarning limits the quote in a warning.
const maxWarning = 300

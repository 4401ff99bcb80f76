package undo

import (
	"cmp"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"

	"coder/internal/core/event"
	"coder/internal/record/undo/blob"
)

// tree is the state of all files that are not ignored, at one moment. It is immutable; later trees share
// its unchanged folders.
type tree struct {
	folders   map[string]*folder
	scanTime  int64    // time of the scan, in nanoseconds
	isPartial bool     // there were more files than the limit
	roots     []string // the root directories

	// chain names the blobs of the tree, the full one first, then those with the differences. The full one
	// may instead be a name based on git, see headBasedTree. A tree that is not saved has none.
	chain     []string
	baseSize  int // size of the full one
	deltaSize int // size of the others
}

func (t *tree) name() string {
	if t == nil || len(t.chain) == 0 {
		return ""
	}
	return t.chain[len(t.chain)-1]
}

// find returns the node at a path, or nil.
func (t *tree) find(rel string) *node { return t.folders[path.Dir(rel)].find(path.Base(rel)) }

// node is a file, a link or a directory.
type node struct {
	name       string
	hash       string // of a link: linkHash, a colon and its target
	stamp      stamp
	isLost     bool
	isFresh    bool // its stamp is not reliable yet
	isUnlisted bool // a directory whose listing failed or is incomplete
}

// linkHashOf returns the hash of a link.
func linkHashOf(target string) string { return linkHash + ":" + target }

// linkTarget returns the target if the node is a link.
func (n *node) linkTarget() (target string, ok bool) { return strings.CutPrefix(n.hash, linkHash+":") }

// fileState describes the node, which is in dir.
func (n node) fileState(dir string) event.FileState {
	s := event.FileState{
		Path: path.Join(dir, n.name), Hash: n.hash, Mode: uint32(n.stamp.mode.Perm()), Size: n.stamp.size,
		ContentLost: n.isLost,
	}
	if n.hash == dirHash {
		s.Size = 0
	}
	if to, ok := n.linkTarget(); ok {
		s.Hash, s.Link, s.Mode, s.Size = linkHash, to, 0, 0
	}
	return s
}

// hashes returns the store's contents that the tree needs, including its own blobs.
func (t *tree) hashes() map[string]bool {
	all := make(map[string]bool)
	if t == nil {
		return all
	}
	for _, f := range t.folders {
		for _, packed := range f.hashes {
			if hash := unpackHash(packed); blob.IsHash(hash) {
				all[hash] = true
			}
		}
	}
	for _, name := range t.chain {
		all[name] = true
	}
	return all
}

// nodePair is a node before and after; either may be nil.
type nodePair struct {
	dir           string
	before, after *node
}

func (p nodePair) path() string {
	if p.before != nil {
		return path.Join(p.dir, p.before.name)
	}
	return path.Join(p.dir, p.after.name)
}

// compareTrees returns the nodes that differ between a and b, directory by directory, sorted by name. Either
// tree may be nil.
func compareTrees(a, b *tree) (list []nodePair) {
	a, b = cmp.Or(a, new(tree)), cmp.Or(b, new(tree))
	for _, dir := range differingDirs(a, b) {
		list = append(list, compareFolders(dir, a.folders[dir], b.folders[dir])...)
	}
	return list
}

// differingDirs returns the directories that differ between a and b, sorted.
func differingDirs(a, b *tree) (dirs []string) {
	for dir, f := range b.folders {
		if a.folders[dir] != f {
			dirs = append(dirs, dir)
		}
	}
	for dir := range a.folders {
		if b.folders[dir] == nil {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	return dirs
}

func compareFolders(dir string, a, b *folder) (list []nodePair) {
	i, j := 0, 0
	for i < a.count() || j < b.count() {
		switch {
		case j == b.count() || i < a.count() && a.name(i) < b.name(j):
			list = append(list, nodePair{dir, a.node(i), nil})
			i++
		case i == a.count() || b.name(j) < a.name(i):
			list = append(list, nodePair{dir, nil, b.node(j)})
			j++
		default:
			// ignoring freshness
			if a.packedNode(i) != b.packedNode(j) || a.hashes[i] != b.hashes[j] ||
				(a.flag(i)^b.flag(j))&^(nodeFresh|nodeLight) != 0 {
				list = append(list, nodePair{dir, a.node(i), b.node(j)})
			}
			i, j = i+1, j+1
		}
	}
	return list
}

// withEdits returns t after the edits: a nil node is removed, any other set. Edits are processed per
// directory, so those of one should be close together. The result shares folders that equal like's; like
// may be nil.
func (t *tree) withEdits(edits iter.Seq[edit], like *tree) *tree {
	next := &tree{folders: maps.Clone(t.folders), scanTime: t.scanTime, isPartial: t.isPartial, roots: t.roots}
	if next.folders == nil {
		next.folders = make(map[string]*folder)
	}
	type group struct {
		dir   string
		edits []edit
	}
	var open []group // each is inside the one before it
	finish := func() {
		g := open[len(open)-1]
		open = open[:len(open)-1]
		f := next.folders[g.dir].withEdits(g.edits)
		if like != nil && f.equals(like.folders[g.dir]) {
			f = like.folders[g.dir]
		}
		if next.folders[g.dir] = f; f.count() == 0 && !slices.Contains(t.roots, g.dir) {
			delete(next.folders, g.dir)
		}
	}
	for e := range edits {
		dir := path.Dir(e.path)
		for len(open) > 0 && open[len(open)-1].dir != dir && !isBelow(dir, open[len(open)-1].dir) {
			finish()
		}
		if len(open) == 0 || open[len(open)-1].dir != dir {
			open = append(open, group{dir: dir})
		}
		last := &open[len(open)-1]
		last.edits = append(last.edits, e)
	}
	for len(open) > 0 {
		finish()
	}
	return next
}

// edit sets the node at a path, or removes it if nil.
type edit struct {
	path string
	node *node
}

// coversDir reports whether the tree would include a file in dir, had there been one.
func (t *tree) coversDir(dir string) bool {
	n := t.folders[path.Dir(dir)].find(path.Base(dir))
	switch {
	case n == nil && t.folders[dir] != nil:
		return true // a root
	case n == nil && (dir == "." || dir == "/"):
		return false
	case n == nil:
		return t.coversDir(path.Dir(dir))
	case n.isUnlisted:
		return false
	case n.hash != dirHash:
		return true
	}
	return t.folders[dir] != nil || !t.isPartial
}

// addRoots sets the roots of a tree under construction. Each has a folder, even if empty.
func (t *tree) addRoots(roots []string) {
	slices.Sort(roots)
	t.roots = roots
	for _, root := range roots {
		if t.folders[root] == nil {
			t.folders[root] = new(folder)
		}
	}
}

// equals reports whether b equals t, including stamps.
func (t *tree) equals(b *tree) bool {
	return t.isPartial == b.isPartial && slices.Equal(t.roots, b.roots) && len(compareTrees(t, b)) == 0
}

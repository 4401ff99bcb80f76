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

// tree is the state of all files that are not ignored, at one moment. It is not
// changed once made; later ones share the folders that stayed the same.
type tree struct {
	folders map[string]*folder
	at      int64    // when it was looked at, in nanoseconds
	partial bool     // there was more than we look at
	roots   []string // the directories that everything lies in

	// chain names the blobs that hold the tree, the full one first, then those
	// that say what changed. In place of the full one there may be a name that
	// git gives a meaning to, see atHead. A tree that is not kept has none.
	chain []string
	full  int // bytes of the full one
	added int // bytes of the others
}

func (t *tree) name() string {
	if t == nil || len(t.chain) == 0 {
		return ""
	}
	return t.chain[len(t.chain)-1]
}

// find is what stands at a path, nil if there is nothing.
func (t *tree) find(rel string) *node { return t.folders[path.Dir(rel)].find(path.Base(rel)) }

// node is a file, a link or a directory.
type node struct {
	name   string
	hash   string // of a link: linkHash, a colon and where it leads
	stamp  stamp
	lost   bool
	fresh  bool // its stamp cannot be relied on yet
	closed bool // a directory that could not be listed, or not whole
}

// leadingTo is the hash of a link.
func leadingTo(target string) string { return linkHash + ":" + target }

// link is where a link leads, if the node is one.
func (n *node) link() (target string, ok bool) { return strings.CutPrefix(n.hash, linkHash+":") }

// state describes the node, which lies in dir.
func (n node) state(dir string) event.FileState {
	s := event.FileState{
		Path: path.Join(dir, n.name), Hash: n.hash, Mode: uint32(n.stamp.mode.Perm()), Size: n.stamp.size, Lost: n.lost,
	}
	if n.hash == dirHash {
		s.Size = 0
	}
	if to, ok := n.link(); ok {
		s.Hash, s.Link, s.Mode, s.Size = linkHash, to, 0, 0
	}
	return s
}

// hashes are the contents in the store that the tree relies on, its own blobs
// included.
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

// pair is a node before and after; either may be nil.
type pair struct {
	dir           string
	before, after *node
}

func (p pair) path() string {
	if p.before != nil {
		return path.Join(p.dir, p.before.name)
	}
	return path.Join(p.dir, p.after.name)
}

// compare lists the nodes that are not alike in a and b, directory by directory
// in the order of names. Either tree may be nil.
func compare(a, b *tree) (list []pair) {
	a, b = cmp.Or(a, new(tree)), cmp.Or(b, new(tree))
	for _, dir := range differing(a, b) {
		list = append(list, compareFolders(dir, a.folders[dir], b.folders[dir])...)
	}
	return list
}

// differing lists the directories that are not the same in a and b, in order.
func differing(a, b *tree) (dirs []string) {
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

func compareFolders(dir string, a, b *folder) (list []pair) {
	i, j := 0, 0
	for i < a.len() || j < b.len() {
		switch {
		case j == b.len() || i < a.len() && a.name(i) < b.name(j):
			list = append(list, pair{dir, a.node(i), nil})
			i++
		case i == a.len() || b.name(j) < a.name(i):
			list = append(list, pair{dir, nil, b.node(j)})
			j++
		default:
			if a.stamped(i) != b.stamped(j) || a.hashes[i] != b.hashes[j] || (a.flag(i)^b.flag(j))&^(nodeFresh|nodeLight) != 0 { // freshness aside
				list = append(list, pair{dir, a.node(i), b.node(j)})
			}
			i, j = i+1, j+1
		}
	}
	return list
}

// with returns the tree that t becomes when the given nodes are put in, and
// those that are nil taken out. They are taken in directory by directory, so
// those of one should not be far apart. Where the outcome is what another tree
// has, which may be nil, it is shared with that.
func (t *tree) with(edits iter.Seq[edit], like *tree) *tree {
	next := &tree{folders: maps.Clone(t.folders), at: t.at, partial: t.partial, roots: t.roots}
	if next.folders == nil {
		next.folders = make(map[string]*folder)
	}
	type group struct {
		dir   string
		edits []edit
	}
	var open []group // each lies in the one before it
	finish := func() {
		g := open[len(open)-1]
		open = open[:len(open)-1]
		f := next.folders[g.dir].with(g.edits)
		if like != nil && f.equals(like.folders[g.dir]) {
			f = like.folders[g.dir]
		}
		if next.folders[g.dir] = f; f.len() == 0 && !slices.Contains(t.roots, g.dir) {
			delete(next.folders, g.dir)
		}
	}
	for e := range edits {
		dir := path.Dir(e.path)
		for len(open) > 0 && open[len(open)-1].dir != dir && !lies(dir, open[len(open)-1].dir) {
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

// edit puts a node at a path, or takes away what is there if it is nil.
type edit struct {
	path string
	node *node
}

// saw reports whether the tree would show a file in dir if there had been one.
func (t *tree) saw(dir string) bool {
	n := t.folders[path.Dir(dir)].find(path.Base(dir))
	switch {
	case n == nil && t.folders[dir] != nil:
		return true // a root
	case n == nil && (dir == "." || dir == "/"):
		return false
	case n == nil:
		return t.saw(path.Dir(dir))
	case n.closed:
		return false
	case n.hash != dirHash:
		return true
	}
	return t.folders[dir] != nil || !t.partial
}

// addRoots sets the roots of a tree that is being made. Each is there, if empty.
func (t *tree) addRoots(roots []string) {
	slices.Sort(roots)
	t.roots = roots
	for _, root := range roots {
		if t.folders[root] == nil {
			t.folders[root] = new(folder)
		}
	}
}

// equals reports whether b says what t says, stamps included.
func (t *tree) equals(b *tree) bool {
	return t.partial == b.partial && slices.Equal(t.roots, b.roots) && len(compare(t, b)) == 0
}

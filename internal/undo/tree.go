package undo

import (
	"cmp"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"coder/internal/event"
	"coder/internal/undo/blob"
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

// name is what the tree is kept under.
func (t *tree) name() string {
	if t == nil || len(t.chain) == 0 {
		return ""
	}
	return t.chain[len(t.chain)-1]
}

// folder is what a directory holds, in the order of names.
type folder struct {
	nodes  []node
	shared bool // a file in it has other names too, by which it may change
}

func (f *folder) find(name string) *node {
	if f == nil {
		return nil
	}
	i, ok := slices.BinarySearchFunc(f.nodes, name, func(n node, name string) int { return cmp.Compare(n.name, name) })
	if !ok {
		return nil
	}
	return &f.nodes[i]
}

// find is what stands at a path, nil if there is nothing.
func (t *tree) find(rel string) *node { return t.folders[path.Dir(rel)].find(path.Base(rel)) }

// node is a file, a link or a directory. There may be very many.
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

// alike reports whether two nodes are the same, freshness aside.
func (n node) alike(m node) bool {
	n.fresh = m.fresh
	return n == m
}

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

// size is how many things there are.
func (t *tree) size() (n int) {
	for _, f := range t.folders {
		n += len(f.nodes)
	}
	return n
}

// hashes are the contents in the store that the tree relies on, its own blobs
// included.
func (t *tree) hashes() map[string]bool {
	all := make(map[string]bool)
	if t == nil {
		return all
	}
	for _, f := range t.folders {
		for _, n := range f.nodes {
			if blob.IsHash(n.hash) {
				all[n.hash] = true
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
	var x, y []node
	if a != nil {
		x = a.nodes
	}
	if b != nil {
		y = b.nodes
	}
	for len(x) > 0 || len(y) > 0 {
		switch {
		case len(y) == 0 || len(x) > 0 && x[0].name < y[0].name:
			list = append(list, pair{dir, &x[0], nil})
			x = x[1:]
		case len(x) == 0 || y[0].name < x[0].name:
			list = append(list, pair{dir, nil, &y[0]})
			y = y[1:]
		default:
			if !x[0].alike(y[0]) {
				list = append(list, pair{dir, &x[0], &y[0]})
			}
			x, y = x[1:], y[1:]
		}
	}
	return list
}

// with returns the tree that t becomes when the given nodes are put in, and
// those without a name to them (nil) taken out.
func (t *tree) with(edits []edit) *tree {
	next := &tree{folders: maps.Clone(t.folders), at: t.at, partial: t.partial, roots: t.roots}
	if next.folders == nil {
		next.folders = make(map[string]*folder)
	}
	byDir := make(map[string][]edit)
	for _, e := range edits {
		byDir[path.Dir(e.path)] = append(byDir[path.Dir(e.path)], e)
	}
	for dir, list := range byDir {
		next.folders[dir] = next.folders[dir].with(list)
		if len(next.folders[dir].nodes) == 0 && !slices.Contains(t.roots, dir) {
			delete(next.folders, dir)
		}
	}
	return next
}

// edit puts a node at a path, or takes away what is there if it is nil.
type edit struct {
	path string
	node *node
}

func (f *folder) with(edits []edit) *folder {
	var all []edit // by name instead of by path
	if f != nil {
		for i := range f.nodes {
			all = append(all, edit{f.nodes[i].name, &f.nodes[i]})
		}
	}
	for _, e := range edits {
		all = append(all, edit{path.Base(e.path), e.node})
	}
	slices.SortStableFunc(all, func(a, b edit) int { return cmp.Compare(a.path, b.path) })
	next := &folder{nodes: make([]node, 0, len(all))}
	for i, e := range all {
		if last := i+1 == len(all) || all[i+1].path != e.path; last && e.node != nil {
			next.nodes = append(next.nodes, *e.node)
		}
	}
	return next
}

// ofDir is the stamp of a directory: its times say nothing about it.
func (s stamp) ofDir() stamp { return stamp{mode: s.mode &^ (fs.ModeSticky | fs.ModeSetgid)} }

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

// close returns f with the directory of that name marked as not listed.
func (f *folder) close(name string) *folder {
	if n := f.find(name); n == nil || n.closed {
		return f
	}
	next := &folder{slices.Clone(f.nodes), f.shared}
	next.find(name).closed = true
	return next
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

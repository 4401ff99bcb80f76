package undo

import (
	"cmp"
	"io/fs"
	"maps"
	"path"
	"slices"

	"coder/internal/event"
	"coder/internal/undo/blob"
)

// tree is the state of all files that are not ignored, at one moment. It is not
// changed once made; later ones share the folders that stayed the same.
type tree struct {
	folders map[string]*folder
	at      int64 // when it was looked at, in nanoseconds
	partial bool  // not everything was looked at

	// chain names the blobs that hold the tree, the full one first, then those
	// that say what changed. A tree that is not kept has none.
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
type folder struct{ nodes []node }

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

// node is a file, a link or a directory.
type node struct {
	name  string
	stamp stamp
	hash  string
	link  string
	lost  bool
	fresh bool // its stamp cannot be relied on yet
}

// alike reports whether two nodes are the same, freshness aside.
func (n node) alike(m node) bool {
	n.fresh = m.fresh
	return n == m
}

// state describes the node, which lies in dir.
func (n node) state(dir string) event.FileState {
	s := event.FileState{
		Path: path.Join(dir, n.name), Hash: n.hash, Link: n.link, Mode: uint32(n.stamp.mode.Perm()), Size: n.stamp.size, Lost: n.lost,
	}
	if n.hash == linkHash || n.hash == dirHash {
		s.Size = 0
	}
	if n.hash == linkHash {
		s.Mode = 0
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
	var none tree
	a, b = cmp.Or(a, &none), cmp.Or(b, &none)
	var dirs []string
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
	for _, dir := range dirs {
		list = append(list, compareFolders(dir, a.folders[dir], b.folders[dir])...)
	}
	return list
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
	next := &tree{folders: maps.Clone(t.folders), at: t.at, partial: t.partial}
	if next.folders == nil {
		next.folders = make(map[string]*folder)
	}
	byDir := make(map[string][]edit)
	for _, e := range edits {
		byDir[path.Dir(e.path)] = append(byDir[path.Dir(e.path)], e)
	}
	for dir, list := range byDir {
		next.folders[dir] = next.folders[dir].with(list)
		if len(next.folders[dir].nodes) == 0 && dir != "." {
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
	nodes := make(map[string]node)
	if f != nil {
		for _, n := range f.nodes {
			nodes[n.name] = n
		}
	}
	for _, e := range edits {
		if e.node == nil {
			delete(nodes, path.Base(e.path))
		} else {
			nodes[path.Base(e.path)] = *e.node
		}
	}
	next := &folder{nodes: slices.Collect(maps.Values(nodes))}
	slices.SortFunc(next.nodes, func(a, b node) int { return cmp.Compare(a.name, b.name) })
	return next
}

// ofDir is the stamp of a directory: its times say nothing about it.
func (s stamp) ofDir() stamp { return stamp{mode: s.mode &^ (fs.ModeSticky | fs.ModeSetgid)} }

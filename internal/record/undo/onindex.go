package undo

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"

	"coder/internal/record/undo/gitindex"
)

// The files of a start are saved as their difference from git's index, which is saved with them. The
// index base is named by the modes that git does not record, and the repository folder that is the
// workspace,
//
//	index:<mode of files>,<of programs>,<of directories>,<folder>
const onIndexPrefix = "index:"

func isOnIndex(name string) bool { return strings.HasPrefix(name, onIndexPrefix) }

// encodeStart encodes a tree as its difference from an index saved with it.
func (k *Keeper) encodeStart(t *tree, index []byte) []byte {
	r := k.repoFor(".")
	if r == nil || index == nil {
		return encodeTree(nil, t)
	}
	c := indexDiff{tree: t, same: make(map[string][]bool)}
	if err := eachIndexed(index, r.prefix, c.compareFile); err != nil {
		return encodeTree(nil, t)
	}
	name := fmt.Sprintf("%s%o,%o,%o,%s", onIndexPrefix, c.modes.file, c.modes.executable, c.modes.dirs,
		url.PathEscape(r.prefix))
	b := encodeHead(name, t)
	for _, e := range c.edits() {
		b = appendNode(appendString(b, e.path), e.node)
	}
	return b
}

// indexDiff compares a tree with an index.
type indexDiff struct {
	tree    *tree
	modes   headRoot          // modes of the first of each kind
	same    map[string][]bool // folder → which of its nodes equal the index
	missing []edit            // what the tree lacks
	lastDir string            // folder of the last file
}

// compareFile compares a file of the index.
func (c *indexDiff) compareFile(dir, base string, e gitindex.Entry) {
	if dir != c.lastDir {
		c.lastDir = dir
		for up := dir; up != "." && c.same[up] == nil; up = path.Dir(up) {
			c.same[up] = make([]bool, c.tree.folders[up].count()+1) // never empty
			c.markNode(path.Dir(up), path.Base(up), func(st stamp, hash string) bool {
				return hash == packedDir && st.mode == fs.ModeDir|setFirst(&c.modes.dirs, st.mode)
			})
		}
	}
	c.markNode(dir, base, func(st stamp, hash string) bool {
		mode := &c.modes.file
		if e.Executable {
			mode = &c.modes.executable
		}
		return len(hash) == len(packedGit)+len(e.ID) && hash[:len(packedGit)] == packedGit &&
			hash[len(packedGit):] == string(e.ID) &&
			st == stamp{mode: setFirst(mode, st.mode), size: int64(e.Size), mtime: e.ModTime, ctime: e.ChangeTime,
				ino: uint64(e.Ino)}
	})
}

// setFirst sets mode to the first permission seen.
func setFirst(mode *fs.FileMode, met fs.FileMode) fs.FileMode {
	if *mode == 0 {
		*mode = met.Perm()
	}
	return *mode
}

// markNode records whether a node equals the index. The last of several with one name counts.
func (c *indexDiff) markNode(dir, base string, as func(st stamp, hash string) bool) {
	f := c.tree.folders[dir]
	i, ok := f.index(base)
	if !ok {
		if rel := path.Join(dir, base); isValidName(rel) {
			c.missing = append(c.missing, edit{path: rel})
		}
		return
	}
	if c.same[dir] == nil {
		c.same[dir] = make([]bool, f.count()+1)
	}
	c.same[dir][i] = f.flag(i) == 0 && as(f.stamp(i), f.hashes[i])
}

// edits returns the edits that turn the index's tree into the compared one, in order.
func (c *indexDiff) edits() []edit {
	list := c.missing
	for dir, f := range c.tree.folders {
		same := c.same[dir]
		for i := range f.count() {
			if same == nil || !same[i] {
				n := f.node(i)
				list = append(list, edit{path.Join(dir, n.name), n})
			}
		}
	}
	slices.SortFunc(list, func(a, b edit) int {
		return cmp.Or(strings.Compare(path.Dir(a.path), path.Dir(b.path)), strings.Compare(a.path, b.path))
	})
	return list
}

// eachIndexed calls visit for the files of an index below a folder.
func eachIndexed(index []byte, prefix string, visit func(dir, base string, e gitindex.Entry)) error {
	dir := "."
	return gitindex.Read(index, gitindex.OIDSize(index), prefix, func(e gitindex.Entry) {
		at := bytes.LastIndexByte(e.Name, '/')
		switch {
		case at <= 0:
			dir = "."
		case string(e.Name[:at]) != dir:
			dir = string(e.Name[:at])
		}
		visit(dir, string(e.Name[at+1:]), e)
	})
}

// treeOfIndex returns the tree of an index, with the modes in name.
func treeOfIndex(name string, index []byte) (*tree, error) {
	f := strings.Split(strings.TrimPrefix(name, onIndexPrefix), ",")
	if len(f) != 4 {
		return nil, errTree
	}
	h := headRoot{root: "."}
	prefix, err := url.PathUnescape(f[3])
	if err = errors.Join(err, h.parseModes(f)); err != nil {
		return nil, errTree
	}
	base := (&tree{folders: make(map[string]*folder)}).withRoot(h, func(yield func(edit) bool) {
		more := true
		err = eachIndexed(index, prefix, func(dir, base string, e gitindex.Entry) {
			n := &node{name: base, hash: gitPrefix + e.OID(), stamp: stamp{
				mode: h.file, size: int64(e.Size), mtime: e.ModTime, ctime: e.ChangeTime, ino: uint64(e.Ino),
			}}
			if e.Executable {
				n.stamp.mode = h.executable
			}
			if rel := path.Join(dir, base); more && isValidName(rel) {
				more = yield(edit{rel, n})
			}
		})
	}, nil)
	return base, err
}

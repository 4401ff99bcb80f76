package undo

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"strings"

	"coder/internal/record/undo/gitindex"
)

// The files of a start are told by what is different from the index of git that is saved
// with them. That is named by the modes that git does not know, and by the folder of the
// repository that is the workspace,
//
//	index:<mode of files>,<of programs>,<of directories>,<folder>
const onIndexPrefix = "index:"

func isOnIndex(name string) bool { return strings.HasPrefix(name, onIndexPrefix) }

// onIndex is the tree that an index tells, which shares with t what is the same; nil if
// there is none.
func (k *Keeper) onIndex(t *tree, index []byte) *tree {
	r := k.repoOf(".")
	if r == nil || index == nil {
		return nil
	}
	h := headRoot{root: "."}
	find := func(mode *fs.FileMode, f *folder, i int) {
		if *mode == 0 {
			*mode = f.stamp(i).mode.Perm()
		}
	}
	err := eachIndexed(index, r.prefix, func(dir, base string, e gitindex.Entry) {
		f := t.folders[dir]
		i, ok := f.index(base)
		switch {
		case !ok || h.file != 0 && h.program != 0 && h.dirs != 0:
			return
		case e.Program:
			find(&h.program, f, i)
		default:
			find(&h.file, f, i)
		}
		if above := t.folders[path.Dir(dir)]; dir != "." {
			if i, ok := above.index(path.Base(dir)); ok {
				find(&h.dirs, above, i)
			}
		}
	})
	if err != nil {
		return nil
	}
	name := fmt.Sprintf("%s%o,%o,%o,%s", onIndexPrefix, h.file, h.program, h.dirs, url.PathEscape(r.prefix))
	base, err := treeOfIndex(name, index, t)
	if err != nil {
		return nil
	}
	base.chain = []string{name}
	return base
}

func eachIndexed(index []byte, prefix string, visit func(dir, base string, e gitindex.Entry)) error {
	dir := "."
	return gitindex.Read(index, gitindex.OIDSize(index), prefix, func(e gitindex.Entry) {
		at := strings.LastIndexByte(string(e.Name), '/')
		if above := string(e.Name[:max(at, 0)]); at > 0 && above != dir {
			dir = above
		} else if at <= 0 {
			dir = "."
		}
		visit(dir, string(e.Name[at+1:]), e)
	})
}

// treeOfIndex is the tree that a name tells of an index. What another tree has too, which
// may be nil, is shared with that.
func treeOfIndex(name string, index []byte, like *tree) (*tree, error) {
	f := strings.Split(strings.TrimPrefix(name, onIndexPrefix), ",")
	if len(f) != 4 {
		return nil, errTree
	}
	h := headRoot{root: "."}
	prefix, err := url.PathUnescape(f[3])
	if err = errors.Join(err, h.parseModes(f)); err != nil {
		return nil, errTree
	}
	base := (&tree{folders: make(map[string]*folder)}).grown(h, func(yield func(edit) bool) {
		more := true
		err = eachIndexed(index, prefix, func(dir, base string, e gitindex.Entry) {
			n := &node{name: base, hash: gitPrefix + e.OID(), stamp: stamp{
				mode: h.file, size: int64(e.Size), mtime: e.ModTime, ctime: e.ChangeTime, ino: uint64(e.Ino),
			}}
			if e.Program {
				n.stamp.mode = h.program
			}
			if rel := path.Join(dir, base); more && isName(rel) {
				more = yield(edit{rel, n})
			}
		})
	}, like)
	return base, err
}

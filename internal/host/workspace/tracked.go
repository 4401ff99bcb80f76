package workspace

import (
	"bytes"
	"encoding/binary"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"coder/internal/host/repofile"
)

// Git never ignores what it has on record, whatever the rules say. So that what
// is ignored may be on record nevertheless the record, git's index, is read when
// the first ignored thing is met, and again when it changed.

// maxIndex is how many bytes of an index are read.
const maxIndex = 64 << 20

// record is what git has on record in the repository that holds a tree.
type record struct {
	mu    sync.Mutex
	stamp os.FileInfo
	names []string // from the top of the repository on, in order
}

// onRecord is what git has on record in the repository that holds the tree, read
// when first asked for.
func (w *Workspace) onRecord() func() []string {
	return sync.OnceValue(func() []string {
		if git := w.surroundings().git; git != "" {
			return w.record.read(git)
		}
		return nil
	})
}

// tracked reports whether the thing at rel is on record or, of a directory,
// something in it.
func (w *Workspace) tracked(git func() []string, rel string, dir bool) bool {
	if dir && never[path.Base(rel)] || path.Base(rel) == ".git" {
		return false
	}
	names := git()
	name := path.Join(w.surroundings().lead, rel)
	if dir {
		name += "/"
	}
	i, found := slices.BinarySearch(names, name)
	return found || dir && i < len(names) && strings.HasPrefix(names[i], name)
}

// read is the names on record in the index of a repository.
func (r *record) read(git string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	info, err := os.Lstat(filepath.Join(git, "index"))
	switch {
	case err != nil || !info.Mode().IsRegular():
		r.stamp, r.names = nil, nil
	case r.stamp == nil || !os.SameFile(r.stamp, info) || !r.stamp.ModTime().Equal(info.ModTime()) || r.stamp.Size() != info.Size():
		text, err := repofile.Below(git).Read("index", maxIndex)
		r.stamp, r.names = info, nil
		if err == nil {
			r.names = indexed(text)
		}
	}
	return r.names
}

// indexed lists the names in an index of git; what of it cannot be read is left
// out.
func indexed(text []byte) (names []string) {
	const head, fixed = 12, 62 // bytes of the header, and of an entry before its name
	if len(text) < head || string(text[:4]) != "DIRC" {
		return nil
	}
	version, count := binary.BigEndian.Uint32(text[4:]), binary.BigEndian.Uint32(text[8:])
	if version < 2 || version > 4 {
		return nil
	}
	at, last := head, ""
	for ; count > 0 && at+fixed < len(text); count-- {
		begin := at
		at += fixed
		if version > 2 && text[begin+fixed-2]&0x40 != 0 {
			at += 2 // more flags
		}
		if version == 4 {
			drop, size := offset(text[min(at, len(text)):])
			if size == 0 || drop > len(last) {
				return names
			}
			last, at = last[:len(last)-drop], at+size
		} else {
			last = ""
		}
		end := bytes.IndexByte(text[min(at, len(text)):], 0)
		if end < 0 {
			return names
		}
		last += string(text[at : at+end])
		if at += end + 1; version < 4 {
			at = begin + (at-1-begin+8)/8*8
		}
		names = append(names, last)
	}
	if !slices.IsSorted(names) {
		slices.Sort(names)
	}
	return names
}

// offset reads a number as git packs it, and how many bytes it takes; 0 if it is
// not whole.
func offset(text []byte) (n, size int) {
	for i, c := range text[:min(len(text), 5)] {
		if i > 0 {
			n++
		}
		n = n<<7 | int(c&0x7f)
		if c&0x80 == 0 {
			return n, i + 1
		}
	}
	return 0, 0
}

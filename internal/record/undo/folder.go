package undo

import (
	"encoding/binary"
	"encoding/hex"
	"path"
	"slices"
	"sort"
	"strings"
)

// folder is the content of a directory, sorted by name. All folders together may have very many entries,
// so they are packed: a file takes its name and about forty bytes. It is immutable once part of a tree;
// the nil *folder is empty.
type folder struct {
	packed string   // name and stamp of each node, see appendStamped
	ends   []uint32 // end of each in packed
	hashes []string // hash of each, see packHash
	flags  []byte   // flags of each, see nodeLost and so on; nil if all are zero

	hasHardLinks bool // some file in it has other names, through which it may change
	isForeign    bool // some file in it is on another file system, whose time is unknown
}

func (f *folder) count() int {
	if f == nil {
		return 0
	}
	return len(f.ends)
}

// packedNode returns the packed name and stamp of a node; equal nodes have equal ones.
func (f *folder) packedNode(i int) string {
	from := uint32(0)
	if i > 0 {
		from = f.ends[i-1]
	}
	return f.packed[from:f.ends[i]]
}

func appendStamped(b []byte, name string, s stamp) []byte {
	return appendStamp(appendString(b, name), s)
}

func appendStamp(b []byte, s stamp) []byte {
	b = binary.AppendUvarint(b, uint64(s.mode))
	b = binary.AppendVarint(b, s.size)
	b = binary.AppendVarint(b, s.mtime)
	b = binary.AppendVarint(b, s.ctime-s.mtime)
	return binary.AppendUvarint(b, s.ino)
}

func cutName(packed string) (name, rest string) {
	n, size := uint64(0), 0
	for shift := 0; ; shift += 7 {
		c := packed[size]
		n |= uint64(c&0x7f) << shift
		if size++; c < 0x80 {
			return packed[size : size+int(n)], packed[size+int(n):]
		}
	}
}

func (f *folder) name(i int) string {
	name, _ := cutName(f.packedNode(i))
	return name
}

func (f *folder) stamp(i int) stamp {
	_, rest := cutName(f.packedNode(i))
	p := treeParser{rest: []byte(rest)}
	return p.readStamp()
}

func (f *folder) flag(i int) byte {
	if f.flags == nil {
		return 0
	}
	return f.flags[i]
}

// setFlag sets a flag in a folder under construction.
func (f *folder) setFlag(i int, flag byte) {
	if f.flags == nil {
		f.flags = make([]byte, len(f.ends))
	}
	f.flags[i] |= flag
}

func (f *folder) node(i int) *node {
	flags := f.flag(i)
	return &node{
		name: f.name(i), hash: unpackHash(f.hashes[i]), stamp: f.stamp(i),
		isLost: flags&nodeLost != 0, isFresh: flags&(nodeFresh|nodeLight) != 0, isUnlisted: flags&nodeClosed != 0,
	}
}

func (f *folder) index(name string) (int, bool) {
	i := sort.Search(f.count(), func(i int) bool { return f.name(i) >= name })
	return i, i < f.count() && f.name(i) == name
}

// find returns the node with this name, or nil.
func (f *folder) find(name string) *node {
	i, ok := f.index(name)
	if !ok {
		return nil
	}
	return f.node(i)
}

func (f *folder) equals(g *folder) bool {
	if f.count() != g.count() || f.count() > 0 && (f.packed != g.packed || !slices.Equal(f.hashes, g.hashes)) {
		return false
	}
	for i := range f.count() {
		if f.flag(i) != g.flag(i) {
			return false
		}
	}
	return true
}

// withEdits returns f after edits in the directory; the last of several for one name counts.
func (f *folder) withEdits(edits []edit) *folder {
	slices.SortStableFunc(edits, func(a, b edit) int { return strings.Compare(path.Base(a.path), path.Base(b.path)) })
	var b folderPacker
	i := 0
	for at, e := range edits {
		name := path.Base(e.path)
		if at+1 < len(edits) && path.Base(edits[at+1].path) == name {
			continue
		}
		for ; i < f.count() && f.name(i) < name; i++ {
			b.copyNode(f, i)
		}
		if i < f.count() && f.name(i) == name {
			i++
		}
		if e.node != nil {
			b.packed = appendStamped(b.packed, e.node.name, e.node.stamp)
			b.add(packHash(e.node.hash), e.node.flags())
		}
	}
	for ; i < f.count(); i++ {
		b.copyNode(f, i)
	}
	return b.build()
}

// markUnlisted returns f with the named directory marked as not listed.
func (f *folder) markUnlisted(name string) *folder {
	i, ok := f.index(name)
	if !ok || f.flag(i)&nodeClosed != 0 {
		return f
	}
	next := *f
	next.flags = slices.Clone(f.flags)
	next.setFlag(i, nodeClosed)
	return &next
}

// folderPacker builds folders and reuses its memory.
type folderPacker struct {
	packed []byte
	ends   []uint32
	hashes []string
	flags  []byte
}

func (p *folderPacker) add(hash string, flags byte) {
	p.ends, p.hashes, p.flags = append(p.ends, uint32(len(p.packed))), append(p.hashes, hash), append(p.flags, flags)
}

func (p *folderPacker) copyNode(f *folder, i int) {
	p.packed = append(p.packed, f.packedNode(i)...)
	p.add(f.hashes[i], f.flag(i))
}

func (p *folderPacker) build() *folder {
	f := &folder{packed: string(p.packed), ends: slices.Clone(p.ends), hashes: slices.Clone(p.hashes)}
	if slices.ContainsFunc(p.flags, func(b byte) bool { return b != 0 }) {
		f.flags = slices.Clone(p.flags)
	}
	return f
}

// packHash encodes a hash compactly: its kind, and the bytes of its digits.
func packHash(hash string) string {
	switch hash {
	case "":
		return ""
	case dirHash:
		return packedDir
	}
	digits, git := strings.CutPrefix(hash, gitPrefix)
	raw, err := hex.DecodeString(digits)
	switch {
	case err != nil || len(raw) == 0 || hex.EncodeToString(raw) != digits:
		return packedText + hash
	case git:
		return packedGit + string(raw)
	}
	return packedOwn + string(raw)
}

// Prefixes of packHash, and its result for a directory.
const (
	packedText = string(rune(hashText))
	packedOwn  = string(rune(hashOwn))
	packedGit  = string(rune(hashGit))
	packedDir  = packedText + dirHash
)

func unpackHash(packed string) string {
	switch {
	case packed == "":
		return ""
	case packed == packedDir:
		return dirHash
	case packed[0] == hashOwn:
		return hex.EncodeToString([]byte(packed[1:]))
	case packed[0] == hashGit:
		return gitPrefix + hex.EncodeToString([]byte(packed[1:]))
	}
	return packed[1:]
}

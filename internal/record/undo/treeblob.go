package undo

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"

	"coder/internal/core/message"
	"coder/internal/record/gitstate"
)

// treeMagic begins the blob of a tree. Then follow the name of the base tree (or empty), the time of the
// scan, whether the tree is complete, its roots, and the nodes set or removed.
const treeMagic = "coder tree 2\n"

const (
	maxTreeBlob = 256 << 20
	maxChain    = 200 // blobs of one tree
	maxRoots    = 1000
)

var errTree = errors.New("the saved state of files is damaged")

// saveTree saves t, at a cost in proportion to its difference from the last saved tree or from git's, and
// gives it a name.
func (k *Keeper) saveTree(ctx context.Context, t *tree) error {
	if t.name() != "" {
		return nil
	}
	base := k.savedTree
	if base != nil && base.equals(t) {
		t.shareName(base)
		return nil
	}
	if base == nil || base.deltaSize > base.baseSize/2 || len(base.chain) >= maxChain {
		base = k.headBasedTree(ctx, t)
	}
	if base != nil && isHead(base.name()) && (base.equals(t) || k.equalsLast(base, t)) {
		t.shareName(base)
		k.savedTree = t
		return nil
	}
	data := encodeTree(base, t)
	hash, err := k.saveContent(treeFile, bytes.NewReader(data))
	if err != nil {
		return err
	}
	t.chain, t.baseSize = []string{hash}, len(data)
	if base != nil {
		t.chain, t.baseSize, t.deltaSize = append(slices.Clone(base.chain), hash), base.baseSize, base.deltaSize+len(data)
	}
	k.savedTree = t
	return nil
}

// shareName gives t the name of an equal tree.
func (t *tree) shareName(as *tree) {
	t.chain, t.baseSize, t.deltaSize = as.chain, as.baseSize, as.deltaSize
}

// equalsLast reports whether the newest tree on record equals t saved upon base. If so, base gets its
// name.
func (k *Keeper) equalsLast(base, t *tree) bool {
	c, err := k.readChain(k.o.LastTree)
	if err != nil || c.head != base.name() || len(c.blobs) != 1 {
		return false
	}
	d := newTreeDecoder(c.blobs[0])
	edits := slices.Collect(d.edits)
	if d.err != nil || d.isPartial != t.isPartial || !slices.Equal(d.roots, t.roots) {
		return false
	}
	pairs := compareTrees(base, t)
	same := slices.EqualFunc(edits, pairs, func(e edit, p nodePair) bool {
		if e.path != p.path() || e.node == nil || p.after == nil {
			return e.path == p.path() && e.node == p.after
		}
		n := *e.node
		n.isFresh = p.after.isFresh // ignored here
		return n == *p.after
	})
	if same {
		base.chain, base.deltaSize = append(base.chain, k.o.LastTree), len(c.blobs[0])
	}
	return same
}

// encodeTree encodes the difference from base, which may be nil, to t.
func encodeTree(base, t *tree) []byte {
	base = cmp.Or(base, new(tree))
	b := encodeHead(base.name(), t)
	for _, dir := range differingDirs(base, t) {
		for _, p := range compareFolders(dir, base.folders[dir], t.folders[dir]) {
			b = appendNode(appendString(b, p.path()), p.after)
		}
	}
	return b
}

// encodeHead encodes the start of a tree's blob.
func encodeHead(base string, t *tree) []byte {
	b := appendString([]byte(treeMagic), base)
	b = binary.AppendVarint(b, t.scanTime)
	b = append(b, boolByte(t.isPartial))
	b = binary.AppendUvarint(b, uint64(len(t.roots)))
	for _, root := range t.roots {
		b = appendString(b, root)
	}
	return b
}

func boolByte(on bool) byte {
	if on {
		return 1
	}
	return 0
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// The bits of a node's first byte.
const (
	nodePresent = 1 << iota
	nodeLost
	nodeFresh
	nodeClosed
	nodeLight // only in memory: undo lacks the content, which is read again before it may be overwritten
)

func (n *node) flags() byte {
	return nodeLost*boolByte(n.isLost) | nodeFresh*boolByte(n.isFresh) | nodeClosed*boolByte(n.isUnlisted)
}

func appendNode(b []byte, n *node) []byte {
	if n == nil {
		return append(b, 0)
	}
	b = appendStamp(append(b, nodePresent|n.flags()), n.stamp)
	hash, to := n.hash, ""
	if target, ok := n.linkTarget(); ok {
		hash, to = linkHash, target
	}
	packed := cmp.Or(packHash(hash), packedText)
	return appendString(appendString(append(b, packed[0]), packed[1:]), to)
}

// Encodings of a hash: verbatim, or as the bytes of its digits.
const (
	hashText = iota
	hashOwn
	hashGit
)

func (k *Keeper) loadTree(ctx context.Context, name string) (*tree, error) {
	c, err := k.readChain(name)
	if err != nil {
		return nil, err
	}
	base := &tree{folders: make(map[string]*folder)}
	switch {
	case isHead(c.head):
		base, err = k.headTree(ctx, c.head)
	case c.head != "":
		base, err = treeOfIndex(c.head, c.index)
	}
	if err != nil {
		return nil, err
	}
	return c.apply(base)
}

// treeChain is a tree as saved.
type treeChain struct {
	head  string   // git's part of it, or empty
	index []byte   // the index that head refers to
	names []string // oldest first
	blobs [][]byte
}

func (k *Keeper) readChain(name string) (c treeChain, err error) {
	for next := name; next != ""; {
		if isHead(next) || c.index != nil && isOnIndex(next) {
			c.head = next
			break
		}
		data, base, err := k.readTree(next, &c)
		if err != nil {
			return c, err
		}
		if base != "" {
			next = base
			continue
		}
		c.blobs, c.names = append(c.blobs, data), append(c.names, next)
		d := newTreeDecoder(data)
		if next = d.base; d.err != nil || len(c.blobs) > maxChain {
			return c, errTree
		}
	}
	slices.Reverse(c.names)
	slices.Reverse(c.blobs)
	return c, nil
}

// readTree reads the blob of a tree. A start has an index, and may name another tree instead.
func (k *Keeper) readTree(name string, c *treeChain) (data []byte, base string, err error) {
	if isStart(name) {
		s, err := k.store.loadStart(name)
		if err != nil {
			return nil, "", err
		}
		if isStart(s.base) {
			return nil, "", errTree
		}
		c.index = gitstate.Index(s.state)
		return s.tree, s.base, nil
	}
	in, err := k.store.Open(name)
	if err != nil {
		return nil, "", err
	}
	defer in.Close()
	if data, err = io.ReadAll(io.LimitReader(in, maxTreeBlob)); err != nil {
		return nil, "", message.Errorf("read the saved state of files: %w", err)
	}
	return data, "", nil
}

func (c treeChain) apply(base *tree) (*tree, error) {
	t := base
	for i, data := range c.blobs {
		d := newTreeDecoder(data)
		was := t
		if t = t.withEdits(d.edits, nil); d.err != nil {
			return nil, d.err
		}
		t.scanTime, t.isPartial = d.at, d.isPartial
		t.addRoots(d.roots)
		t.baseSize, t.deltaSize = was.baseSize, was.deltaSize+len(data)
		if i == 0 && c.head == "" {
			t.baseSize, t.deltaSize = len(data), 0
		}
	}
	t.chain = c.names
	if c.head != "" {
		t.chain = append([]string{c.head}, c.names...)
	}
	return t, nil
}

// treeDecoder decodes the output of encodeTree: the header, then the edits.
type treeDecoder struct {
	treeParser
	base      string
	at        int64
	isPartial bool
	roots     []string
}

func newTreeDecoder(data []byte) *treeDecoder {
	d := &treeDecoder{treeParser: treeParser{rest: data}}
	if string(d.readBytes(uint64(len(treeMagic)))) != treeMagic {
		d.err = errTree
	}
	d.base, d.at, d.isPartial = d.readString(), d.readVarint(), d.readByte() != 0
	for range min(d.readUvarint(), maxRoots) {
		root := d.readString()
		if d.roots = append(d.roots, root); d.err == nil && root != "." && !isValidName(root) {
			d.err = errTree
		}
	}
	return d
}

// edits yields the edits in the blob, each of which must be inside the roots. Check d.err at the end.
func (d *treeDecoder) edits(yield func(edit) bool) {
	for d.err == nil && len(d.rest) > 0 {
		e := edit{path: d.readString()}
		e.node = d.readNode(path.Base(e.path))
		within := func(root string) bool { return isBelow(e.path, root) }
		if d.err == nil && !(isValidName(e.path) && (!path.IsAbs(e.path) || e.node == nil ||
			slices.ContainsFunc(d.roots, within))) {
			d.err = errTree
		}
		if d.err != nil || !yield(e) {
			return
		}
	}
}

// isValidName reports whether a path is valid for a file in a tree.
func isValidName(p string) bool {
	return path.Clean(p) == p && p != "." && p != "/" && (path.IsAbs(p) || filepath.IsLocal(p))
}

// treeParser parses a blob. After an error it returns only zero values.
type treeParser struct {
	rest []byte
	err  error
}

func (p *treeParser) readBytes(n uint64) []byte {
	if p.err != nil || n > uint64(len(p.rest)) {
		p.err, p.rest = errTree, nil
		return nil
	}
	b := p.rest[:n]
	p.rest = p.rest[n:]
	return b
}

func (p *treeParser) readByte() byte {
	if b := p.readBytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (p *treeParser) readUvarint() uint64 { return readNumber(p, binary.Uvarint) }
func (p *treeParser) readVarint() int64   { return readNumber(p, binary.Varint) }

func readNumber[T any](p *treeParser, read func([]byte) (T, int)) (none T) {
	v, n := read(p.rest)
	if n <= 0 {
		p.err = errTree
		return none
	}
	p.readBytes(uint64(n))
	return v
}

func (p *treeParser) readString() string { return string(p.readBytes(p.readUvarint())) }

func (p *treeParser) readNode(name string) *node {
	bits := p.readByte()
	if bits&nodePresent == 0 {
		return nil
	}
	n := &node{name: name, isLost: bits&nodeLost != 0, isFresh: bits&nodeFresh != 0, isUnlisted: bits&nodeClosed != 0}
	n.stamp = p.readStamp()
	n.hash = unpackHash(string([]byte{p.readByte()}) + p.readString())
	if to := p.readString(); n.hash == linkHash {
		n.hash = linkHashOf(to)
	}
	return n
}

func (p *treeParser) readStamp() (s stamp) {
	s.mode = fs.FileMode(p.readUvarint())
	s.size = p.readVarint()
	s.mtime = p.readVarint()
	s.ctime = s.mtime + p.readVarint()
	s.ino = p.readUvarint()
	return s
}

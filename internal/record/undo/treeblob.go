package undo

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"

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

// persist saves t, at a cost in proportion to its difference from the last saved tree or from git's, and
// gives it a name.
func (k *Keeper) persist(ctx context.Context, t *tree) error {
	if t.name() != "" {
		return nil
	}
	base := k.kept
	if base != nil && base.equals(t) {
		t.follow(base)
		return nil
	}
	if base == nil || base.added > base.full/2 || len(base.chain) >= maxChain {
		base = k.atHead(ctx, t)
	}
	if base != nil && isHead(base.name()) && (base.equals(t) || k.likeLast(base, t)) {
		t.follow(base)
		k.kept = t
		return nil
	}
	data := encodeTree(base, t)
	hash, err := k.put(treeFile, bytes.NewReader(data))
	if err != nil {
		return err
	}
	t.chain, t.full = []string{hash}, len(data)
	if base != nil {
		t.chain, t.full, t.added = append(slices.Clone(base.chain), hash), base.full, base.added+len(data)
	}
	k.kept = t
	return nil
}

// follow gives t the name of an equal tree.
func (t *tree) follow(as *tree) { t.chain, t.full, t.added = as.chain, as.full, as.added }

// likeLast reports whether the newest tree on record equals t saved upon base. If so, base gets its
// name.
func (k *Keeper) likeLast(base, t *tree) bool {
	c, err := k.readChain(k.o.Tree)
	if err != nil || c.head != base.name() || len(c.blobs) != 1 {
		return false
	}
	d := openTree(c.blobs[0])
	edits := slices.Collect(d.edits)
	if d.err != nil || d.partial != t.partial || !slices.Equal(d.roots, t.roots) {
		return false
	}
	pairs := compare(base, t)
	same := slices.EqualFunc(edits, pairs, func(e edit, p pair) bool {
		if e.path != p.path() || e.node == nil || p.after == nil {
			return e.path == p.path() && e.node == p.after
		}
		n := *e.node
		n.fresh = p.after.fresh // ignored here
		return n == *p.after
	})
	if same {
		base.chain, base.added = append(base.chain, k.o.Tree), len(c.blobs[0])
	}
	return same
}

// encodeTree encodes the difference from base, which may be nil, to t.
func encodeTree(base, t *tree) []byte {
	base = cmp.Or(base, new(tree))
	b := encodeHead(base.name(), t)
	for _, dir := range differing(base, t) {
		for _, p := range compareFolders(dir, base.folders[dir], t.folders[dir]) {
			b = appendNode(appendString(b, p.path()), p.after)
		}
	}
	return b
}

// encodeHead encodes the start of a tree's blob.
func encodeHead(base string, t *tree) []byte {
	b := appendString([]byte(treeMagic), base)
	b = binary.AppendVarint(b, t.at)
	b = append(b, flag(t.partial))
	b = binary.AppendUvarint(b, uint64(len(t.roots)))
	for _, root := range t.roots {
		b = appendString(b, root)
	}
	return b
}

func flag(on bool) byte {
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
	nodeHere = 1 << iota
	nodeLost
	nodeFresh
	nodeClosed
	nodeLight // only in memory: undo lacks the content, which is read again before it may be overwritten
)

func (n *node) flags() byte {
	return nodeLost*flag(n.lost) | nodeFresh*flag(n.fresh) | nodeClosed*flag(n.closed)
}

func appendNode(b []byte, n *node) []byte {
	if n == nil {
		return append(b, 0)
	}
	b = appendStamp(append(b, nodeHere|n.flags()), n.stamp)
	hash, to := n.hash, ""
	if target, ok := n.link(); ok {
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
	return c.on(base)
}

// chain is a tree as saved.
type chain struct {
	head  string   // git's part of it, or empty
	index []byte   // the index that head refers to
	names []string // oldest first
	blobs [][]byte
}

func (k *Keeper) readChain(name string) (c chain, err error) {
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
		d := openTree(data)
		if next = d.base; d.err != nil || len(c.blobs) > maxChain {
			return c, errTree
		}
	}
	slices.Reverse(c.names)
	slices.Reverse(c.blobs)
	return c, nil
}

// readTree reads the blob of a tree. A start has an index, and may name another tree instead.
func (k *Keeper) readTree(name string, c *chain) (data []byte, base string, err error) {
	if isStart(name) {
		s, err := k.store.start(name)
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
		return nil, "", fmt.Errorf("read the saved state of files: %w", err)
	}
	return data, "", nil
}

func (c chain) on(base *tree) (*tree, error) {
	t := base
	for i, data := range c.blobs {
		d := openTree(data)
		was := t
		if t = t.with(d.edits, nil); d.err != nil {
			return nil, d.err
		}
		t.at, t.partial = d.at, d.partial
		t.addRoots(d.roots)
		t.full, t.added = was.full, was.added+len(data)
		if i == 0 && c.head == "" {
			t.full, t.added = len(data), 0
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
	base    string
	at      int64
	partial bool
	roots   []string
}

func openTree(data []byte) *treeDecoder {
	d := &treeDecoder{treeParser: treeParser{rest: data}}
	if string(d.take(uint64(len(treeMagic)))) != treeMagic {
		d.err = errTree
	}
	d.base, d.at, d.partial = d.string(), d.varint(), d.byte() != 0
	for range min(d.uvarint(), maxRoots) {
		root := d.string()
		if d.roots = append(d.roots, root); d.err == nil && root != "." && !isName(root) {
			d.err = errTree
		}
	}
	return d
}

// edits yields the edits in the blob, each of which must be inside the roots. Check d.err at the end.
func (d *treeDecoder) edits(yield func(edit) bool) {
	for d.err == nil && len(d.rest) > 0 {
		e := edit{path: d.string()}
		e.node = d.node(path.Base(e.path))
		within := func(root string) bool { return lies(e.path, root) }
		if d.err == nil && !(isName(e.path) && (!path.IsAbs(e.path) || e.node == nil || slices.ContainsFunc(d.roots, within))) {
			d.err = errTree
		}
		if d.err != nil || !yield(e) {
			return
		}
	}
}

// isName reports whether a path is valid for a file in a tree.
func isName(p string) bool {
	return path.Clean(p) == p && p != "." && p != "/" && (path.IsAbs(p) || filepath.IsLocal(p))
}

// treeParser parses a blob. After an error it returns only zero values.
type treeParser struct {
	rest []byte
	err  error
}

func (p *treeParser) take(n uint64) []byte {
	if p.err != nil || n > uint64(len(p.rest)) {
		p.err, p.rest = errTree, nil
		return nil
	}
	b := p.rest[:n]
	p.rest = p.rest[n:]
	return b
}

func (p *treeParser) byte() byte {
	if b := p.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (p *treeParser) uvarint() uint64 { return number(p, binary.Uvarint) }
func (p *treeParser) varint() int64   { return number(p, binary.Varint) }

func number[T any](p *treeParser, read func([]byte) (T, int)) (none T) {
	v, n := read(p.rest)
	if n <= 0 {
		p.err = errTree
		return none
	}
	p.take(uint64(n))
	return v
}

func (p *treeParser) string() string { return string(p.take(p.uvarint())) }

func (p *treeParser) node(name string) *node {
	bits := p.byte()
	if bits&nodeHere == 0 {
		return nil
	}
	n := &node{name: name, lost: bits&nodeLost != 0, fresh: bits&nodeFresh != 0, closed: bits&nodeClosed != 0}
	n.stamp = p.stamp()
	n.hash = unpackHash(string([]byte{p.byte()}) + p.string())
	if to := p.string(); n.hash == linkHash {
		n.hash = leadingTo(to)
	}
	return n
}

func (p *treeParser) stamp() (s stamp) {
	s.mode = fs.FileMode(p.uvarint())
	s.size = p.varint()
	s.mtime = p.varint()
	s.ctime = s.mtime + p.varint()
	s.ino = p.uvarint()
	return s
}

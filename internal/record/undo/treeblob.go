package undo

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/record/undo/blob"
)

// treeMagic begins the blob of a tree. It is followed by the name of the tree
// this one is built upon (empty: none), when it was looked at, whether that was
// all there is, where it lies, and the nodes that were put in or taken out.
const treeMagic = "coder tree 2\n"

const (
	maxTreeBlob = 256 << 20
	maxChain    = 200 // blobs of one tree
	maxRoots    = 1000
)

var errTree = errors.New("kept state of files is damaged")

// persist keeps t, in proportion to what is different from the tree that was
// kept before, or from what git has, and gives it a name.
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
	data := newTreeReader(base, t)
	hash, err := k.put(data)
	if err != nil {
		return err
	}
	t.chain, t.full = []string{hash}, data.size
	if base != nil {
		t.chain, t.full, t.added = append(slices.Clone(base.chain), hash), base.full, base.added+data.size
	}
	k.kept = t
	return nil
}

// follow gives t the name of a tree that says the same.
func (t *tree) follow(as *tree) { t.chain, t.full, t.added = as.chain, as.full, as.added }

// likeLast reports whether the newest tree on record is what t would be kept
// as, upon base. Then base gets its name.
func (k *Keeper) likeLast(base, t *tree) bool {
	c, err := k.readChain(k.o.Tree)
	if err != nil || c.head != base.name() || len(c.blobs) != 1 {
		return false
	}
	d := openTree(c.blobs[0])
	edits := slices.Collect(d.edits)
	if d.err != nil || d.head.partial != t.partial || !slices.Equal(d.head.roots, t.roots) {
		return false
	}
	pairs := compare(base, t)
	same := slices.EqualFunc(edits, pairs, func(e edit, p pair) bool {
		return e.path == p.path() && (e.node == nil) == (p.after == nil) && (e.node == nil || e.node.alike(*p.after))
	})
	if same {
		base.chain, base.added = append(base.chain, k.o.Tree), len(c.blobs[0])
	}
	return same
}

// treeReader reads what makes t out of base, which may be nil, as it is kept. It
// writes one directory at a time, and all again when it goes back to the start.
type treeReader struct {
	base, t *tree
	dirs    []string
	next    int // of dirs; -1 before the head
	part    []byte
	rest    []byte // of part
	size    int    // bytes so far
}

func newTreeReader(base, t *tree) *treeReader {
	r := &treeReader{base: base, t: t, next: -1}
	if base == nil {
		r.base = new(tree)
	}
	r.dirs = differing(r.base, t)
	return r
}

func (r *treeReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.next == len(r.dirs) {
			return 0, io.EOF
		}
		b := r.part[:0]
		if r.next < 0 {
			b = append(b, treeMagic...)
			b = appendString(b, r.base.name())
			b = binary.AppendVarint(b, r.t.at)
			b = append(b, flag(r.t.partial))
			b = binary.AppendUvarint(b, uint64(len(r.t.roots)))
			for _, root := range r.t.roots {
				b = appendString(b, root)
			}
		} else {
			dir := r.dirs[r.next]
			for _, p := range compareFolders(dir, r.base.folders[dir], r.t.folders[dir]) {
				b = appendString(b, p.path())
				b = appendNode(b, p.after)
			}
		}
		r.next++
		r.part, r.rest = b, b
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	r.size += n
	return n, nil
}

var errNoSeek = errors.New("a tree can only be read from its beginning to its end")

// Seek goes back to the start, or to the end.
func (r *treeReader) Seek(offset int64, whence int) (int64, error) {
	switch {
	case offset == 0 && whence == io.SeekStart:
		r.next, r.rest, r.size = -1, nil, 0
		return 0, nil
	case offset == 0 && whence == io.SeekEnd:
		_, err := io.Copy(io.Discard, struct{ io.Reader }{r})
		return int64(r.size), err
	}
	return 0, errNoSeek
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
)

func (n *node) flags() byte {
	return nodeLost*flag(n.lost) | nodeFresh*flag(n.fresh) | nodeClosed*flag(n.closed)
}

func appendNode(b []byte, n *node) []byte {
	if n == nil {
		return append(b, 0)
	}
	b = append(b, nodeHere|n.flags())
	b = binary.AppendUvarint(b, uint64(n.stamp.mode))
	b = binary.AppendVarint(b, n.stamp.size)
	b = binary.AppendVarint(b, n.stamp.mtime)
	b = binary.AppendVarint(b, n.stamp.ctime-n.stamp.mtime)
	b = binary.AppendUvarint(b, n.stamp.ino)
	if to, ok := n.link(); ok {
		return appendString(appendHash(b, linkHash), to)
	}
	return appendString(appendHash(b, n.hash), "")
}

// How a hash is written: as it is, or as the bytes its digits stand for.
const (
	hashText = iota
	hashOwn
	hashGit
)

func appendHash(b []byte, hash string) []byte {
	digits, git := strings.CutPrefix(hash, gitPrefix)
	raw, err := hex.DecodeString(digits)
	switch {
	case err != nil || hash == "" || hex.EncodeToString(raw) != digits:
		return appendString(append(b, hashText), hash)
	case git:
		b = append(b, hashGit)
	default:
		b = append(b, hashOwn)
	}
	return appendString(b, string(raw))
}

func (p *treeParser) hash() string {
	how, s := p.byte(), p.string()
	switch how {
	case hashOwn:
		return hex.EncodeToString([]byte(s))
	case hashGit:
		return gitPrefix + hex.EncodeToString([]byte(s))
	}
	return s
}

// loadTree reads the tree of that name.
func (k *Keeper) loadTree(ctx context.Context, name string) (*tree, error) {
	c, err := k.readChain(name)
	if err != nil {
		return nil, err
	}
	base := &tree{folders: make(map[string]*folder)}
	if c.head != "" {
		if base, err = k.headTree(ctx, c.head); err != nil {
			return nil, err
		}
	}
	return c.on(base)
}

// chain is a tree as it is kept.
type chain struct {
	head  string   // what git knows of it, or empty
	names []string // oldest first
	blobs [][]byte
}

// readChain reads what a tree is made of.
func (k *Keeper) readChain(name string) (c chain, err error) {
	for next := name; next != ""; {
		if isHead(next) {
			c.head = next
			break
		}
		data, err := readAll(k.store, next)
		if err != nil {
			return c, err
		}
		c.blobs, c.names = append(c.blobs, data), append(c.names, next)
		if next, err = baseOf(data); err != nil || len(c.blobs) > maxChain {
			return c, errTree
		}
	}
	slices.Reverse(c.names)
	slices.Reverse(c.blobs)
	return c, nil
}

// on builds the tree upon base.
func (c chain) on(base *tree) (*tree, error) {
	t := base
	for i, data := range c.blobs {
		d := openTree(data)
		was := t
		if t = t.with(d.edits, nil); d.err != nil {
			return nil, d.err
		}
		head := d.head
		t.at, t.partial = head.at, head.partial
		t.addRoots(head.roots)
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

func readAll(s *blob.Store, hash string) ([]byte, error) {
	r, err := s.Open(hash)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, maxTreeBlob))
	if err != nil {
		return nil, fmt.Errorf("read kept state of files: %w", err)
	}
	return data, nil
}

func baseOf(data []byte) (string, error) {
	p := treeParser{rest: data}
	p.magic()
	return p.string(), p.err
}

// treeHead is what a tree's blob says about the whole.
type treeHead struct {
	base    string
	at      int64
	partial bool
	roots   []string
}

// treeDecoder reads what a treeReader wrote.
type treeDecoder struct {
	treeParser
	head treeHead
}

func openTree(data []byte) *treeDecoder {
	d := &treeDecoder{treeParser: treeParser{rest: data}}
	d.magic()
	d.head = treeHead{base: d.string(), at: d.varint(), partial: d.byte() != 0}
	for range min(d.uvarint(), maxRoots) {
		d.head.roots = append(d.head.roots, d.string())
		if r := d.head.roots[len(d.head.roots)-1]; d.err == nil && r != "." && !isName(r) {
			d.err = errTree
		}
	}
	return d
}

// edits yields what the blob says of nodes. Whether that was all is known when
// it is done, by d.err.
func (d *treeDecoder) edits(yield func(edit) bool) {
	for d.err == nil && len(d.rest) > 0 {
		e := edit{path: d.string()}
		e.node = d.node(path.Base(e.path))
		if d.err == nil && !d.head.holds(e) {
			d.err = errTree
		}
		if d.err != nil || !yield(e) {
			return
		}
	}
}

// holds reports whether an edit is one of a tree that lies in these roots.
func (h treeHead) holds(e edit) bool {
	within := func(root string) bool { return lies(e.path, root) }
	return isName(e.path) && (!path.IsAbs(e.path) || e.node == nil || slices.ContainsFunc(h.roots, within))
}

// isName reports whether a path is one that a file may have in a tree.
func isName(p string) bool {
	return path.Clean(p) == p && p != "." && p != "/" && (path.IsAbs(p) || filepath.IsLocal(p))
}

// treeParser takes a blob apart. After an error all it gives is zero.
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

func (p *treeParser) magic() {
	if string(p.take(uint64(len(treeMagic)))) != treeMagic {
		p.err = errTree
	}
}

func (p *treeParser) byte() byte {
	if b := p.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (p *treeParser) uvarint() uint64 {
	v, n := binary.Uvarint(p.rest)
	if n <= 0 {
		p.err = errTree
		return 0
	}
	p.take(uint64(n))
	return v
}

func (p *treeParser) varint() int64 {
	v, n := binary.Varint(p.rest)
	if n <= 0 {
		p.err = errTree
		return 0
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
	n.stamp.mode = fs.FileMode(p.uvarint())
	n.stamp.size = p.varint()
	n.stamp.mtime = p.varint()
	n.stamp.ctime = n.stamp.mtime + p.varint()
	n.stamp.ino = p.uvarint()
	n.hash = p.hash()
	if to := p.string(); n.hash == linkHash {
		n.hash = leadingTo(to)
	}
	return n
}

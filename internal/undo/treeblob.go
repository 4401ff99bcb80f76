package undo

import (
	"bytes"
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

	"coder/internal/undo/blob"
)

// treeMagic begins the blob of a tree. It is followed by the name of the tree
// this one is built upon (empty: none), when it was looked at, whether that was
// all there is, and the nodes that were put in or taken out.
const treeMagic = "coder tree 1\n"

const (
	maxTreeBlob = 256 << 20
	maxChain    = 200 // blobs of one tree
)

var errTree = errors.New("kept state of files is damaged")

// persist keeps t, in proportion to what is different from the tree that was
// kept before, and gives it a name.
func (k *Keeper) persist(t *tree) error {
	if t.name() != "" {
		return nil
	}
	base := k.kept
	if base != nil && len(compare(base, t)) == 0 {
		t.chain, t.full, t.added = base.chain, base.full, base.added
		return nil
	}
	if base != nil && (base.added > base.full/2 || len(base.chain) >= maxChain) {
		base = nil
	}
	data := encodeTree(base, t)
	hash, err := k.put(bytes.NewReader(data))
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

// encodeTree writes what makes t out of base, which may be nil.
func encodeTree(base, t *tree) []byte {
	b := append(make([]byte, 0, 1<<12), treeMagic...)
	b = appendString(b, base.name())
	b = binary.AppendVarint(b, t.at)
	b = append(b, flag(t.partial))
	for _, p := range compare(base, t) {
		b = appendString(b, p.path())
		b = appendNode(b, p.after)
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
)

func appendNode(b []byte, n *node) []byte {
	if n == nil {
		return append(b, 0)
	}
	b = append(b, nodeHere|nodeLost*flag(n.lost)|nodeFresh*flag(n.fresh))
	b = binary.AppendUvarint(b, uint64(n.stamp.mode))
	b = binary.AppendVarint(b, n.stamp.size)
	b = binary.AppendVarint(b, n.stamp.mtime)
	b = binary.AppendVarint(b, n.stamp.ctime-n.stamp.mtime)
	b = binary.AppendUvarint(b, n.stamp.ino)
	b = appendHash(b, n.hash)
	return appendString(b, n.link)
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
func loadTree(s *blob.Store, name string) (*tree, error) {
	var blobs [][]byte // newest first
	var chain []string
	for next := name; next != ""; {
		data, err := readAll(s, next)
		if err != nil {
			return nil, err
		}
		blobs, chain = append(blobs, data), append(chain, next)
		if next, err = baseOf(data); err != nil || len(chain) > maxChain {
			return nil, errTree
		}
	}
	t := &tree{folders: make(map[string]*folder)}
	for i, data := range slices.Backward(blobs) {
		edits, head, err := decodeTree(data)
		if err != nil {
			return nil, err
		}
		t = t.with(edits)
		t.at, t.partial = head.at, head.partial
		t.full = len(blobs[len(blobs)-1])
		if i != len(blobs)-1 {
			t.added += len(data)
		}
	}
	slices.Reverse(chain)
	t.chain = chain
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
}

// decodeTree reads what encodeTree wrote.
func decodeTree(data []byte) ([]edit, treeHead, error) {
	p := treeParser{rest: data}
	p.magic()
	h := treeHead{base: p.string(), at: p.varint(), partial: p.byte() != 0}
	var edits []edit
	for p.err == nil && len(p.rest) > 0 {
		e := edit{path: p.string()}
		e.node = p.node(path.Base(e.path))
		if p.err == nil && (!filepath.IsLocal(e.path) || path.Clean(e.path) != e.path || e.path == ".") {
			p.err = errTree
		}
		edits = append(edits, e)
	}
	return edits, h, p.err
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
	n := &node{name: name, lost: bits&nodeLost != 0, fresh: bits&nodeFresh != 0}
	n.stamp.mode = fs.FileMode(p.uvarint())
	n.stamp.size = p.varint()
	n.stamp.mtime = p.varint()
	n.stamp.ctime = n.stamp.mtime + p.varint()
	n.stamp.ino = p.uvarint()
	n.hash = p.hash()
	n.link = p.string()
	return n
}

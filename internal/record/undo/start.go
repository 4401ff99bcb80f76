package undo

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"

	"coder/internal/core/event"
	"coder/internal/core/secret"
	"coder/internal/record/undo/blob"
)

// StateOf makes the state of the repository, given the small files that are ignored. What
// HEAD has of the objects in it, committed lists.
type StateOf func(ignored []event.FileState, committed func() map[string]bool) ([]byte, error)

// gathering collects contents for a start, by several goroutines. A nil map forgets them.
type gathering struct {
	mu       sync.Mutex
	contents map[string][]byte
}

// put names a content, and reports whether undo counts on it already.
func (g *gathering) put(s *Store, content io.ReadSeeker) (hash string, lasts bool, err error) {
	if hash, err = blob.Digest(content); err != nil || s.Has(hash) {
		return hash, true, err
	}
	if g.contents == nil {
		return hash, false, nil
	}
	if _, err = content.Seek(0, io.SeekStart); err != nil {
		return "", false, err
	}
	text, err := io.ReadAll(content)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.contents[hash] = text
	return hash, false, err
}

// Look looks at all files ahead of [Keeper.Start], and saves nothing. Where many files have
// to be read, that is left to Start.
func (k *Keeper) Look(ctx context.Context) {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.release()
	k.recall()
	k.light = &gathering{}
	defer func() { k.light = nil }()
	if _, err := k.scan(ctx); err != nil {
		k.tree = nil // Start says why
	}
}

// Start saves what a session begins with under a name that [StartName] made: the state of all files, and the
// one that state makes. That may hold secrets. If it is to last it outlives a crash of the
// machine.
//
// Undo does not count on a start: what is to be undone one day is saved again before the
// first call that may overwrite it. Only where many files have to be read they are saved
// for undo at once, since to read them twice would cost more.
func (k *Keeper) Start(ctx context.Context, name string, last bool, state StateOf) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.release()
	if k.store.starts == nil {
		return errNoPrivate
	}
	k.recall()
	g := &gathering{contents: make(map[string][]byte)}
	k.light = g
	defer func() { k.light = nil }()
	t, err := k.scan(ctx)
	if err == nil {
		err = k.fault
	}
	if err != nil {
		return err
	}
	s := &start{contents: g.contents}
	switch {
	case k.light == nil:
		if s.base, err = k.keepTree(ctx); err == nil {
			err = k.commit()
		}
	case t.name() != "":
		s.base = t.name()
	default:
		s.tree = encodeTree(nil, t)
	}
	if err != nil {
		return err
	}
	k.light = g
	if s.state, err = state(k.saveIgnored(ctx), func() map[string]bool { return k.committed(ctx) }); err == nil {
		err = k.store.saveStart(name, s, last)
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, syscall.ENOSPC) { // a full disk is reported by the next record
		k.warn(fmt.Sprintf("the repository's state was not saved, so the session may run differently again: %v", err))
	}
	return err
}

// Bounds of the ignored files that are saved: what a program built or downloaded is not.
const (
	maxIgnored      = 500
	maxIgnoredFile  = 64 << 10
	maxIgnoredBytes = 4 << 20
	maxIgnoredIn    = 50 // files of a folder that is ignored as a whole; a larger one is left out
)

// saveIgnored saves small files that git ignores, but for those that may hold secrets.
func (k *Keeper) saveIgnored(ctx context.Context) (list []event.FileState) {
	size := int64(0)
	slices.Sort(k.ignored)
	for _, name := range k.ignored {
		if base := path.Base(name); base == ".git" || base == ".coder" {
			continue
		}
		var in []string
		for e := range k.ws.Walk(ctx, name, 0) {
			if e.Err == nil && !e.IsDir() {
				in = append(in, e.Path)
			}
			if len(in) > maxIgnoredIn {
				break
			}
		}
		if len(in) > maxIgnoredIn {
			continue
		}
		if len(in) == 0 {
			in = []string{name}
		}
		for _, file := range in {
			info, err := k.ws.Lstat(file)
			if err != nil || !info.Mode().IsRegular() || info.Size() > maxIgnoredFile || size+info.Size() > maxIgnoredBytes || len(list) == maxIgnored || secret.Is(file) {
				continue
			}
			if s, err := k.save(file); err == nil && s.Hash != "" && !s.Lost {
				list, size = append(list, s), size+info.Size()
			}
		}
	}
	return list
}

// State is the state of a repository that was saved.
func (k *Keeper) State(name string) ([]byte, error) {
	if isStart(name) {
		s, err := k.store.start(name)
		if err != nil {
			return nil, err
		}
		return s.state, nil
	}
	in, err := k.store.Open(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return io.ReadAll(io.LimitReader(in, maxTreeBlob))
}

// startPrefix begins the names of starts.
const startPrefix = "start:"

// StartName is the name of a start that is to be saved, from an id that no other has.
func StartName(id string) string { return startPrefix + id }

func isStart(name string) bool { return strings.HasPrefix(name, startPrefix) }

// start is what a session begins with, as it is saved: one text with the state of all files
// (or the name under which undo has it), the state of the repository, and contents that
// neither undo nor git has.
type start struct {
	base     string
	tree     []byte
	state    []byte
	contents map[string][]byte // by their hash
}

// startMagic begins the text of a start. It is followed by its parts, each with its length.
const startMagic = "coder start 1\n"

func (s *start) encode() []byte {
	size := len(s.tree) + len(s.state)
	for _, text := range s.contents {
		size += len(text) + binary.MaxVarintLen64
	}
	b := appendString(append(make([]byte, 0, size+4<<10), startMagic...), s.base)
	for _, part := range [][]byte{s.tree, s.state} {
		b = append(binary.AppendUvarint(b, uint64(len(part))), part...)
	}
	for _, hash := range slices.Sorted(maps.Keys(s.contents)) {
		b = append(binary.AppendUvarint(b, uint64(len(s.contents[hash]))), s.contents[hash]...)
	}
	return b
}

func decodeStart(text []byte) (*start, error) {
	p := treeParser{rest: text}
	if string(p.take(uint64(len(startMagic)))) != startMagic {
		return nil, errTree
	}
	s := &start{base: p.string(), contents: make(map[string][]byte)}
	s.tree, s.state = p.take(p.uvarint()), p.take(p.uvarint())
	for p.err == nil && len(p.rest) > 0 {
		content := p.take(p.uvarint())
		sum := sha256.Sum256(content)
		s.contents[hex.EncodeToString(sum[:])] = content
	}
	return s, p.err
}

// startFile is the file of a start.
func startFile(name string) (string, error) {
	id := strings.TrimPrefix(name, startPrefix)
	if id == "" || len(id) > maxStartID || strings.ContainsFunc(id, func(r rune) bool { return !isPlain(r) }) {
		return "", fs.ErrNotExist
	}
	return id + ".start", nil
}

const maxStartID = 100

func isPlain(r rune) bool {
	return r == '_' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}

func (s *Store) saveStart(name string, saved *start, last bool) error {
	file, err := startFile(name)
	if err != nil {
		return err
	}
	return s.starts.Save(file, saved.encode(), last)
}

// start reads a start, and keeps it at hand for its contents.
func (s *Store) start(name string) (*start, error) {
	file, err := startFile(name)
	if err != nil || s.starts == nil {
		return nil, fs.ErrNotExist
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.read[name]; known != nil {
		return known, nil
	}
	text, err := s.starts.Read(file, maxTreeBlob)
	if err != nil {
		return nil, err
	}
	saved, err := decodeStart(text)
	if err != nil {
		return nil, errors.Join(ErrDamaged, err)
	}
	if s.read == nil {
		s.read = make(map[string]*start)
	}
	s.read[name] = saved
	return saved, nil
}

// ErrDamaged is the error of reading something that is not what was saved.
var ErrDamaged = blob.ErrDamaged

// inStarts finds a content in the starts that were read.
func (s *Store) inStarts(hash string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, saved := range s.read {
		if text, ok := saved.contents[hash]; ok {
			return text, true
		}
	}
	return nil, false
}

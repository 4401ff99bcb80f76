package undo

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"coder/internal/core/event"
	"coder/internal/core/secret"
	"coder/internal/record/gitstate"
	"coder/internal/record/undo/blob"
)

// StateOf returns the repository's state, given the small ignored files. committed returns the objects
// that HEAD has.
type StateOf func(ignored []event.FileState, committed func() map[string]bool) ([]byte, error)

// gathering collects contents for a start; it is safe for concurrent use.
type gathering struct {
	ahead   bool // no caller waits for the start yet
	looked  bool // it has the contents from a look ahead
	follows bool // watch for changes from now on

	kept []*blob.Store // undo's stores, which may have the same contents

	mu       sync.Mutex
	contents map[string][]byte // by their hash
}

// gather starts a collection. Watching for changes costs little while a session runs, but delays its end
// by some 10 ms in the kernel. So the first call that may write starts the watch, unless there are so
// many files that a second scan would take longer.
func (k *Keeper) gather() *gathering {
	size := int64(0)
	for _, r := range k.repos {
		if info, err := os.Lstat(filepath.Join(r.git, "index")); err == nil {
			size += info.Size()
		}
	}
	return &gathering{follows: size > followIndex, kept: k.store.made(), contents: make(map[string][]byte)}
}

// followIndex is the size of an index with some 1,200 files.
const followIndex = 128 << 10

// has reports whether a content was gathered.
func (g *gathering) has(hash string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, ok := g.contents[hash]
	return ok
}

// put hashes a content, and reports whether undo already has it.
func (g *gathering) put(content io.ReadSeeker) (hash string, lasts bool, err error) {
	hash, err = blob.Digest(content)
	if err != nil || slices.ContainsFunc(g.kept, func(s *blob.Store) bool { return s.Has(hash) }) {
		return hash, true, err
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

// Look scans all files before [Keeper.Start], and keeps in memory what Start will save. If many files
// must be read, it leaves that to Start.
func (k *Keeper) Look(ctx context.Context) {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.release()
	k.recall()
	k.light = k.gather()
	k.light.ahead = true
	if _, err := k.scan(ctx); err != nil {
		k.tree = nil // Start reports the error
	} else {
		k.looked = k.light
	}
	k.light = nil
}

// Start saves a session's initial state under a name from [StartName]: the state of all files, and the
// repository's from state. It may contain secrets. If last is set, it survives a crash of the machine.
//
// Undo does not rely on a start: content to undo later is saved again before the first call that may
// overwrite it. Only if many files must be read are they saved for undo immediately, since reading them
// twice would cost more.
func (k *Keeper) Start(ctx context.Context, name string, last bool, state StateOf) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.release()
	if k.store.starts == nil {
		return errNoPrivate
	}
	k.recall()
	g := cmp.Or(k.looked, k.gather())
	g.ahead, g.looked, g.follows, k.looked = false, g == k.looked, g.follows || last, nil
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
	default:
		s.base = t.name() // there may be none
	}
	if err != nil {
		return err
	}
	k.light = g
	if s.state, err = state(k.saveIgnored(ctx), func() map[string]bool { return k.committed(ctx) }); err == nil {
		if s.base == "" {
			s.tree = k.encodeStart(t, gitstate.Index(s.state))
		}
		err = k.store.saveStart(name, s, last)
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, syscall.ENOSPC) { // the next record reports a full disk
		k.warn(fmt.Sprintf("the repository's state was not saved, so the session may run differently again: %v", err))
	}
	return err
}

// Limits on the ignored files to save: build results and downloads are left out.
const (
	maxIgnored      = 500
	maxIgnoredFile  = 64 << 10
	maxIgnoredBytes = 4 << 20
	maxIgnoredIn    = 50 // files of an entirely ignored folder; larger ones are skipped
)

// saveIgnored saves small ignored files, except those that may hold secrets.
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

// State returns the saved state of a repository.
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

// StartName returns the name for a new start, from a unique id.
func StartName(id string) string { return startPrefix + id }

func isStart(name string) bool { return strings.HasPrefix(name, startPrefix) }

// start is the saved initial state of a session: one text with the state of all files (or undo's name
// for it), the state of the repository, and contents that neither undo nor git has.
type start struct {
	base     string
	tree     []byte
	state    []byte
	contents map[string][]byte // by their hash
}

// startMagic begins the text of a start. The parts follow, each with its length.
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

// startFile returns the file of a start.
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

// start reads a start and caches it for its contents.
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

// ErrDamaged reports data that differs from what was saved.
var ErrDamaged = blob.ErrDamaged

// inStarts searches the loaded starts for a content.
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

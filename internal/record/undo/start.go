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

// RepoStateFunc returns the repository's state, given the small ignored files. committed returns the objects
// that HEAD has.
type RepoStateFunc func(ignored []event.FileState, committed func() map[string]bool) ([]byte, error)

// gatherer collects contents for a start; it is safe for concurrent use.
type gatherer struct {
	isAhead        bool // no caller waits for the start yet
	hasLooked      bool // it has the contents from a look ahead
	watchesChanges bool // watch for changes from now on

	stores []*blob.Store // undo's stores, which may have the same contents

	mu       sync.Mutex
	contents map[string][]byte // by their hash
}

// newGatherer starts a collection. Watching for changes costs little while a session runs, but delays its end
// by some 10 ms in the kernel. So the first call that may write starts the watch, unless there are so
// many files that a second scan would take longer.
func (k *Keeper) newGatherer() *gatherer {
	size := int64(0)
	for _, r := range k.repos {
		if info, err := os.Lstat(filepath.Join(r.git, "index")); err == nil {
			size += info.Size()
		}
	}
	return &gatherer{watchesChanges: size > minWatchIndex, stores: k.store.existingParts(),
		contents: make(map[string][]byte)}
}

// minWatchIndex is the size of an index with some 1,200 files.
const minWatchIndex = 128 << 10

// has reports whether a content was gathered.
func (g *gatherer) has(hash string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, ok := g.contents[hash]
	return ok
}

// addContent hashes a content, and reports whether undo already has it.
func (g *gatherer) addContent(content io.ReadSeeker) (hash string, lasts bool, err error) {
	hash, err = blob.Digest(content)
	if err != nil || slices.ContainsFunc(g.stores, func(s *blob.Store) bool { return s.Has(hash) }) {
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

// ScanAhead scans all files before [Keeper.SaveStart], and keeps in memory what Start will save. If many files
// must be read, it leaves that to Start.
func (k *Keeper) ScanAhead(ctx context.Context) {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.releaseRepos()
	k.loadLastTree()
	k.gatherer = k.newGatherer()
	k.gatherer.isAhead = true
	if _, err := k.scan(ctx); err != nil {
		k.tree = nil // Start reports the error
	} else {
		k.aheadContents = k.gatherer
	}
	k.gatherer = nil
}

// SaveStart saves a session's initial state under a name from [StartName]: the state of all files, and the
// repository's from state. It may contain secrets. If last is set, it survives a crash of the machine.
//
// Undo does not rely on a start: content to undo later is saved again before the first call that may
// overwrite it. Only if many files must be read are they saved for undo immediately, since reading them
// twice would cost more.
func (k *Keeper) SaveStart(ctx context.Context, name string, last bool, state RepoStateFunc) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.releaseRepos()
	if k.store.starts == nil {
		return errNoPrivate
	}
	k.loadLastTree()
	g := cmp.Or(k.aheadContents, k.newGatherer())
	g.isAhead, g.hasLooked, g.watchesChanges, k.aheadContents = false, g == k.aheadContents, g.watchesChanges || last, nil
	k.gatherer = g
	defer func() { k.gatherer = nil }()
	t, err := k.scan(ctx)
	if err == nil {
		err = k.storeErr
	}
	if err != nil {
		return err
	}
	s := &sessionStart{contents: g.contents}
	switch {
	case k.gatherer == nil:
		if s.base, err = k.ensureTree(ctx); err == nil {
			err = k.commit()
		}
	default:
		s.base = t.name() // there may be none
	}
	if err != nil {
		return err
	}
	k.gatherer = g
	if s.state, err = state(k.saveIgnored(ctx), func() map[string]bool { return k.committedObjects(ctx) }); err == nil {
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
	maxIgnored          = 500
	maxIgnoredFile      = 64 << 10
	maxIgnoredBytes     = 4 << 20
	maxIgnoredPerFolder = 50 // files of an entirely ignored folder; larger ones are skipped
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
			if len(in) > maxIgnoredPerFolder {
				break
			}
		}
		if len(in) > maxIgnoredPerFolder {
			continue
		}
		if len(in) == 0 {
			in = []string{name}
		}
		for _, file := range in {
			info, err := k.ws.Lstat(file)
			if err != nil || !info.Mode().IsRegular() || info.Size() > maxIgnoredFile || size+info.Size() > maxIgnoredBytes ||
				len(list) == maxIgnored || secret.IsSecretFile(file) {
				continue
			}
			if s, err := k.saveFile(file); err == nil && s.Hash != "" && !s.ContentLost {
				list, size = append(list, s), size+info.Size()
			}
		}
	}
	return list
}

// LoadState returns the saved state of a repository.
func (k *Keeper) LoadState(name string) ([]byte, error) {
	if isStart(name) {
		s, err := k.store.loadStart(name)
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

// sessionStart is the saved initial state of a session: one text with the state of all files (or undo's name
// for it), the state of the repository, and contents that neither undo nor git has.
type sessionStart struct {
	base     string
	tree     []byte
	state    []byte
	contents map[string][]byte // by their hash
}

// startMagic begins the text of a start. The parts follow, each with its length.
const startMagic = "coder start 1\n"

func (s *sessionStart) encode() []byte {
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

func decodeStart(text []byte) (*sessionStart, error) {
	p := treeParser{rest: text}
	if string(p.readBytes(uint64(len(startMagic)))) != startMagic {
		return nil, errTree
	}
	s := &sessionStart{base: p.readString(), contents: make(map[string][]byte)}
	s.tree, s.state = p.readBytes(p.readUvarint()), p.readBytes(p.readUvarint())
	for p.err == nil && len(p.rest) > 0 {
		content := p.readBytes(p.readUvarint())
		sum := sha256.Sum256(content)
		s.contents[hex.EncodeToString(sum[:])] = content
	}
	return s, p.err
}

// startFile returns the file of a start.
func startFile(name string) (string, error) {
	id := strings.TrimPrefix(name, startPrefix)
	if id == "" || len(id) > maxStartID || strings.ContainsFunc(id, func(r rune) bool { return !isPlainRune(r) }) {
		return "", fs.ErrNotExist
	}
	return id + ".start", nil
}

const maxStartID = 100

func isPlainRune(r rune) bool {
	return r == '_' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}

func (s *Store) saveStart(name string, saved *sessionStart, last bool) error {
	file, err := startFile(name)
	if err != nil {
		return err
	}
	return s.starts.Save(file, saved.encode(), last)
}

// loadStart reads a start and caches it for its contents.
func (s *Store) loadStart(name string) (*sessionStart, error) {
	file, err := startFile(name)
	if err != nil || s.starts == nil {
		return nil, fs.ErrNotExist
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.startCache[name]; known != nil {
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
	if s.startCache == nil {
		s.startCache = make(map[string]*sessionStart)
	}
	s.startCache[name] = saved
	return saved, nil
}

// ErrDamaged reports data that differs from what was saved.
var ErrDamaged = blob.ErrDamaged

// findInStarts searches the loaded starts for a content.
func (s *Store) findInStarts(hash string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, saved := range s.startCache {
		if text, ok := saved.contents[hash]; ok {
			return text, true
		}
	}
	return nil, false
}

package undo

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"coder/internal/core/secret"
	"coder/internal/host/disk"
	"coder/internal/record/undo/blob"
)

// StoreOptions configure a Store. The zero value is valid.
type StoreOptions struct {
	Quota    int64                    // bytes on disk, for each of the two parts
	NoSync   bool                     // do not sync to disk
	Now      func() time.Time         // dates the last use of a content
	WrapDisk func(*os.Root) disk.Disk // wraps the directory for writes; may be nil
	// Private is the folder for contents that may hold secrets, outside of what commands see. Without it
	// such contents are not saved.
	Private string
	// IsSecret, if not nil, reports by name whether a file may hold secrets, in addition to the usual ones.
	IsSecret func(name string) bool
}

// Store saves file contents. Contents that may hold secrets, judging by the file's name and content, are
// in a separate folder.
type Store struct {
	shared, private *blob.Store
	// starts holds the initial states of sessions, one file each. Undo does not rely on it. It may hold
	// secrets; nil without a private folder.
	starts *blob.Folder
	o      StoreOptions

	mu         sync.Mutex               // guards the fields below
	relocated  []string                 // contents of private that may also be in shared
	startCache map[string]*sessionStart // starts already read, by name
}

// errNoPrivate reports that a content may hold secrets and there is no private folder.
var errNoPrivate = errors.New("no place outside the workspace for files with secrets")

// maxStarts limits the bytes of all starts.
const maxStarts = 128 << 20

// OpenStore returns the store in dir. It creates nothing: the first content creates the directory.
func OpenStore(dir string, o StoreOptions) *Store {
	each := blob.Options{Quota: o.Quota, NoSync: o.NoSync, Now: o.Now, WrapDisk: o.WrapDisk}
	s := &Store{shared: blob.Open(dir, each), o: o}
	if o.Private != "" {
		s.private = blob.Open(o.Private, each)
		each.Quota = min(cmp.Or(o.Quota, maxStarts), maxStarts)
		s.starts = blob.OpenFolder(filepath.Join(o.Private, "starts"), each)
	}
	return s
}

// Put saves the content of a file, as [blob.Store.Put] does.
func (s *Store) Put(name string, content io.ReadSeeker) (hash string, err error) {
	if !s.isSecret(name, content) {
		return s.shared.Put(content)
	}
	if s.private == nil {
		return "", errNoPrivate
	}
	switch hash, err = s.private.Put(content); {
	case err == nil:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.relocated = append(s.relocated, hash)
	case !errors.Is(err, blob.ErrFull) && !errors.Is(err, errUnreadable):
		err = errors.Join(errNoPrivate, err)
	}
	return hash, err
}

// treeFile stands for a tree's file name, whose content is only names.
const treeFile = "\x00tree"

// isSecret reports whether a content may hold secrets. It only examines the start of a long one.
func (s *Store) isSecret(name string, content io.ReadSeeker) bool {
	switch {
	case name == treeFile:
		return false
	case secret.IsSecretFile(name), s.o.IsSecret != nil && s.o.IsSecret(name):
		return true
	}
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return false
	}
	head, err := io.ReadAll(io.LimitReader(content, smallFile))
	return err == nil && secret.ShapeConcealer().Text(string(head)) != string(head)
}

// eachPart calls do for both parts.
func (s *Store) eachPart(do func(*blob.Store)) {
	do(s.shared)
	if s.private != nil {
		do(s.private)
	}
}

// Has reports whether a content is saved.
func (s *Store) Has(hash string) bool {
	return s.shared.Has(hash) || s.private != nil && s.private.Has(hash)
}

// existingParts returns the parts of the store that have contents.
func (s *Store) existingParts() (parts []*blob.Store) {
	s.eachPart(func(b *blob.Store) {
		if b.Exists() {
			parts = append(parts, b)
		}
	})
	return parts
}

// MarkUsed is [blob.Store.Use].
func (s *Store) MarkUsed(hash string) bool {
	return s.shared.MarkUsed(hash) || s.private != nil && s.private.MarkUsed(hash)
}

// Open is [blob.Store.Open].
func (s *Store) Open(hash string) (io.ReadCloser, error) {
	f, err := s.shared.Open(hash)
	if err != nil && s.private != nil && s.private.Has(hash) {
		return s.private.Open(hash)
	}
	if err != nil && s.starts != nil {
		if text, ok := s.findInStarts(hash); ok {
			return io.NopCloser(bytes.NewReader(text)), nil
		}
		if old, missing := s.starts.Open(hash); missing == nil {
			return old, nil
		}
	}
	return f, err
}

// Prune is [blob.Store.Prune].
func (s *Store) Prune(need int64, pinned func(hash string) bool) {
	s.eachPart(func(b *blob.Store) { b.Prune(need, pinned) })
}

// Commit makes everything put so far durable. It also drops contents that may hold secrets from the
// shared part, if they were saved there before.
func (s *Store) Commit() (err error) {
	s.eachPart(func(b *blob.Store) { err = errors.Join(err, b.Commit()) })
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, hash := range s.relocated {
		if err == nil {
			s.shared.Drop(hash)
		}
	}
	s.relocated = nil
	return err
}

// Close closes the directories.
func (s *Store) Close() (err error) {
	s.eachPart(func(b *blob.Store) { err = errors.Join(err, b.Close()) })
	if s.starts != nil {
		err = errors.Join(err, s.starts.Close())
	}
	return err
}

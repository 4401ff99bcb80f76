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

// StoreOptions say how a Store behaves. The zero value is fine.
type StoreOptions struct {
	Quota  int64                    // bytes on the disk, of each of both parts
	NoSync bool                     // do not wait for the disk
	Now    func() time.Time         // tells when a content was last of use
	On     func(*os.Root) disk.Disk // what is written to; may be nil
	// Private is the folder for contents that may hold secrets, outside of what
	// commands see. Without one such contents are not kept.
	Private string
	// IsSecret, which may be nil, reports by its name whether a file may hold
	// secrets, beside those that usually do.
	IsSecret func(name string) bool
}

// Store keeps the contents of files: those that may hold secrets in a folder of
// their own, by the names of the files and by what they hold.
type Store struct {
	shared, private *blob.Store
	// starts holds what sessions begin with, a file for each. No undo counts on it. It may
	// hold secrets; nil without a private folder.
	starts *blob.Folder
	o      StoreOptions

	mu    sync.Mutex        // guards the fields below
	moved []string          // contents of private that may lie in shared, too
	read  map[string]*start // the starts that were read, by name
}

// errNoPrivate is the error of a content that may hold secrets and has no place.
var errNoPrivate = errors.New("no place outside the workspace for files that may hold secrets")

// maxStarts is how many bytes are kept of what sessions begin with.
const maxStarts = 128 << 20

// OpenStore returns the store in dir. It touches nothing: the directory is made
// when there is something to put into it.
func OpenStore(dir string, o StoreOptions) *Store {
	each := blob.Options{Quota: o.Quota, NoSync: o.NoSync, Now: o.Now, On: o.On}
	s := &Store{shared: blob.Open(dir, each), o: o}
	if o.Private != "" {
		s.private = blob.Open(o.Private, each)
		each.Quota = min(cmp.Or(o.Quota, maxStarts), maxStarts)
		s.starts = blob.OpenFolder(filepath.Join(o.Private, "starts"), each)
	}
	return s
}

// Put keeps the content of a file, as [blob.Store.Put] does.
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
		s.moved = append(s.moved, hash)
	case !errors.Is(err, blob.ErrFull) && !errors.Is(err, errUnreadable):
		err = errors.Join(errNoPrivate, err)
	}
	return hash, err
}

// treeFile stands for the name of a tree, which holds names alone.
const treeFile = "\x00tree"

// isSecret reports whether a content may hold secrets. Of a long one only the
// beginning is looked at.
func (s *Store) isSecret(name string, content io.ReadSeeker) bool {
	switch {
	case name == treeFile:
		return false
	case secret.Is(name), s.o.IsSecret != nil && s.o.IsSecret(name):
		return true
	}
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return false
	}
	head, err := io.ReadAll(io.LimitReader(content, small))
	return err == nil && secret.Shapes().Text(string(head)) != string(head)
}

// each calls do for both stores.
func (s *Store) each(do func(*blob.Store)) {
	do(s.shared)
	if s.private != nil {
		do(s.private)
	}
}

// Has reports whether a content is kept.
func (s *Store) Has(hash string) bool {
	return s.shared.Has(hash) || s.private != nil && s.private.Has(hash)
}

// Use is [blob.Store.Use].
func (s *Store) Use(hash string) bool {
	return s.shared.Use(hash) || s.private != nil && s.private.Use(hash)
}

// Open is [blob.Store.Open].
func (s *Store) Open(hash string) (io.ReadCloser, error) {
	f, err := s.shared.Open(hash)
	if err != nil && s.private != nil && s.private.Has(hash) {
		return s.private.Open(hash)
	}
	if err != nil && s.starts != nil {
		if text, ok := s.inStarts(hash); ok {
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
	s.each(func(b *blob.Store) { b.Prune(need, pinned) })
}

// Commit makes everything put in so far last. Contents that may hold secrets and
// were kept with the others before are theirs no more.
func (s *Store) Commit() (err error) {
	s.each(func(b *blob.Store) { err = errors.Join(err, b.Commit()) })
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, hash := range s.moved {
		if err == nil {
			s.shared.Drop(hash)
		}
	}
	s.moved = nil
	return err
}

// Close lets the directories go.
func (s *Store) Close() (err error) {
	s.each(func(b *blob.Store) { err = errors.Join(err, b.Close()) })
	if s.starts != nil {
		err = errors.Join(err, s.starts.Close())
	}
	return err
}

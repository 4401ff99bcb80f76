// Package workspace provides the directory tree that file tools may access, and the trees that the user
// added to it.
//
// It guarantees for every path, whatever its content and whoever replaces directories by links
// meanwhile:
//
//  1. Nothing outside the root is read, written, created or listed. Every
//     operation uses a handle on the root, never a path that
//     was checked earlier.
//  2. Links that stay inside work, including those with an absolute target;
//     links that lead out are refused with [ErrOutside].
//  3. A written file has its old content or its new content, never a
//     part of either, and keeps its mode, its owner and its extended
//     attributes as far as permitted. Writing replaces the file by a new
//     one, so hard links to the old one keep the old content.
//
// Names are slash-separated and relative to the root; those in an added tree are absolute.
// [Workspace.Resolve] returns the name for a path from a model.
package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"coder/internal/host/repofile"

	"coder/internal/core/message"
	"coder/internal/host/disk"
)

// ErrOutside reports a path that leads out of the workspace.
var ErrOutside = errors.New("path outside workspace")

const (
	maxPath      = 4096 // maximum length of a path in bytes
	maxShownName = 256  // bytes of a refused name shown in its error
)

// Workspace is a directory tree. It is safe for concurrent use.
type Workspace struct {
	root      *os.Root
	dir       string // absolute, as given by the user
	real      string // dir with all links resolved
	escapeErr error  // os.Root's error for a path that leaves it
	prefix    string // what stands before its names, "" in the main tree

	added []*Workspace // added trees, which have none themselves
	main  *Workspace   // for an added tree, the workspace it was added to
	watch watcher      // shared by all trees; see Follow

	topDir       atomic.Pointer[os.File] // the open root, for uses of its descriptor
	clock        func() FileTime         // replaces the file system's clock in tests
	dirSyncer    *disk.DirSyncer         // folders with changed names; see SyncWith
	scratch      scratchDir              // for temporary files; see UseScratchDir
	gitSettings  GitSettings
	outerOnce    sync.Once // guards outer
	outer        outerRules
	tracked      trackedList
	repositories sync.Map // directories listed by a survey → whether they were the top of a repository then
}

// SyncWith adds to f every folder in which files are placed, moved or removed from now on, to be synced
// together.
func (w *Workspace) SyncWith(f *disk.DirSyncer) {
	w.dirSyncer = f
	for _, a := range w.added {
		a.dirSyncer = f
	}
}

// Open opens the workspace at dir with the added trees. Relative paths belong to dir; absolute ones may
// be in any of the trees. A link cannot lead from one tree into another.
func Open(dir string, added ...string) (*Workspace, error) {
	w, err := openTree(dir)
	if err != nil {
		return nil, err
	}
	for _, d := range added {
		a, err := openTree(d)
		if err != nil {
			w.Close()
			return nil, err
		}
		a.prefix, a.main = a.real, w
		w.added = append(w.added, a)
	}
	return w, nil
}

func openTree(dir string) (*Workspace, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, message.Errorf("open workspace: %w", err)
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return nil, message.Errorf("open workspace: %w", err)
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil, message.Errorf("open workspace: %w", err)
	}
	_, leave := root.Lstat("../x")
	return &Workspace{root: root, dir: abs, real: real, escapeErr: errors.Unwrap(leave)}, nil
}

// Close closes the roots. Later operations fail.
func (w *Workspace) Close() error {
	w.watch.mu.Lock()
	w.watch.stop()
	w.watch.mu.Unlock()
	if s := w.scratch.root.Swap(nil); s != nil {
		s.Close()
	}
	if f := w.topDir.Swap(nil); f != nil {
		f.Close()
	}
	err := w.root.Close()
	for _, a := range w.added {
		err = errors.Join(err, a.Close())
	}
	return err
}

// Root returns the absolute path of the workspace.
func (w *Workspace) Root() string { return w.dir }

// AddedDirs returns the absolute paths of the added trees.
func (w *Workspace) AddedDirs() (dirs []string) {
	for _, a := range w.added {
		dirs = append(dirs, a.dir)
	}
	return dirs
}

// Abs returns the absolute path of a name from [Workspace.Resolve] or [Workspace.Locate], for use by
// other programs.
func (w *Workspace) Abs(name string) string {
	if path.IsAbs(name) {
		return name
	}
	return filepath.Join(w.real, name)
}

// Resolve converts a relative or absolute path into a clean name: relative to the root, or absolute in
// an added tree. It only uses the text of the path; links are followed when the file is used.
func (w *Workspace) Resolve(name string) (string, error) {
	tree, rel, err := w.findTree(name)
	if err != nil {
		return "", err
	}
	return tree.callerName(rel), nil
}

// findTree returns the tree of a path and its name there.
func (w *Workspace) findTree(name string) (tree *Workspace, rel string, err error) {
	switch {
	case name == "":
		return nil, "", errors.New("path is empty")
	case strings.ContainsRune(name, 0):
		return nil, "", message.Errorf("path contains a NUL byte: %s", quoteName(name))
	case len(name) > maxPath:
		return nil, "", message.Errorf("path is too long (%d bytes): %s", len(name), quoteName(name))
	}
	tree, rel = w, filepath.Clean(name)
	if abs, found := rel, false; filepath.IsAbs(abs) {
		rel, found = w.relative(abs)
		for i := 0; !found; i++ {
			if i == len(w.added) {
				return nil, "", outsideError(name)
			}
			tree = w.added[i]
			rel, found = tree.relative(abs)
		}
	}
	if rel == "~" || strings.HasPrefix(rel, "~/") || !filepath.IsLocal(rel) {
		return nil, "", outsideError(name)
	}
	return tree, filepath.ToSlash(rel), nil
}

// callerName returns the name of rel as used by callers.
func (w *Workspace) callerName(rel string) string {
	if w.prefix == "" {
		return rel
	}
	return path.Join(w.prefix, rel)
}

// Locate resolves name and follows its links, so that two names of one file give the same result.
// Missing parts stay as written.
func (w *Workspace) Locate(name string) (string, error) {
	tree, rel, err := w.findTree(name)
	if err == nil {
		rel, err = tree.resolveLinks(rel)
	}
	if err != nil {
		return "", err
	}
	return w.Resolve(tree.callerName(rel)) // trees may be nested
}

// relative makes an absolute path relative, if it is in the workspace.
func (w *Workspace) relative(abs string) (string, bool) {
	for _, dir := range []string{w.dir, w.real} {
		rel, err := filepath.Rel(dir, abs)
		if err == nil && filepath.IsLocal(rel) {
			return rel, true
		}
	}
	return "", false
}

// resolveLinks resolves every link in rel. The operation that uses the result goes through the root handle,
// which refuses links that lead out since.
func (w *Workspace) resolveLinks(rel string) (string, error) {
	at, err := repofile.ResolveLinks(rel, w.root.Readlink, w.relative)
	switch {
	case errors.Is(err, repofile.ErrOutside):
		return "", outsideError(w.callerName(rel))
	case err != nil:
		return "", message.Errorf("too many links: %s", quoteName(w.callerName(rel)))
	}
	return at, nil
}

// outsideError names the path in the error in a form that is safe for a terminal.
func outsideError(name string) error { return message.Errorf("%w: %s", ErrOutside, quoteName(name)) }

// explainError rewrites an operation's error on rel without internal paths.
func (w *Workspace) explainError(rel string, err error) error {
	rel = w.callerName(rel)
	switch {
	case err == nil, errors.Is(err, ErrNotRegular):
		return err
	case errors.Is(err, w.escapeErr):
		return outsideError(rel)
	case errors.Is(err, syscall.ELOOP):
		return message.Errorf("too many links: %s", quoteName(rel))
	}
	return message.Errorf("%s: %w", quoteName(rel), plainError(err))
}

// plainError removes the operation and path that package os adds to an error.
func plainError(err error) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return p.Err
	}
	if l := (*os.LinkError)(nil); errors.As(err, &l) {
		return l.Err
	}
	return err
}

// quoteName returns an ordinary name unchanged and any other one escaped.
func quoteName(name string) string {
	if len(name) > maxShownName {
		name = strings.ToValidUTF8(name[:maxShownName], "") + "…"
	}
	if q := strconv.Quote(name); q != `"`+name+`"` || strings.TrimSpace(name) != name {
		return q
	}
	return name
}

// Package workspace is the directory tree the file tools may touch, and the
// further ones the user added to it.
//
// Three promises hold for every path, whatever it says and whoever swaps
// directories for links while we work:
//
//  1. Nothing outside the root is read, written, created or listed. Every
//     operation goes through a handle on the root, never through a path that
//     was checked earlier.
//  2. Links that stay inside work, also those written with an absolute target;
//     links that leave are refused with [ErrOutside].
//  3. A file that is written has its old content or its new content, never a
//     part of either, and keeps its mode, its owner and its extended
//     attributes as far as we may set them. Writing replaces the file by a new
//     one, so hard links to the old one keep the old content.
//
// Names are slash-separated and relative to the root; those in an added tree
// are absolute. [Workspace.Resolve] makes one from whatever a model wrote.
package workspace

import (
	"errors"
	"fmt"
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

	"coder/internal/host/disk"
)

// ErrOutside is the error of a path that leads out of the workspace.
var ErrOutside = errors.New("path outside workspace")

const (
	maxPath = 4096 // bytes a path may have
	shown   = 256  // bytes of a refused name shown in its error
)

// Workspace is a directory tree. It is safe for concurrent use.
type Workspace struct {
	root   *os.Root
	dir    string // absolute, as the user named it
	real   string // the same with every link resolved
	leave  error  // what os.Root says of a path that leaves it
	prefix string // what stands before its names, "" in the main tree

	added []*Workspace // further trees, which have none themselves
	main  *Workspace   // the one that a further tree was added to
	watch watch        // of all of them; see Follow

	topDir       atomic.Pointer[os.File] // the root, open for what needs its descriptor
	clock        func() FileTime         // stands for the one of the file system in tests
	names        *disk.Folders           // whose names were changed; see SyncWith
	scratch      scratchDir              // where temporary files are made; see KeepScratch
	person       GitSettings
	looked       sync.Once // guards outer
	outer        outer
	record       record
	repositories sync.Map // directories a survey has listed → whether they were the top of a repository then
}

// SyncWith adds to f every folder in which a file is placed, moved or removed from
// here on, so that they can be synced together.
func (w *Workspace) SyncWith(f *disk.Folders) {
	w.names = f
	for _, a := range w.added {
		a.names = f
	}
}

// Open opens the workspace at dir and the trees that are added to it. Relative
// paths belong to dir; absolute ones may lie in any of the trees. A link does
// not lead from one tree into another.
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
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	_, leave := root.Lstat("../x")
	return &Workspace{root: root, dir: abs, real: real, leave: errors.Unwrap(leave)}, nil
}

// Close lets the roots go. Later operations fail.
func (w *Workspace) Close() error {
	w.watch.mu.Lock()
	w.watch.stop()
	w.watch.mu.Unlock()
	if s := w.scratch.open.Swap(nil); s != nil {
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

// Root is the absolute path of the workspace.
func (w *Workspace) Root() string { return w.dir }

// Added lists the absolute paths of the trees that were added.
func (w *Workspace) Added() (dirs []string) {
	for _, a := range w.added {
		dirs = append(dirs, a.dir)
	}
	return dirs
}

// Abs is the absolute path of a name that [Workspace.Resolve] or
// [Workspace.Locate] gave, for programs that are told where to look.
func (w *Workspace) Abs(name string) string {
	if path.IsAbs(name) {
		return name
	}
	return filepath.Join(w.real, name)
}

// Resolve turns a path, relative or absolute, into a clean name: one below the
// root, or an absolute one in an added tree. It only looks at the path; links
// are followed when the file is used.
func (w *Workspace) Resolve(name string) (string, error) {
	tree, rel, err := w.home(name)
	if err != nil {
		return "", err
	}
	return tree.called(rel), nil
}

// home is the tree a path lies in and its name there.
func (w *Workspace) home(name string) (tree *Workspace, rel string, err error) {
	switch {
	case name == "":
		return nil, "", errors.New("path is empty")
	case strings.ContainsRune(name, 0):
		return nil, "", fmt.Errorf("path contains a NUL byte: %s", quoted(name))
	case len(name) > maxPath:
		return nil, "", fmt.Errorf("path is too long (%d bytes): %s", len(name), quoted(name))
	}
	tree, rel = w, filepath.Clean(name)
	if abs, found := rel, false; filepath.IsAbs(abs) {
		rel, found = w.below(abs)
		for i := 0; !found; i++ {
			if i == len(w.added) {
				return nil, "", outside(name)
			}
			tree = w.added[i]
			rel, found = tree.below(abs)
		}
	}
	if rel == "~" || strings.HasPrefix(rel, "~/") || !filepath.IsLocal(rel) {
		return nil, "", outside(name)
	}
	return tree, filepath.ToSlash(rel), nil
}

// called is the name by which the world knows rel.
func (w *Workspace) called(rel string) string {
	if w.prefix == "" {
		return rel
	}
	return path.Join(w.prefix, rel)
}

// Locate resolves name and follows the links on its way, so that two names of
// one file give one answer. What does not exist yet is taken as it is written.
func (w *Workspace) Locate(name string) (string, error) {
	tree, rel, err := w.home(name)
	if err == nil {
		rel, err = tree.follow(rel)
	}
	if err != nil {
		return "", err
	}
	return w.Resolve(tree.called(rel)) // trees may lie in each other
}

// below makes an absolute path relative, if it lies in the workspace.
func (w *Workspace) below(abs string) (string, bool) {
	for _, dir := range []string{w.dir, w.real} {
		rel, err := filepath.Rel(dir, abs)
		if err == nil && filepath.IsLocal(rel) {
			return rel, true
		}
	}
	return "", false
}

// follow replaces every link in rel by what it points to. The operation that uses
// the answer goes through the root handle and is refused if a link has turned
// outwards since.
func (w *Workspace) follow(rel string) (string, error) {
	at, err := repofile.Follow(rel, w.root.Readlink, w.below)
	switch {
	case errors.Is(err, repofile.ErrOutside):
		return "", outside(w.called(rel))
	case err != nil:
		return "", fmt.Errorf("too many links: %s", quoted(w.called(rel)))
	}
	return at, nil
}

// outside names the path in the error in a form that cannot fool a terminal.
func outside(name string) error { return fmt.Errorf("%w: %s", ErrOutside, quoted(name)) }

// explain puts an operation's error on rel into words without our own paths.
func (w *Workspace) explain(rel string, err error) error {
	rel = w.called(rel)
	switch {
	case err == nil, errors.Is(err, ErrNotRegular):
		return err
	case errors.Is(err, w.leave):
		return outside(rel)
	case errors.Is(err, syscall.ELOOP):
		return fmt.Errorf("too many links: %s", quoted(rel))
	}
	return fmt.Errorf("%s: %w", quoted(rel), plain(err))
}

// plain drops the operation and path that the os package puts around an error.
func plain(err error) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return p.Err
	}
	if l := (*os.LinkError)(nil); errors.As(err, &l) {
		return l.Err
	}
	return err
}

// quoted shows an ordinary name as it is and any other one escaped.
func quoted(name string) string {
	if len(name) > shown {
		name = strings.ToValidUTF8(name[:shown], "") + "…"
	}
	if q := strconv.Quote(name); q != `"`+name+`"` || strings.TrimSpace(name) != name {
		return q
	}
	return name
}

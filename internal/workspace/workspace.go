// Package workspace is the one directory tree the file tools may touch.
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
//     part of either, and keeps its mode. Writing replaces the file by a new
//     one, so hard links to the old one keep the old content and extended
//     attributes are not carried over.
//
// Names are slash-separated and relative to the root; [Workspace.Resolve]
// makes one from whatever a model wrote.
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
	"syscall"
)

// ErrOutside is the error of a path that leads out of the workspace.
var ErrOutside = errors.New("path outside workspace")

const (
	maxPath  = 4096 // bytes a path may have
	maxLinks = 40   // links followed before we call it a loop
	shown    = 256  // bytes of a refused name shown in its error
)

// Workspace is a directory tree. It is safe for concurrent use.
type Workspace struct {
	root  *os.Root
	dir   string // absolute, as the user named it
	real  string // the same with every link resolved
	leave error  // what os.Root says of a path that leaves it
}

// Open opens the workspace at dir.
func Open(dir string) (*Workspace, error) {
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

// Close lets the root go. Later operations fail.
func (w *Workspace) Close() error { return w.root.Close() }

// Root is the absolute path of the workspace.
func (w *Workspace) Root() string { return w.dir }

// Resolve turns a path, relative or absolute, into a clean name below the
// root. It only looks at the path; links are followed when the file is used.
func (w *Workspace) Resolve(name string) (string, error) {
	if err := usable(name); err != nil {
		return "", err
	}
	rel := filepath.Clean(name)
	if filepath.IsAbs(rel) {
		var ok bool
		if rel, ok = w.below(rel); !ok {
			return "", outside(name)
		}
	}
	if rel == "~" || strings.HasPrefix(rel, "~/") || !filepath.IsLocal(rel) {
		return "", outside(name)
	}
	return filepath.ToSlash(rel), nil
}

// Locate resolves name and follows the links on its way, so that two names of
// one file give one answer. What does not exist yet is taken as it is written.
func (w *Workspace) Locate(name string) (string, error) {
	rel, err := w.Resolve(name)
	if err != nil {
		return "", err
	}
	return w.follow(rel)
}

func usable(name string) error {
	switch {
	case name == "":
		return errors.New("path is empty")
	case strings.ContainsRune(name, 0):
		return fmt.Errorf("path holds a NUL byte: %s", quoted(name))
	case len(name) > maxPath:
		return fmt.Errorf("path is too long (%d bytes): %s", len(name), quoted(name))
	}
	return nil
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

// follow replaces every link in rel by what it points to, as the system would.
// The answer is only as fresh as the tree is still; the operation that uses it
// goes through the root handle and is refused if a link has turned outwards
// since.
func (w *Workspace) follow(rel string) (string, error) {
	done, rest, links := ".", strings.Split(rel, "/"), 0
	for len(rest) > 0 {
		next := path.Join(done, rest[0])
		if !filepath.IsLocal(next) {
			return "", outside(rel)
		}
		info, err := w.root.Lstat(next)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			done, rest = next, rest[1:]
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("too many links: %s", quoted(rel))
		}
		to, err := w.root.Readlink(next)
		if err != nil {
			return "", w.explain(next, err)
		}
		if filepath.IsAbs(to) {
			if to, done = w.rebase(to), "."; to == "" {
				return "", outside(rel)
			}
		}
		rest = append(strings.Split(to, "/"), rest[1:]...)
	}
	return done, nil
}

// rebase is the absolute path as seen from the root, or "" if it lies elsewhere.
func (w *Workspace) rebase(abs string) string {
	rel, _ := w.below(filepath.Clean(abs))
	return rel
}

// outside names the path in the error in a form that cannot fool a terminal.
func outside(name string) error { return fmt.Errorf("%w: %s", ErrOutside, quoted(name)) }

// explain puts an operation's error on rel into words without our own paths.
func (w *Workspace) explain(rel string, err error) error {
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

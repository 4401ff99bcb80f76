package workspace

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"

	"coder/internal/core/message"

	"golang.org/x/sys/unix"
)

const (
	maxDir     = 100_000 // entries of one directory that a walk reads
	maxListers = 4       // directories listed concurrently
	maxAhead   = 64      // directories read ahead of a walk
	batchSize  = 64      // maximum number of files in a batch
)

// Entry is a file or directory found by [Workspace.Walk].
type Entry struct {
	Path  string
	Type  fs.FileMode // type bits only
	Depth int         // 1 for entries directly in the starting directory
	// Ignored is set for entries that a .gitignore names and for those always skipped, such as .git and
	// node_modules. They are not entered.
	Ignored bool
	// Err says why the listing of a directory failed or is incomplete. It is in a separate entry after the
	// directory's own.
	Err error

	dirEntry fs.DirEntry
}

// Info describes the entry itself, not a link's target. It is free where listing already provided it, as
// on Unix.
func (e Entry) Info() (fs.FileInfo, error) {
	if e.dirEntry == nil {
		return nil, fs.ErrNotExist
	}
	return e.dirEntry.Info()
}

// IsDir reports whether the entry is a directory.
func (e Entry) IsDir() bool { return e.Type.IsDir() }

// Walk yields everything below from, near before far, each directory sorted by name. It does not follow
// links, so it always ends. A depth of zero or less means no limit. The walk stops when ctx ends.
func (w *Workspace) Walk(ctx context.Context, from string, depth int) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		w, start, err := w.resolveTarget(from)
		if err != nil {
			yield(Entry{Path: from, Err: err})
			return
		}
		queue := []walkDir{{dir: start, rules: w.rulesForNamed(start), tracked: w.trackedFiles()}}
		ahead := 1 // directories read ahead
		for len(queue) > 0 && ctx.Err() == nil {
			part := queue[:min(ahead, len(queue))]
			queue, ahead = queue[len(part):], min(2*ahead, maxAhead)
			for i, c := range listConcurrently(part, func(at walkDir) (c dirContents) {
				c.entries, c.more, c.err = w.readDir(at.dir, maxDir)
				return c
			}) {
				next, more := w.listEntries(ctx, part[i], c, yield)
				if !more {
					return
				}
				if depth <= 0 || len(next) > 0 && next[0].depth < depth {
					queue = append(queue, next...)
				}
			}
		}
	}
}

// resolveTarget returns the target of a name after following links, within one tree.
func (w *Workspace) resolveTarget(name string) (tree *Workspace, rel string, err error) {
	at, err := w.Locate(name)
	if err != nil {
		return nil, "", err
	}
	return w.findTree(at)
}

// listConcurrently returns the results of listing directories concurrently.
func listConcurrently[T any](dirs []walkDir, list func(walkDir) T) []T {
	all := make([]T, len(dirs))
	var crew sync.WaitGroup
	for i := range min(maxListers, len(dirs)) {
		crew.Go(func() {
			for j := i; j < len(dirs); j += maxListers {
				all[j] = list(dirs[j])
			}
		})
	}
	crew.Wait()
	return all
}

// dirContents is the content of a directory.
type dirContents struct {
	entries []fs.DirEntry
	more    bool
	err     error
}

// walkDir is a directory yet to be listed.
type walkDir struct {
	dir         string
	depth       int
	rules       *rules // rules of the directories above it
	onlyTracked bool   // ignored, but entered for its tracked files
	tracked     func() []string
}

// isIgnored reports whether rel, in the directory at, is ignored. only means that a directory is ignored
// except for its tracked files.
func (w *Workspace) isIgnored(at walkDir, r *rules, rel string, dir bool) (ignored, only bool) {
	if !at.onlyTracked && !r.isIgnored(rel, dir) {
		return false, false
	}
	if dir && alwaysSkipped[path.Base(rel)] || path.Base(rel) == ".git" {
		return true, false
	}
	names, name := at.tracked(), path.Join(w.readOuterRules().prefix, rel)
	if dir {
		name += "/"
	}
	i, tracked := slices.BinarySearch(names, name)
	tracked = tracked || dir && i < len(names) && strings.HasPrefix(names[i], name)
	return !tracked, tracked && dir
}

// listEntries yields the entries of one directory and returns the subdirectories to enter.
func (w *Workspace) listEntries(ctx context.Context, at walkDir, c dirContents, yield func(Entry) bool) (next []walkDir,
	ok bool) {
	if c.err != nil {
		return nil, yield(Entry{Path: w.callerName(at.dir), Type: fs.ModeDir, Depth: at.depth,
			Err: w.explainError(at.dir, c.err)})
	}
	rules := w.extendRules(at.dir, c.entries, at.rules)
	for _, d := range c.entries {
		if ctx.Err() != nil {
			return nil, false
		}
		rel := path.Join(at.dir, d.Name())
		e := Entry{Path: w.callerName(rel), Type: d.Type(), Depth: at.depth + 1, dirEntry: d}
		ignored, only := w.isIgnored(at, rules, rel, e.IsDir())
		e.Ignored = ignored
		if !yield(e) {
			return nil, false
		}
		if e.IsDir() && !e.Ignored {
			next = append(next, walkDir{rel, e.Depth, rules, only, at.tracked})
		}
	}
	if c.more {
		return next, yield(Entry{Path: w.callerName(at.dir), Type: fs.ModeDir, Depth: at.depth, Err: ErrTooLarge})
	}
	return next, true
}

// Batch is a group of regular files of one directory, to be read together.
type Batch struct {
	Dir      string   // the directory
	Names    []string // names of its files that are not ignored, sorted
	Examined int      // entries examined for this and earlier batches of the directory
	Err      error    // why the listing failed or is incomplete

	tree *Workspace
	rel  string
}

// Batches yields the regular files below from that are not ignored, in the order of [Workspace.Walk] but
// without the directories between them. It is designed for reading very many files: see [Batch.Open]. It
// stops when ctx ends.
func (w *Workspace) Batches(ctx context.Context, from string) iter.Seq[Batch] {
	return func(yield func(Batch) bool) {
		w, rel, err := w.resolveTarget(from)
		if err != nil {
			yield(Batch{Dir: from, Err: err})
			return
		}
		for queue := []walkDir{{dir: rel, rules: w.rulesForNamed(rel), tracked: w.trackedFiles()}}; len(queue) > 0 &&
			ctx.Err() == nil; {
			part := queue[:min(len(queue), maxAhead)] // a caller that stops early need not wait for all
			queue = queue[len(part):]
			for _, l := range listConcurrently(part, func(at walkDir) dirBatches { return w.listBatches(ctx, at) }) {
				queue = append(queue, l.below...)
				for _, b := range l.list {
					if !yield(b) {
						return
					}
				}
			}
		}
	}
}

// dirBatches holds the batches of one directory, and its subdirectories to enter.
type dirBatches struct {
	list  []Batch
	below []walkDir
}

func (w *Workspace) listBatches(ctx context.Context, at walkDir) (l dirBatches) {
	if ctx.Err() != nil {
		return l
	}
	entries, more, err := w.readDir(at.dir, maxDir)
	b := Batch{Dir: w.callerName(at.dir), tree: w, rel: at.dir, Examined: len(entries)}
	rules := w.extendRules(at.dir, entries, at.rules)
	for _, d := range entries {
		rel := path.Join(at.dir, d.Name())
		if !d.IsDir() && !d.Type().IsRegular() {
			continue
		}
		switch ignored, only := w.isIgnored(at, rules, rel, d.IsDir()); {
		case ignored:
		case d.IsDir():
			l.below = append(l.below, walkDir{dir: rel, rules: rules, onlyTracked: only, tracked: at.tracked})
		default:
			b.Names = append(b.Names, d.Name())
		}
	}
	for len(b.Names) > batchSize {
		part := b
		part.Names, b.Names, b.Examined = b.Names[:batchSize], b.Names[batchSize:], 0
		l.list = append(l.list, part)
	}
	if err != nil {
		b.Err = w.explainError(at.dir, err)
	} else if more {
		b.Err = ErrTooLarge
	}
	l.list = append(l.list, b)
	return l
}

// Open opens the batch's directory for reading its files.
func (b Batch) Open() (*Reader, error) {
	f, err := b.tree.root.OpenFile(b.rel, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, b.tree.explainError(b.rel, err)
	}
	return &Reader{dir: f, fd: int(f.Fd())}, nil
}

// Reader reads files of one directory as cheaply as the system allows. It is not safe for concurrent
// use.
type Reader struct {
	dir *os.File
	fd  int
	buf []byte
}

// Close closes the directory.
func (r *Reader) Close() error { return r.dir.Close() }

// Reuse takes the memory of another reader, which must not be used afterwards.
func (r *Reader) Reuse(other *Reader) {
	if other != nil {
		r.buf = other.buf
	}
}

// Read returns the content of a regular file of at most limit bytes. The content is valid until the next
// call. Links are not followed.
func (r *Reader) Read(name string, limit int64) ([]byte, error) {
	var fd int
	err := retryInterrupted(func() (err error) {
		fd, err = unix.Openat(r.fd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
		return err
	})
	if err != nil {
		return nil, message.Errorf("%s: %w", quoteName(name), err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	switch err := unix.Fstat(fd, &st); {
	case err != nil:
		return nil, message.Errorf("%s: %w", quoteName(name), err)
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, message.Errorf("%w: %s", ErrNotRegular, quoteName(name))
	case st.Size > limit:
		return nil, message.Errorf("%w: %s has %d bytes", ErrTooLarge, quoteName(name), st.Size)
	}
	if int64(cap(r.buf)) <= st.Size {
		r.buf = make([]byte, st.Size+st.Size/2+4096)
	}
	r.buf = r.buf[:cap(r.buf)]
	for n := 0; ; { // up to the end or the limit: data appended meanwhile is omitted
		m, err := unix.Read(fd, r.buf[n:])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return nil, message.Errorf("%s: %w", quoteName(name), err)
		case m == 0:
			return r.buf[:n], nil
		}
		n += max(m, 0)
	}
}

func retryInterrupted(do func() error) error {
	for {
		if err := do(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

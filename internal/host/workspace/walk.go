package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	maxDir    = 100_000 // entries of one directory that a walk reads
	listers   = 4       // directories listed concurrently
	maxAhead  = 64      // directories read ahead of a walk
	batchSize = 64      // maximum number of files in a batch
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

	found fs.DirEntry
}

// Info describes the entry itself, not a link's target. It is free where listing already provided it, as
// on Unix.
func (e Entry) Info() (fs.FileInfo, error) {
	if e.found == nil {
		return nil, fs.ErrNotExist
	}
	return e.found.Info()
}

// IsDir reports whether the entry is a directory.
func (e Entry) IsDir() bool { return e.Type.IsDir() }

// Walk yields everything below from, near before far, each directory sorted by name. It does not follow
// links, so it always ends. A depth of zero or less means no limit. The walk stops when ctx ends.
func (w *Workspace) Walk(ctx context.Context, from string, depth int) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		w, start, err := w.located(from)
		if err != nil {
			yield(Entry{Path: from, Err: err})
			return
		}
		queue := []level{{dir: start, rules: w.rulesAsked(start), git: w.onRecord()}}
		ahead := 1 // directories read ahead
		for len(queue) > 0 && ctx.Err() == nil {
			part := queue[:min(ahead, len(queue))]
			queue, ahead = queue[len(part):], min(2*ahead, maxAhead)
			for i, c := range listed(part, func(at level) (c contents) {
				c.entries, c.more, c.err = w.readDir(at.dir, maxDir)
				return c
			}) {
				next, more := w.list(ctx, part[i], c, yield)
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

// located returns the target of a name after following links, within one tree.
func (w *Workspace) located(name string) (tree *Workspace, rel string, err error) {
	at, err := w.Locate(name)
	if err != nil {
		return nil, "", err
	}
	return w.home(at)
}

// listed returns the results of listing directories concurrently.
func listed[T any](dirs []level, list func(level) T) []T {
	all := make([]T, len(dirs))
	var crew sync.WaitGroup
	for i := range min(listers, len(dirs)) {
		crew.Go(func() {
			for j := i; j < len(dirs); j += listers {
				all[j] = list(dirs[j])
			}
		})
	}
	crew.Wait()
	return all
}

// contents is the content of a directory.
type contents struct {
	entries []fs.DirEntry
	more    bool
	err     error
}

// level is a directory yet to be listed.
type level struct {
	dir   string
	depth int
	rules *rules // rules of the directories above it
	only  bool   // ignored, but entered for its tracked files
	git   func() []string
}

// ignores reports whether rel, in the directory at, is ignored. only means that a directory is ignored
// except for its tracked files.
func (w *Workspace) ignores(at level, r *rules, rel string, dir bool) (ignored, only bool) {
	if !at.only && !r.ignore(rel, dir) {
		return false, false
	}
	if dir && never[path.Base(rel)] || path.Base(rel) == ".git" {
		return true, false
	}
	names, name := at.git(), path.Join(w.surroundings().lead, rel)
	if dir {
		name += "/"
	}
	i, tracked := slices.BinarySearch(names, name)
	tracked = tracked || dir && i < len(names) && strings.HasPrefix(names[i], name)
	return !tracked, tracked && dir
}

// list yields the entries of one directory and returns the subdirectories to enter.
func (w *Workspace) list(ctx context.Context, at level, c contents, yield func(Entry) bool) (next []level, ok bool) {
	if c.err != nil {
		return nil, yield(Entry{Path: w.called(at.dir), Type: fs.ModeDir, Depth: at.depth, Err: w.explain(at.dir, c.err)})
	}
	rules := w.rulesOf(at.dir, c.entries, at.rules)
	for _, d := range c.entries {
		if ctx.Err() != nil {
			return nil, false
		}
		rel := path.Join(at.dir, d.Name())
		e := Entry{Path: w.called(rel), Type: d.Type(), Depth: at.depth + 1, found: d}
		ignored, only := w.ignores(at, rules, rel, e.IsDir())
		e.Ignored = ignored
		if !yield(e) {
			return nil, false
		}
		if e.IsDir() && !e.Ignored {
			next = append(next, level{rel, e.Depth, rules, only, at.git})
		}
	}
	if c.more {
		return next, yield(Entry{Path: w.called(at.dir), Type: fs.ModeDir, Depth: at.depth, Err: ErrTooLarge})
	}
	return next, true
}

// Batch is a group of regular files of one directory, to be read together.
type Batch struct {
	Dir   string   // the directory
	Names []string // names of its files that are not ignored, sorted
	Seen  int      // entries examined for this and earlier batches of the directory
	Err   error    // why the listing failed or is incomplete

	tree *Workspace
	rel  string
}

// Batches yields the regular files below from that are not ignored, in the order of [Workspace.Walk] but
// without the directories between them. It is designed for reading very many files: see [Batch.Open]. It
// stops when ctx ends.
func (w *Workspace) Batches(ctx context.Context, from string) iter.Seq[Batch] {
	return func(yield func(Batch) bool) {
		w, rel, err := w.located(from)
		if err != nil {
			yield(Batch{Dir: from, Err: err})
			return
		}
		for queue := []level{{dir: rel, rules: w.rulesAsked(rel), git: w.onRecord()}}; len(queue) > 0 && ctx.Err() == nil; {
			part := queue[:min(len(queue), maxAhead)] // a caller that stops early need not wait for all
			queue = queue[len(part):]
			for _, l := range listed(part, func(at level) batches { return w.batchesOf(ctx, at) }) {
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

// batches holds the batches of one directory, and its subdirectories to enter.
type batches struct {
	list  []Batch
	below []level
}

func (w *Workspace) batchesOf(ctx context.Context, at level) (l batches) {
	if ctx.Err() != nil {
		return l
	}
	entries, more, err := w.readDir(at.dir, maxDir)
	b := Batch{Dir: w.called(at.dir), tree: w, rel: at.dir, Seen: len(entries)}
	rules := w.rulesOf(at.dir, entries, at.rules)
	for _, d := range entries {
		rel := path.Join(at.dir, d.Name())
		if !d.IsDir() && !d.Type().IsRegular() {
			continue
		}
		switch ignored, only := w.ignores(at, rules, rel, d.IsDir()); {
		case ignored:
		case d.IsDir():
			l.below = append(l.below, level{dir: rel, rules: rules, only: only, git: at.git})
		default:
			b.Names = append(b.Names, d.Name())
		}
	}
	for len(b.Names) > batchSize {
		part := b
		part.Names, b.Names, b.Seen = b.Names[:batchSize], b.Names[batchSize:], 0
		l.list = append(l.list, part)
	}
	if err != nil {
		b.Err = w.explain(at.dir, err)
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
		return nil, b.tree.explain(b.rel, err)
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
	err := again(func() (err error) {
		fd, err = unix.Openat(r.fd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", quoted(name), err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	switch err := unix.Fstat(fd, &st); {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", quoted(name), err)
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, fmt.Errorf("%w: %s", ErrNotRegular, quoted(name))
	case st.Size > limit:
		return nil, fmt.Errorf("%w: %s has %d bytes", ErrTooLarge, quoted(name), st.Size)
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
			return nil, fmt.Errorf("%s: %w", quoted(name), err)
		case m == 0:
			return r.buf[:n], nil
		}
		n += max(m, 0)
	}
}

func again(do func() error) error {
	for {
		if err := do(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

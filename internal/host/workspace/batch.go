package workspace

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path"
	"syscall"

	"golang.org/x/sys/unix"
)

// Batch is some of the regular files of one directory, to be read together.
type Batch struct {
	Dir   string   // the directory
	Names []string // of its files that are not ignored, in order
	Seen  int      // entries that were looked at to make this and earlier batches of the directory
	Err   error    // why the directory could not be listed, or not whole

	tree *Workspace
	rel  string
}

// batchSize is how many files one batch has at most.
const batchSize = 64

// Batches yields the regular files below from that are not ignored, in the
// order of [Workspace.Walk] but without the directories between them. It is
// made for reading very many files: see [Batch.Open]. When ctx ends it stops.
func (w *Workspace) Batches(ctx context.Context, from string) iter.Seq[Batch] {
	return func(yield func(Batch) bool) {
		w, rel, err := w.located(from)
		if err != nil {
			yield(Batch{Dir: from, Err: err})
			return
		}
		for queue := []level{{dir: rel, rules: w.rulesAsked(rel), git: w.onRecord()}}; len(queue) > 0 && ctx.Err() == nil; {
			part := queue[:min(len(queue), maxAhead)] // who has enough soon does not wait for all
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

// batches are those of one directory, and the directories in it to go on with.
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

// Open opens the directory of the batch for reading its files.
func (b Batch) Open() (*Reader, error) {
	f, err := b.tree.root.OpenFile(b.rel, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, b.tree.explain(b.rel, err)
	}
	return &Reader{dir: f, fd: int(f.Fd())}, nil
}

// Reader reads files of one directory, at the least cost the system allows. It
// is for one goroutine.
type Reader struct {
	dir *os.File
	fd  int
	buf []byte
}

// Close lets the directory go.
func (r *Reader) Close() error { return r.dir.Close() }

// Reuse takes over the memory of another reader, which must not be used any
// more.
func (r *Reader) Reuse(other *Reader) {
	if other != nil {
		r.buf = other.buf
	}
}

// Read returns the content of a regular file of at most limit bytes. It is
// good until the next call. Links are not followed.
func (r *Reader) Read(name string, limit int64) ([]byte, error) {
	fd, err := openAt(r.fd, name)
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
	n, err := readAll(fd, r.buf[:cap(r.buf)])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", quoted(name), err)
	}
	return r.buf[:n], nil
}

func openAt(dir int, name string) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// readAll reads until the end or until buf is full: what was added to the file
// meanwhile is left out.
func readAll(fd int, buf []byte) (n int, err error) {
	for n < len(buf) {
		m, err := unix.Read(fd, buf[n:])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return n, err
		case m == 0:
			return n, nil
		}
		n += max(m, 0)
	}
	return n, nil
}

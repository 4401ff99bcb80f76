package workspace

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path"
	"sync"
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

// listers is how many directories are listed at a time.
const listers = 4

// batchSize is how many files one batch has at most.
const batchSize = 64

// Batches yields the regular files below from that are not ignored, in the
// order of [Workspace.Walk] but without the directories between them. It is
// made for reading very many files: see [Batch.Open]. When ctx ends it stops.
func (w *Workspace) Batches(ctx context.Context, from string) iter.Seq[Batch] {
	return func(yield func(Batch) bool) {
		at, err := w.Locate(from)
		if err != nil {
			yield(Batch{Dir: from, Err: err})
			return
		}
		w, rel, err := w.home(at)
		if err != nil {
			yield(Batch{Dir: from, Err: err})
			return
		}
		for queue := []level{{dir: rel, rules: w.rulesAsked(rel), git: w.onRecord()}}; len(queue) > 0 && ctx.Err() == nil; {
			part := queue[:min(len(queue), maxAhead)] // who has enough soon does not wait for all
			queue = queue[len(part):]
			all := make([]listed, len(part))
			var crew sync.WaitGroup
			for i := range min(listers, len(part)) {
				crew.Go(func() {
					for j := i; j < len(part) && ctx.Err() == nil; j += listers {
						all[j] = w.listOne(part[j])
					}
				})
			}
			crew.Wait()
			for _, l := range all {
				queue = append(queue, l.below...)
				for _, b := range l.batches {
					if !yield(b) {
						return
					}
				}
			}
		}
	}
}

// listed is what came of listing one directory.
type listed struct {
	batches []Batch
	below   []level
}

func (w *Workspace) listOne(at level) (l listed) {
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
		l.batches = append(l.batches, part)
	}
	if err != nil {
		b.Err = w.explain(at.dir, err)
	} else if more {
		b.Err = ErrTooLarge
	}
	l.batches = append(l.batches, b)
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

package codeindex

import (
	"context"
	"runtime"
	"strings"
	"sync"

	"coder/internal/host/disk"
)

// maxWalk limits the files and directories that a walk visits.
const maxWalk = 1_000_000

// snapshot is the index at one moment. It is immutable once published.
type snapshot struct {
	files   []*file
	first   []int // number of each file's first section
	chunks  int   // sections in all files
	tokens  int   // words in all sections
	indexed int   // files with sections
	cut     bool  // files were omitted
}

// update looks for new and changed files, unless it did so a moment ago and must is not set. Concurrent
// callers wait. If ctx ends, the files already read need not be read again.
func (x *Index) update(ctx context.Context, must bool) error {
	select {
	case x.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-x.turn }()
	touched := x.touched.Load()
	if x.opts.Now != nil && !x.checked.IsZero() && !must && touched == x.noticed {
		if age := x.opts.Now().Sub(x.checked); age >= 0 && age < x.opts.CheckEvery { // the last check is recent enough
			return ctx.Err()
		}
	}
	if err := x.refresh(ctx); err != nil {
		return err
	}
	x.noticed = touched
	if x.opts.Now != nil {
		x.checked = x.opts.Now()
	}
	return nil
}

// refresh reads new and changed files.
func (x *Index) refresh(ctx context.Context) error {
	there := x.list(ctx, maxWalk)
	if err := ctx.Err(); err != nil {
		return err
	}
	s := x.current.Load()
	changed := compare(there.files, s.files)
	// If ctx ends, the remaining files count as never seen.
	work := make(chan *file)
	var readers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(changed)) {
		readers.Go(func() {
			r := newReader()
			for f := range work {
				data, info, err := x.ws.ReadFile(f.path, maxFile)
				if err != nil {
					continue // without sections; not read again until it changes
				}
				f.was = disk.StampOf(info)
				r.index(f, data)
			}
		})
	}
	for i, f := range changed {
		if ctx.Err() != nil {
			for _, f := range changed[i:] {
				f.was = disk.Stamp{}
			}
			break
		}
		work <- f
	}
	close(work)
	readers.Wait()
	if len(changed) > 0 || len(there.files) != len(s.files) {
		x.current.Store(newSnapshot(there.files, there.cut))
	}
	return ctx.Err()
}

// listing holds the existing files that are worth indexing, up to the limits.
type listing struct {
	files  []*file // still to read
	looked int
	bytes  int64
	cut    bool // there are more files
}

// list returns the files of all trees of the workspace, visiting at most "most" entries.
func (x *Index) list(ctx context.Context, most int) (l listing) {
	for _, dir := range append([]string{"."}, x.ws.Added()...) {
		tree, err := x.ws.Locate(dir)
		if err != nil {
			continue
		}
		for e := range x.ws.Walk(ctx, tree, 0) {
			if l.looked++; l.looked > most {
				l.cut = true
				return l
			}
			if e.Err != nil || e.Ignored || !e.Type.IsRegular() || skipped(e.Path) {
				continue
			}
			info, err := e.Info()
			if err != nil || info.Size() > maxFile || info.Size() == 0 {
				continue
			}
			if l.bytes += info.Size(); len(l.files) == x.opts.MaxFiles || l.bytes > x.opts.MaxBytes {
				l.cut = true
				return l
			}
			l.files = append(l.files, &file{path: e.Path, name: strings.TrimPrefix(e.Path, tree+"/"), was: disk.StampOf(info)})
		}
	}
	return l
}

// compare replaces listed files by their known versions, and returns the new and changed ones.
func compare(listed, known []*file) (changed []*file) {
	byPath := make(map[string]*file, len(known))
	for _, f := range known {
		byPath[f.path] = f
	}
	for i, f := range listed {
		if k := byPath[f.path]; k != nil && k.was == f.was && k.name == f.name {
			listed[i] = k
			continue
		}
		changed = append(changed, f)
	}
	return changed
}

func newSnapshot(files []*file, cut bool) *snapshot {
	s := &snapshot{files: files, first: make([]int, len(files)), cut: cut}
	for i, f := range files {
		s.first[i] = s.chunks
		s.chunks += len(f.chunks)
		s.tokens += f.tokens
		if len(f.chunks) > 0 {
			s.indexed++
		}
	}
	return s
}

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
	files         []*indexedFile
	firstSections []int // number of each file's first section
	chunks        int   // sections in all files
	tokens        int   // words in all sections
	indexed       int   // files with sections
	isTruncated   bool  // files were omitted
}

// update looks for new and changed files, unless it did so a moment ago and must is not set. Concurrent
// callers wait. If ctx ends, the files already read need not be read again.
func (x *Index) update(ctx context.Context, must bool) error {
	select {
	case x.sem <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-x.sem }()
	touched := x.writes.Load()
	if x.opts.Now != nil && !x.lastCheck.IsZero() && !must && touched == x.checkedWrites {
		if age := x.opts.Now().Sub(x.lastCheck); age >= 0 && age < x.opts.CheckEvery { // the last check is recent enough
			return ctx.Err()
		}
	}
	if err := x.refresh(ctx); err != nil {
		return err
	}
	x.checkedWrites = touched
	if x.opts.Now != nil {
		x.lastCheck = x.opts.Now()
	}
	return nil
}

// refresh reads new and changed files.
func (x *Index) refresh(ctx context.Context) error {
	there := x.listFiles(ctx, maxWalk)
	if err := ctx.Err(); err != nil {
		return err
	}
	s := x.current.Load()
	changed := mergeKnown(there.files, s.files)
	// If ctx ends, the remaining files count as never seen.
	work := make(chan *indexedFile)
	var readers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(changed)) {
		readers.Go(func() {
			r := newFileIndexer()
			for f := range work {
				data, info, err := x.workspace.ReadFile(f.path, maxFileBytes)
				if err != nil {
					continue // without sections; not read again until it changes
				}
				f.stamp = disk.StampOf(info)
				r.indexFile(f, data)
			}
		})
	}
	for i, f := range changed {
		if ctx.Err() != nil {
			for _, f := range changed[i:] {
				f.stamp = disk.Stamp{}
			}
			break
		}
		work <- f
	}
	close(work)
	readers.Wait()
	if len(changed) > 0 || len(there.files) != len(s.files) {
		x.current.Store(newSnapshot(there.files, there.isTruncated))
	}
	return ctx.Err()
}

// listing holds the existing files that are worth indexing, up to the limits.
type listing struct {
	files       []*indexedFile // still to read
	visited     int
	bytes       int64
	isTruncated bool // there are more files
}

// listFiles returns the files of all trees of the workspace, visiting at most "most" entries.
func (x *Index) listFiles(ctx context.Context, most int) (l listing) {
	for _, dir := range append([]string{"."}, x.workspace.AddedDirs()...) {
		tree, err := x.workspace.Locate(dir)
		if err != nil {
			continue
		}
		for e := range x.workspace.Walk(ctx, tree, 0) {
			if l.visited++; l.visited > most {
				l.isTruncated = true
				return l
			}
			if e.Err != nil || e.Ignored || !e.Type.IsRegular() || isSkipped(e.Path) {
				continue
			}
			info, err := e.Info()
			if err != nil || info.Size() > maxFileBytes || info.Size() == 0 {
				continue
			}
			if l.bytes += info.Size(); len(l.files) == x.opts.MaxFiles || l.bytes > x.opts.MaxBytes {
				l.isTruncated = true
				return l
			}
			l.files = append(l.files, &indexedFile{path: e.Path, name: strings.TrimPrefix(e.Path, tree+"/"),
				stamp: disk.StampOf(info)})
		}
	}
	return l
}

// mergeKnown replaces listed files by their known versions, and returns the new and changed ones.
func mergeKnown(listed, known []*indexedFile) (changed []*indexedFile) {
	byPath := make(map[string]*indexedFile, len(known))
	for _, f := range known {
		byPath[f.path] = f
	}
	for i, f := range listed {
		if k := byPath[f.path]; k != nil && k.stamp == f.stamp && k.name == f.name {
			listed[i] = k
			continue
		}
		changed = append(changed, f)
	}
	return changed
}

func newSnapshot(files []*indexedFile, cut bool) *snapshot {
	s := &snapshot{files: files, firstSections: make([]int, len(files)), isTruncated: cut}
	for i, f := range files {
		s.firstSections[i] = s.chunks
		s.chunks += len(f.chunks)
		s.tokens += f.tokens
		if len(f.chunks) > 0 {
			s.indexed++
		}
	}
	return s
}

package workspace

import (
	"context"
	"io/fs"
	"iter"
	"path"
	"sync"
)

// Entry is one thing found by [Workspace.Walk].
type Entry struct {
	Path  string
	Type  fs.FileMode // the type bits only
	Depth int         // 1 for what lies directly in the starting directory
	// Ignored things are those a .gitignore names and those that are never
	// of interest, such as .git and node_modules. They are not entered.
	Ignored bool
	// Err says why a directory could not be listed, or not whole. It comes in
	// an entry of its own, after the one that named the directory.
	Err error

	found fs.DirEntry
}

// Info describes the thing itself, not what a link leads to. Where listing the
// directory has told it already, as on Unix, it costs nothing.
func (e Entry) Info() (fs.FileInfo, error) {
	if e.found == nil {
		return nil, fs.ErrNotExist
	}
	return e.found.Info()
}

// IsDir reports whether the entry is a directory.
func (e Entry) IsDir() bool { return e.Type.IsDir() }

// maxDir is how many entries of one directory a walk looks at.
const maxDir = 100_000

// Walk yields everything below from, the near before the far, each directory
// in the order of names. Links are named but not followed, so it always ends.
// A depth of zero or less means all the way down. When ctx ends the walk stops.
func (w *Workspace) Walk(ctx context.Context, from string, depth int) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		w, start, err := w.located(from)
		if err != nil {
			yield(Entry{Path: from, Err: err})
			return
		}
		queue := []level{{dir: start, rules: w.rulesAsked(start), git: w.onRecord()}}
		ahead := 1 // how many directories are read before they are needed
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

// located is where a name leads once links are followed, which is in one tree.
func (w *Workspace) located(name string) (tree *Workspace, rel string, err error) {
	at, err := w.Locate(name)
	if err != nil {
		return nil, "", err
	}
	return w.home(at)
}

// listers is how many directories are listed at a time.
const listers = 4

// listed is what came of listing directories, several at a time.
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

// maxAhead is how many directories are read ahead of a walk.
const maxAhead = 64

// contents is what a directory holds.
type contents struct {
	entries []fs.DirEntry
	more    bool
	err     error
}

// level is a directory still to be listed.
type level struct {
	dir   string
	depth int
	rules *rules // those of the directories above it
	only  bool   // it is ignored, and entered for what git has on record in it
	git   func() []string
}

// ignores reports whether the thing at rel, in the directory at, is of no
// interest. A directory that is only entered for what git has on record is not,
// but is of no interest otherwise.
func (w *Workspace) ignores(at level, r *rules, rel string, dir bool) (ignored, only bool) {
	if !at.only && !r.ignore(rel, dir) {
		return false, false
	}
	tracked := w.tracked(at.git, rel, dir)
	return !tracked, tracked && dir
}

// list yields what is in one directory and returns the directories in it that
// are worth entering.
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

// Package undo makes what calls do to files reversible.
//
// A [Keeper] saves what a call would overwrite before it runs and tells
// afterwards what became of it; both go on the audit log, which is the only
// journal there is. A [History] folds that log into a stack of turns, and
// [Undo] and [Redo] walk it. The contents themselves lie in a [Store] under
// their hashes, never in the user's git.
//
// What holds, whoever changes files while we work:
//
//  1. A file that someone else changed after the turn is not touched, unless
//     that is asked for; it is reported.
//  2. Nothing is overwritten or removed that could not be brought back by
//     [Redo], unless that is asked for.
//  3. Nothing outside the workspace is touched, and links are not followed.
//  4. Keeping costs in proportion to what changed. A call that changes nothing
//     leaves nothing in the store, but for the first command of a session among
//     files that git does not have: what it might overwrite must be on the disk
//     before it runs, or a crash would take it. Files that are as git's HEAD has
//     them are named by it; where all are, nothing is written.
//
// What a command changed is told apart from what others changed while it ran by
// a [Options.Witness], and by what the system counted. What may be somebody
// else's is on record with a doubt and stays, unless that is asked for.
//
// Bytes, permission bits, links and directories are brought back; owners,
// extended attributes, times and hard links are not.
package undo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"sync"
	"time"

	"coder/internal/core/clip"
	"coder/internal/core/event"
	"coder/internal/host/program"
	"coder/internal/host/workspace"
	"coder/internal/record/undo/blob"
	"coder/internal/tool"
)

// Limits of a Keeper unless its options say otherwise.
const (
	DefaultMaxFile    = 64 << 20  // bytes of a file that is kept
	DefaultTreeFiles  = 20_000    // files saved at once because a command might change them
	DefaultTreeBytes  = 512 << 20 // and how many bytes they may have
	DefaultMaxEntries = 500_000   // files and directories looked at around a command
)

// Options say how a Keeper behaves. The zero value is fine.
type Options struct {
	MaxFile    int64
	TreeFiles  int
	TreeBytes  int64
	MaxEntries int

	Door program.Door // finds git, and has its environment; without HOME the user's git settings are not seen
	// GitFiles, which may be nil, spares asking git where nothing in these files, and in the
	// repository, has git store files in another form.
	GitFiles *GitFiles
	Now      func() time.Time // dates what is put on record; file times are held against the file system's own
	Warn     func(string)     // told, once each, what cannot be brought back

	// Witness, which may be nil, is called before a command and returns what
	// [tool.Kept] has as Touched. Without one, whose a command's changes are is not
	// known.
	Witness func() (touched func() (of func(path string) tool.Touch, known bool))

	// Many, which may be nil, is called when the state of very many files is held.
	Many func()

	// Needs reports what the last turns need, see [History.Needs]. It stays in
	// the store however full that is.
	Needs func(hash string) bool
	// Tree is the newest tree on record, see [History.Tree]. It spares reading
	// every file again after a restart.
	Tree string
}

// Keeper keeps what calls overwrite. It is safe for concurrent use.
type Keeper struct {
	ws    *workspace.Workspace
	store *Store
	o     Options
	repos []*repo

	mu      sync.Mutex       // guards the fields below
	feed    *workspace.Feed  // tells what changed since; nil before the first look
	counted counted          // what it counted
	tree    *tree            // the files as last seen
	closed  map[string]bool  // directories that could not be listed then
	ignored []string         // what no tree holds, at the last look at all files
	kept    *tree            // the tree that was put into the store last
	open    map[string]*tree // those that calls under way began with, by name
	warned  map[string]bool
	unsaid  []string        // warnings of a look ahead
	fault   error           // of the store, at the last look
	light   *gathering      // takes what is put now, for a start; nil if it is to last
	looked  *gathering      // what a look ahead gathered, until the start is saved
	again   map[string]bool // directories with files that were put so
}

// New returns a Keeper of the files in ws. It looks at nothing yet.
func New(ws *workspace.Workspace, store *Store, o Options) *Keeper {
	setDefault(&o.MaxFile, DefaultMaxFile)
	setDefault(&o.TreeFiles, DefaultTreeFiles)
	setDefault(&o.TreeBytes, DefaultTreeBytes)
	setDefault(&o.MaxEntries, DefaultMaxEntries)
	var repos []*repo // the work trees that hold the roots
	add := func(root, dir string) {
		if r := findRepo(dir, o.Door); r != nil {
			r.root = root
			repos = append(repos, r)
		}
	}
	add(".", ws.Root())
	for _, dir := range ws.Added() {
		if name, err := ws.Resolve(dir); err == nil && path.IsAbs(name) {
			add(name, dir)
		}
	}
	return &Keeper{
		ws: ws, store: store, o: o, repos: repos,
		open: make(map[string]*tree), warned: make(map[string]bool),
	}
}

func setDefault[N int | int64](n *N, to N) {
	if *n <= 0 {
		*n = to
	}
}

func (k *Keeper) now() time.Time {
	if k.o.Now == nil {
		return time.Time{}
	}
	return k.o.Now()
}

func (k *Keeper) warn(text string) {
	if k.o.Warn == nil || k.warned[text] {
		return
	}
	if k.light != nil && k.light.ahead { // nobody asked for this look yet
		k.unsaid = append(k.unsaid, text)
		return
	}
	k.warned[text] = true
	k.o.Warn(text)
}

// Keep saves the files that effects name, and the state of all files if they
// say that anything might be touched.
func (k *Keeper) Keep(ctx context.Context, effects []tool.Effect) (tool.Kept, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.release()
	kept := tool.Kept{Effects: effects}
	wide := runsAnything(effects)
	if wide && k.o.Witness != nil {
		kept.Touched = k.o.Witness()
	}
	// The files themselves, what they are if they are links, and the directories
	// that would be made.
	var targets []string
	for _, e := range effects {
		if e.Kind != tool.Write {
			continue
		}
		for _, rel := range k.namesOf(e.Target) {
			for _, name := range append(k.missingAbove(rel), rel) {
				if !slices.Contains(targets, name) {
					targets = append(targets, name)
				}
			}
		}
	}
	for _, rel := range targets {
		s, err := k.save(rel)
		if err != nil {
			return kept, err
		}
		kept.Before = append(kept.Before, s)
		wide = wide || kindOf(s) == isDir
	}
	if wide {
		name, err := k.keepTree(ctx)
		if err != nil {
			return kept, err
		}
		kept.Tree, kept.Counted = name, k.counted.mark()
	}
	return kept, k.commit()
}

// runsAnything reports whether a call with such effects runs programs that may touch any
// file.
func runsAnything(effects []tool.Effect) bool {
	return len(effects) == 0 || slices.ContainsFunc(effects, func(e tool.Effect) bool {
		return e.Kind == tool.Exec || e.Kind == tool.Unknown
	})
}

// commit makes what was kept last. If it does not, every file is looked at anew:
// nobody knows what is there.
func (k *Keeper) commit() error {
	err := k.store.Commit()
	if err != nil {
		k.tree, k.kept = nil, nil
	}
	return err
}

// namesOf is where target really is, where it leads if that is a link, and what
// it is called: a link on the way to it may be replaced by a directory.
func (k *Keeper) namesOf(target string) []string {
	rel, err := k.ws.Resolve(target)
	if err != nil {
		return []string{target}
	}
	up, err := k.ws.Locate(path.Dir(rel))
	if err != nil {
		return []string{target}
	}
	names := []string{path.Join(up, path.Base(rel))}
	if at, err := k.ws.Locate(rel); err == nil && at != names[0] {
		names = append(names, at)
	}
	if rel != names[0] {
		names = append(names, rel)
	}
	return names
}

// missingAbove names the directories above rel that do not exist, top first.
func (k *Keeper) missingAbove(rel string) (list []string) {
	for up := path.Dir(rel); up != "." && up != "/"; up = path.Dir(up) {
		if _, err := k.ws.Lstat(up); !missing(err) {
			break
		}
		list = append(list, up)
	}
	slices.Reverse(list)
	return list
}

// Changes tells what has become of the files since k was kept.
func (k *Keeper) Changes(ctx context.Context, kept tool.Kept) ([]event.FileChange, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.release()
	var changes []event.FileChange
	for _, before := range kept.Before {
		after, err := k.Current(before.Path)
		if err != nil {
			return changes, err
		}
		if before.Lost || !k.same(ctx, before, after) {
			changes = append(changes, event.FileChange{Before: before, After: after})
		}
	}
	if kept.Tree == "" {
		return changes, nil
	}
	wide, err := k.treeChanges(ctx, kept)
	for _, c := range wide {
		if !slices.ContainsFunc(kept.Before, func(s event.FileState) bool { return s.Path == c.Before.Path }) {
			changes = append(changes, c)
		}
	}
	if err != nil {
		return changes, fmt.Errorf("compare files: %w", err)
	}
	if err := errors.Join(k.fault, k.commit()); err != nil { // it is done, and what was there before is kept
		k.warn(fmt.Sprintf("changes by commands to some files cannot be undone: %v", clip.Text(err.Error(), maxWarning)))
	}
	return changes, nil
}

// Keeps reports whether a content is in the store.
func (k *Keeper) Keeps(content io.ReadSeeker) bool {
	hash, err := blob.Digest(content)
	return err == nil && k.store.Has(hash)
}

// pinned reports what must not be pruned: what the last turns need, and what
// the next command may destroy.
func (k *Keeper) pinned() func(hash string) bool {
	k.recall()
	held := k.tree.hashes()
	for _, t := range k.open {
		for h := range t.hashes() {
			held[h] = true
		}
	}
	return func(hash string) bool {
		return held[hash] || k.o.Needs != nil && k.o.Needs(hash)
	}
}

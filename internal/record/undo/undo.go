// Package undo makes the effects of calls on files reversible.
//
// A [Keeper] saves what a call would overwrite before it runs and reports afterwards what changed; both
// go to the audit log, which is the only journal. A [History] computes a stack of turns from that log,
// and [Undo] and [Redo] walk it. The contents are in a [Store] under their hashes, never in the user's
// git.
//
// It guarantees, whoever changes files meanwhile:
//
//  1. A file that someone else changed after the turn is reported and not
//     touched, unless forced.
//  2. Nothing is overwritten or removed that [Redo] could not restore,
//     unless forced.
//  3. Nothing outside the workspace is touched, and links are not followed.
//  4. Saving costs in proportion to what changed. A call that changes nothing
//     adds nothing to the store, except the first command of a session among
//     files that git does not have: what it might overwrite must be on disk
//     before it runs, or a crash would lose it. Files that equal git's HEAD are
//     named by it; if all do, nothing is written.
//
// A [Options.Witness] and the system's counts distinguish a command's changes from those of others while
// it ran. Changes that may be someone else's are recorded with a doubt and stay, unless forced.
//
// Bytes, permission bits, links and directories are restored; owners, extended attributes, times and
// hard links are not.
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

// Default limits of a Keeper.
const (
	DefaultMaxFile    = 64 << 20  // bytes of a saved file
	DefaultTreeFiles  = 20_000    // files saved together because a command might change them
	DefaultTreeBytes  = 512 << 20 // and their total bytes
	DefaultMaxEntries = 500_000   // files and directories scanned around a command
)

// Options configure a Keeper. The zero value is valid.
type Options struct {
	MaxFile    int64
	TreeFiles  int
	TreeBytes  int64
	MaxEntries int

	Door program.Door // finds git, and has its environment; without HOME the user's git settings are not visible
	// GitFiles, if not nil, avoids running git if nothing in these files or in the repository makes git
	// store files in another form.
	GitFiles *GitFiles
	Now      func() time.Time // dates records; file times are compared with the file system's clock
	Warn     func(string)     // receives each warning about unsaved files once

	// Witness, if not nil, is called before a command and returns the Touched function of [tool.Kept].
	// Without it, the author of changes during a command is unknown.
	Witness func() (touched func() (of func(path string) tool.Touch, known bool))

	// Many, if not nil, is called when the state of very many files is in memory.
	Many func()

	// Needs reports what the last turns need, see [History.Needs]. It stays in the store however full that
	// is.
	Needs func(hash string) bool
	// Tree is the newest tree on record, see [History.Tree]. It avoids reading every file again after a
	// restart.
	Tree string
}

// Keeper saves what calls overwrite. It is safe for concurrent use.
type Keeper struct {
	ws    *workspace.Workspace
	store *Store
	o     Options
	repos []*repo

	mu      sync.Mutex       // guards the fields below
	feed    *workspace.Feed  // reports changes; nil before the first scan
	counted counted          // operations counted by the feed
	tree    *tree            // the files at the last scan
	closed  map[string]bool  // directories that could not be listed then
	ignored []string         // files outside all trees, at the last full scan
	kept    *tree            // the tree saved last
	open    map[string]*tree // trees at the start of running calls, by name
	warned  map[string]bool
	unsaid  []string        // warnings of a look ahead
	fault   error           // of the store, at the last scan
	light   *gathering      // collects contents for a start; nil to save durably
	looked  *gathering      // contents of a look ahead, until the start is saved
	again   map[string]bool // directories with files collected that way
}

// New returns a Keeper of the files in ws, without a scan.
func New(ws *workspace.Workspace, store *Store, o Options) *Keeper {
	setDefault(&o.MaxFile, DefaultMaxFile)
	setDefault(&o.TreeFiles, DefaultTreeFiles)
	setDefault(&o.TreeBytes, DefaultTreeBytes)
	setDefault(&o.MaxEntries, DefaultMaxEntries)
	var repos []*repo // the work trees that contain the roots
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
	if k.light != nil && k.light.ahead { // no caller requested this scan yet
		k.unsaid = append(k.unsaid, text)
		return
	}
	k.warned[text] = true
	k.o.Warn(text)
}

// Keep saves the files in effects, and the state of all files if the effects may touch anything.
func (k *Keeper) Keep(ctx context.Context, effects []tool.Effect) (tool.Kept, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.release()
	kept := tool.Kept{Effects: effects}
	wide := runsAnything(effects)
	if wide && k.o.Witness != nil {
		kept.Touched = k.o.Witness()
	}
	// The files themselves, the targets of links, and the directories that would be created.
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

// runsAnything reports whether a call with these effects runs programs that may touch any file.
func runsAnything(effects []tool.Effect) bool {
	return len(effects) == 0 || slices.ContainsFunc(effects, func(e tool.Effect) bool {
		return e.Kind == tool.Exec || e.Kind == tool.Unknown
	})
}

// commit makes what was saved durable. If that fails, the next scan reads every file again, since the
// store's content is unknown.
func (k *Keeper) commit() error {
	err := k.store.Commit()
	if err != nil {
		k.tree, k.kept = nil, nil
	}
	return err
}

// namesOf returns target's real path, a link's target, and target's own name: a link on the path may be
// replaced by a directory.
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

// missingAbove returns the missing directories above rel, top first.
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

// Changes returns the file changes since kept was saved.
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
	if err := errors.Join(k.fault, k.commit()); err != nil { // the call is done, and the earlier state is saved
		k.warn(fmt.Sprintf("changes by commands to some files cannot be undone: %v", clip.Text(err.Error(), maxWarning)))
	}
	return changes, nil
}

// Keeps reports whether a content is in the store.
func (k *Keeper) Keeps(content io.ReadSeeker) bool {
	hash, err := blob.Digest(content)
	return err == nil && k.store.Has(hash)
}

// pinned reports what must not be pruned: what the last turns need, and what the next command may
// destroy.
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

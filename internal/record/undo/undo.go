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
// A [Options.RecordTouched] and the system's counts distinguish a command's changes from those of others while
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
	"coder/internal/core/message"
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

	Launcher program.Launcher // finds git, and has its environment; without HOME the user's git settings are not visible
	// GitFiles, if not nil, avoids running git if nothing in these files or in the repository makes git
	// store files in another form.
	GitFiles *GitFiles
	Now      func() time.Time // dates records; file times are compared with the file system's clock
	Warn     func(string)     // receives each warning about unsaved files once

	// RecordTouched, if not nil, is called before a command and returns the Touched function of [tool.Snapshot].
	// Without it, the author of changes during a command is unknown.
	RecordTouched func() (touched func() (of func(path string) tool.Touch, known bool))

	// OnManyFiles, if not nil, is called when the state of very many files is in memory.
	OnManyFiles func()

	// IsNeeded reports what the last turns need, see [History.IsNeeded]. It stays in the store however full that
	// is.
	IsNeeded func(hash string) bool
	// LastTree is the newest tree on record, see [History.Tree]. It avoids reading every file again after a
	// restart.
	LastTree string
}

// Keeper saves what calls overwrite. It is safe for concurrent use.
type Keeper struct {
	ws    *workspace.Workspace
	store *Store
	o     Options
	repos []*repo

	mu              sync.Mutex       // guards the fields below
	feed            *workspace.Feed  // reports changes; nil before the first scan
	opCounts        opCounts         // operations counted by the feed
	tree            *tree            // the files at the last scan
	unlistedDirs    map[string]bool  // directories that could not be listed then
	ignored         []string         // files outside all trees, at the last full scan
	savedTree       *tree            // the tree saved last
	openTrees       map[string]*tree // trees at the start of running calls, by name
	warned          map[string]bool
	pendingWarnings []string        // warnings of a look ahead
	storeErr        error           // of the store, at the last scan
	gatherer        *gatherer       // collects contents for a start; nil to save durably
	aheadContents   *gatherer       // contents of a look ahead, until the start is saved
	rescanDirs      map[string]bool // directories with files collected that way
}

// New returns a Keeper of the files in ws, without a scan.
func New(ws *workspace.Workspace, store *Store, o Options) *Keeper {
	setDefault(&o.MaxFile, DefaultMaxFile)
	setDefault(&o.TreeFiles, DefaultTreeFiles)
	setDefault(&o.TreeBytes, DefaultTreeBytes)
	setDefault(&o.MaxEntries, DefaultMaxEntries)
	var repos []*repo // the work trees that contain the roots
	add := func(root, dir string) {
		if r := findRepo(dir, o.Launcher); r != nil {
			r.root = root
			repos = append(repos, r)
		}
	}
	add(".", ws.Root())
	for _, dir := range ws.AddedDirs() {
		if name, err := ws.Resolve(dir); err == nil && path.IsAbs(name) {
			add(name, dir)
		}
	}
	return &Keeper{
		ws: ws, store: store, o: o, repos: repos,
		openTrees: make(map[string]*tree), warned: make(map[string]bool),
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
	if k.gatherer != nil && k.gatherer.isAhead { // no caller requested this scan yet
		k.pendingWarnings = append(k.pendingWarnings, text)
		return
	}
	k.warned[text] = true
	k.o.Warn(text)
}

// SaveOriginals saves the files in effects, and the state of all files if the effects may touch anything.
func (k *Keeper) SaveOriginals(ctx context.Context, effects []tool.Effect) (tool.Snapshot, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.releaseRepos()
	kept := tool.Snapshot{Effects: effects}
	wide := mayTouchAnything(effects)
	if wide && k.o.RecordTouched != nil {
		kept.TouchedFiles = k.o.RecordTouched()
	}
	// The files themselves, the targets of links, and the directories that would be created.
	var targets []string
	for _, e := range effects {
		if e.Kind != tool.Write {
			continue
		}
		for _, rel := range k.targetNames(e.Target) {
			for _, name := range append(k.missingParents(rel), rel) {
				if !slices.Contains(targets, name) {
					targets = append(targets, name)
				}
			}
		}
	}
	for _, rel := range targets {
		s, err := k.saveFile(rel)
		if err != nil {
			return kept, err
		}
		kept.Before = append(kept.Before, s)
		wide = wide || kindOf(s) == kindDir
	}
	if wide {
		name, err := k.ensureTree(ctx)
		if err != nil {
			return kept, err
		}
		kept.Tree, kept.CountMark = name, k.opCounts.position()
	}
	return kept, k.commit()
}

// mayTouchAnything reports whether a call with these effects runs programs that may touch any file.
func mayTouchAnything(effects []tool.Effect) bool {
	return len(effects) == 0 || slices.ContainsFunc(effects, func(e tool.Effect) bool {
		return e.Kind == tool.Exec || e.Kind == tool.Unknown
	})
}

// commit makes what was saved durable. If that fails, the next scan reads every file again, since the
// store's content is unknown.
func (k *Keeper) commit() error {
	err := k.store.Commit()
	if err != nil {
		k.tree, k.savedTree = nil, nil
	}
	return err
}

// targetNames returns target's real path, a link's target, and target's own name: a link on the path may be
// replaced by a directory.
func (k *Keeper) targetNames(target string) []string {
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

// missingParents returns the missing directories above rel, top first.
func (k *Keeper) missingParents(rel string) (list []string) {
	for up := path.Dir(rel); up != "." && up != "/"; up = path.Dir(up) {
		if _, err := k.ws.Lstat(up); !isMissing(err) {
			break
		}
		list = append(list, up)
	}
	slices.Reverse(list)
	return list
}

// ChangesSince returns the file changes since kept was saved.
func (k *Keeper) ChangesSince(ctx context.Context, kept tool.Snapshot) ([]event.FileChange, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.releaseRepos()
	var changes []event.FileChange
	for _, before := range kept.Before {
		after, err := k.Current(before.Path)
		if err != nil {
			return changes, err
		}
		if before.ContentLost || !k.isSame(ctx, before, after) {
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
		return changes, message.Errorf("compare files: %w", err)
	}
	if err := errors.Join(k.storeErr, k.commit()); err != nil { // the call is done, and the earlier state is saved
		k.warn(fmt.Sprintf("changes by commands to some files cannot be undone: %v", clip.Truncate(err.Error(), maxWarning)))
	}
	return changes, nil
}

// HasContent reports whether a content is in the store.
func (k *Keeper) HasContent(content io.ReadSeeker) bool {
	hash, err := blob.Digest(content)
	return err == nil && k.store.Has(hash)
}

// pinned reports what must not be pruned: what the last turns need, and what the next command may
// destroy.
func (k *Keeper) pinned() func(hash string) bool {
	k.loadLastTree()
	held := k.tree.hashes()
	for _, t := range k.openTrees {
		for h := range t.hashes() {
			held[h] = true
		}
	}
	return func(hash string) bool {
		return held[hash] || k.o.IsNeeded != nil && k.o.IsNeeded(hash)
	}
}

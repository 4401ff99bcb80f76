package undo

import (
	"bytes"
	"context"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/host/disk"
	"coder/internal/record/undo/blob"
	"coder/internal/tool"
)

// maxListed limits the changes of one call that are recorded individually. More are recorded as one
// change, from tree to tree.
const maxListed = 1000

// treeChanges returns the changes of all files since the named tree, up to the end of a command. Changes
// made during the scan are not the command's.
func (k *Keeper) treeChanges(ctx context.Context, kept tool.Snapshot) ([]event.FileChange, error) {
	name := kept.Tree
	before := k.openTrees[name] // from memory if a call began with it
	if before == nil && k.tree.name() == name {
		before = k.tree
	}
	if before == nil {
		loaded, err := k.loadTree(ctx, name)
		if err != nil {
			return nil, err
		}
		before = loaded
	}
	delete(k.openTrees, name)
	after, err := k.scan(ctx)
	if err != nil {
		return nil, err
	}
	// Another program may have changed a file before the scan read it.
	k.opCounts.add(k.feed.TakeOps())
	looked := sync.OnceValue(k.ws.FileTime)
	changes := slices.DeleteFunc(k.diffTrees(ctx, before, after), func(c event.FileChange) bool {
		n := after.find(c.After.Path)
		if n == nil || n.hash == dirHash || after.folders[path.Dir(c.After.Path)].isForeign {
			return false
		}
		return n.stamp.ctime > after.scanTime+int64(clockTick) && n.stamp.ctime < looked().Now
	})
	for i := range changes {
		if b := &changes[i].Before; kindOf(*b) == kindFile && blob.IsHash(b.Hash) && !k.store.MarkUsed(b.Hash) {
			b.ContentLost = true
		}
	}
	doubted := k.markDoubtful(kept, after, changes)
	if len(changes) <= maxListed {
		return changes, nil
	}
	if err := k.saveTree(ctx, after); err != nil {
		return changes[:maxListed], err
	}
	whole := event.FileChange{
		Before: event.FileState{Path: ".", Hash: treePrefix + name},
		After:  event.FileState{Path: ".", Hash: treePrefix + after.name()},
	}
	if len(doubted) > maxListed {
		whole.Doubt, doubted = event.DoubtUnseen, nil
	}
	return append([]event.FileChange{whole}, doubted...), nil
}

// markDoubtful marks and returns the changes that may not come from the call.
func (k *Keeper) markDoubtful(kept tool.Snapshot, after *tree,
	changes []event.FileChange) (doubted []event.FileChange) {
	if len(changes) == 0 || !mayTouchAnything(kept.Effects) {
		return nil
	}
	touch, known := func(string) tool.Touch { return tool.Touch{} }, false
	if kept.TouchedFiles != nil {
		touch, known = kept.TouchedFiles()
	}
	by := func(rel string) tool.Touch { return touch(k.ws.Abs(rel)) }
	both := k.opCounts.newExcessTest(kept.CountMark, by)
	names := hardLinkNames(after, changes)
	for i := range changes {
		c := &changes[i]
		rel := c.After.Path
		n := after.find(rel)
		all := []string{rel}
		if n != nil && len(names[n.stamp.ino]) > 0 {
			all = names[n.stamp.ino] // a file with several names is touched through any of them
		}
		own := slices.ContainsFunc(all, func(rel string) bool { return by(rel).Touched })
		switch {
		case own && (both(all...) || isForeignMode(*c, all, by) || by(rel).Touched && !by(rel).StillOpen &&
			k.changedSince(n, rel)):
			c.Doubt = event.DoubtBoth
		case own:
			continue
		case known:
			c.Doubt = event.DoubtOther
		default:
			c.Doubt = event.DoubtUnseen
		}
		doubted = append(doubted, *c)
	}
	return doubted
}

// hardLinkNames returns the changed names of each file that has several.
func hardLinkNames(after *tree, changes []event.FileChange) map[uint64][]string {
	all := make(map[uint64][]string)
	for _, c := range changes {
		rel := c.After.Path
		if n := after.find(rel); n != nil && n.hash != dirHash && after.folders[path.Dir(rel)].hasHardLinks {
			all[n.stamp.ino] = append(all[n.stamp.ino], rel)
		}
	}
	return all
}

// isForeignMode reports whether a file's mode changed although commands only wrote to its names, which
// does not change the mode.
func isForeignMode(c event.FileChange, names []string, by func(rel string) tool.Touch) bool {
	return kindOf(c.Before) == kindFile && kindOf(c.After) == kindFile && c.Before.Mode != c.After.Mode &&
		!slices.ContainsFunc(names, func(rel string) bool {
			t := by(rel)
			return t.StillOpen || t.Moved > 0 || t.Removed > 0
		})
}

// changedReason reports whether a file changed after its folder was listed. Its content was read later
// and may be the changed one.
func (k *Keeper) changedSince(n *node, rel string) bool {
	if n == nil || n.hash == dirHash {
		return false
	}
	info, err := k.ws.Lstat(rel)
	return err == nil && (info.Size() != n.stamp.size || disk.StampOf(info).ChangeTime != n.stamp.ctime)
}

// diffTrees converts the difference of two trees into file changes.
func (k *Keeper) diffTrees(ctx context.Context, a, b *tree) (list []event.FileChange) {
	pairs := compareTrees(a, b)
	var dirs []string
	for _, p := range pairs {
		if path.Base(p.path()) != ignoreFile {
			continue
		}
		c := p.fileChange()
		if p.before == nil && k.revealsFiles(p.path()) || p.before != nil && !k.isSame(ctx, c.Before, c.After) {
			dirs = append(dirs, p.dir)
		}
	}
	blind := func(rel string) bool {
		return slices.ContainsFunc(dirs, func(dir string) bool {
			return rel != path.Join(dir, ignoreFile) && isBelow(rel, dir)
		})
	}
	for _, p := range pairs {
		c := p.fileChange()
		switch {
		case p.after == nil:
			if !k.isGone(&c.After) {
				continue // hidden
			}
		case p.before == nil && (blind(p.path()) || !a.coversDir(p.dir)):
			if p.after.hash == dirHash || p.after.stamp.lastChange().UnixNano() < a.scanTime {
				continue // it existed, hidden
			}
			c.Before.ContentLost = true // or may have existed
		case p.before == nil && p.after.hash == dirHash && k.hidesFiles(b, p.path()):
			continue // like everything in it
		case p.before == nil:
		case p.before.isLost && p.after.isLost: // their stamps differ
		case k.isSame(ctx, c.Before, c.After):
			continue
		}
		list = append(list, c)
	}
	return list
}

// hidesFiles reports whether a folder is not empty but contains only ignored files.
func (k *Keeper) hidesFiles(t *tree, dir string) bool {
	there, _, err := k.ws.ReadDir(dir, 1)
	if err != nil || len(there) == 0 {
		return false
	}
	f := t.folders[dir]
	for i := range f.count() {
		if n := f.node(i); n.hash != dirHash || !k.hidesFiles(t, path.Join(dir, n.name)) {
			return false
		}
	}
	return true
}

// isGone reports whether a file no longer exists, and describes what replaced it, if that is something not
// saved.
func (k *Keeper) isGone(now *event.FileState) bool {
	if _, err := k.ws.Resolve(now.Path); err != nil {
		return false // its tree is no longer part of the workspace
	}
	if k.ws.CheckNoLinks(now.Path) != nil {
		return true
	}
	info, err := k.ws.Lstat(now.Path)
	if err != nil {
		return isMissing(err)
	}
	now.Mode, now.Size, now.ContentLost = uint32(info.Mode().Perm()), info.Size(), true
	return info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket|fs.ModeDevice|fs.ModeIrregular) != 0
}

const ignoreFile = ".gitignore"

func isBelow(rel, dir string) bool {
	return dir == "." && !path.IsAbs(rel) || strings.HasPrefix(rel, dir+"/")
}

// revealsFiles reports whether a new ignore file un-ignores files.
func (k *Keeper) revealsFiles(rel string) bool {
	text, _, err := k.ws.ReadFile(rel, smallFile)
	return err != nil || bytes.HasPrefix(text, []byte("!")) || bytes.Contains(text, []byte("\n!"))
}

// Files returns all files and directories of a saved tree, in no order.
func (k *Keeper) Files(ctx context.Context, name string) (list []event.FileState, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.releaseRepos()
	t, err := k.loadTree(ctx, name)
	if err != nil {
		return nil, message.Errorf("read the saved state of files: %w", err)
	}
	for dir, f := range t.folders {
		for i := range f.count() {
			list = append(list, f.node(i).fileState(dir))
		}
	}
	return list, nil
}

// Expand returns the individual changes behind a change recorded as one.
func (k *Keeper) Expand(ctx context.Context, c event.FileChange) ([]event.FileChange, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.releaseRepos()
	return k.expand(ctx, c)
}

func (k *Keeper) expand(ctx context.Context, c event.FileChange) ([]event.FileChange, error) {
	from, whole := strings.CutPrefix(c.Before.Hash, treePrefix)
	if !whole {
		return []event.FileChange{c}, nil
	}
	a, err := k.loadTree(ctx, from)
	if err != nil {
		return nil, err
	}
	b, err := k.loadTree(ctx, strings.TrimPrefix(c.After.Hash, treePrefix))
	if err != nil {
		return nil, err
	}
	// Whether a file was ignored then cannot be determined any more, so any that may have been counts as
	// lost.
	var list []event.FileChange

	pairs := compareTrees(a, b)
	blind := slices.ContainsFunc(pairs, func(p nodePair) bool {
		c := p.fileChange()
		return path.Base(p.path()) == ignoreFile && c.Before != c.After
	})
	for _, p := range pairs {
		c := p.fileChange()
		switch {
		case p.before == nil:
			c.Before.ContentLost = blind || !a.coversDir(p.dir)
		case p.after != nil && c.Before == c.After:
			continue
		}
		list = append(list, c)
	}
	return list, nil
}

func (p nodePair) fileChange() event.FileChange {
	c := event.FileChange{Before: event.FileState{Path: p.path()}, After: event.FileState{Path: p.path()}}
	if p.before != nil {
		c.Before = p.before.fileState(p.dir)
	}
	if p.after != nil {
		c.After = p.after.fileState(p.dir)
	}
	return c
}

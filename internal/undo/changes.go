package undo

import (
	"bytes"
	"context"
	"path"
	"slices"
	"strings"

	"coder/internal/event"
	"coder/internal/undo/blob"
)

// maxListed is how many changes of one call are put on record one by one. More
// are recorded as one, from tree to tree.
const maxListed = 1000

// treeChanges tells what became of all files since the tree of that name.
func (k *Keeper) treeChanges(ctx context.Context, name string) ([]event.FileChange, error) {
	before, err := k.treeNamed(name)
	if err != nil {
		return nil, err
	}
	delete(k.open, name)
	after, err := k.scan(ctx)
	if err != nil {
		return nil, err
	}
	changes := k.changed(ctx, before, after)
	k.useAll(changes)
	if len(changes) <= maxListed {
		return changes, nil
	}
	if err := k.persist(after); err != nil {
		return changes[:maxListed], err
	}
	return []event.FileChange{{
		Before: event.FileState{Path: ".", Hash: treePrefix + name},
		After:  event.FileState{Path: ".", Hash: treePrefix + after.name()},
	}}, nil
}

// treeNamed is a tree that was kept, from memory if a call began with it.
func (k *Keeper) treeNamed(name string) (*tree, error) {
	if t := k.open[name]; t != nil {
		return t, nil
	}
	if k.tree.name() == name {
		return k.tree, nil
	}
	return loadTree(k.store, name)
}

// useAll marks what the changes overwrote as of use, and says what of it is no
// longer kept.
func (k *Keeper) useAll(changes []event.FileChange) {
	for i := range changes {
		if b := &changes[i].Before; kindOf(*b) == isFile && blob.IsHash(b.Hash) && !k.store.Use(b.Hash) {
			b.Lost = true
		}
	}
}

// changed turns the difference of two trees into what happened to files.
func (k *Keeper) changed(ctx context.Context, a, b *tree) (list []event.FileChange) {
	pairs := compare(a, b)
	blind := k.uncovered(pairs)
	for _, p := range pairs {
		c := p.change()
		switch {
		case p.after == nil:
			now, err := k.look(p.path())
			if err != nil || kindOf(now) != isAbsent && kindOf(now) != isLost {
				continue // out of sight, not gone
			}
			c.After = now
		case p.before == nil:
			if a.partial || blind(p.path()) { // it may have been there, out of sight
				if p.after.hash == dirHash || max(p.after.stamp.ctime, p.after.stamp.mtime) < a.at {
					continue
				}
				c.Before.Lost = true
			}
		case p.before.lost && p.after.lost: // their stamps differ
		case k.same(ctx, c.Before, c.After):
			continue
		}
		list = append(list, c)
	}
	return list
}

const ignoreFile = ".gitignore"

// uncovered tells which paths may have been ignored before, because the rules
// above them have changed.
func (k *Keeper) uncovered(pairs []pair) func(rel string) bool {
	var dirs []string
	for _, p := range pairs {
		if path.Base(p.path()) == ignoreFile && (p.before != nil || k.reveals(p.path())) {
			dirs = append(dirs, p.dir)
		}
	}
	return func(rel string) bool {
		return slices.ContainsFunc(dirs, func(dir string) bool {
			return rel != path.Join(dir, ignoreFile) && (dir == "." || strings.HasPrefix(rel, dir+"/"))
		})
	}
}

// reveals reports whether a new ignore file takes back what others ignore.
func (k *Keeper) reveals(rel string) bool {
	text, _, err := k.ws.ReadFile(rel, small)
	return err != nil || bytes.HasPrefix(text, []byte("!")) || bytes.Contains(text, []byte("\n!"))
}

// expand lists the changes that were recorded as one.
func (k *Keeper) expand(c event.FileChange) ([]event.FileChange, error) {
	from, whole := strings.CutPrefix(c.Before.Hash, treePrefix)
	if !whole {
		return []event.FileChange{c}, nil
	}
	a, err := loadTree(k.store, from)
	if err != nil {
		return nil, err
	}
	b, err := loadTree(k.store, strings.TrimPrefix(c.After.Hash, treePrefix))
	if err != nil {
		return nil, err
	}
	return recorded(a, b), nil
}

// recorded lists the changes between two trees of the past. What was ignored
// then cannot be looked up any more, so what may have been counts as lost.
func recorded(a, b *tree) (list []event.FileChange) {
	pairs := compare(a, b)
	blind := a.partial || slices.ContainsFunc(pairs, func(p pair) bool { return path.Base(p.path()) == ignoreFile })
	for _, p := range pairs {
		c := p.change()
		switch {
		case p.before == nil:
			c.Before.Lost = blind
		case p.after != nil && c.Before == c.After:
			continue
		}
		list = append(list, c)
	}
	return list
}

// change is what became of the pair's path.
func (p pair) change() event.FileChange {
	c := event.FileChange{Before: event.FileState{Path: p.path()}, After: event.FileState{Path: p.path()}}
	if p.before != nil {
		c.Before = p.before.state(p.dir)
	}
	if p.after != nil {
		c.After = p.after.state(p.dir)
	}
	return c
}

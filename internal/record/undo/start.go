package undo

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path"
	"slices"

	"coder/internal/core/event"
	"coder/internal/core/secret"
)

// StateOf makes the state of the repository, given the small files that are ignored. What
// HEAD has of the objects in it, committed lists.
type StateOf func(ignored []event.FileState, committed func() map[string]bool) ([]byte, error)

// Start saves what a session begins with: the state of all files, and the one that state
// makes. That may hold secrets.
//
// A session that only reads overwrites nothing. Before its first call, which is light, the
// disk is not waited for, and undo does not count on what is saved: what is to be
// undone one day is saved again before the first call that may overwrite it.
func (k *Keeper) Start(ctx context.Context, light bool, state StateOf) (tree, repository string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.release()
	if light && k.store.starts != nil {
		if tree, repository, err = k.startLightly(ctx, state); err == nil || ctx.Err() != nil {
			return tree, repository, err
		}
	}
	return k.start(ctx, state)
}

// startLightly is start for a call that only reads. Where many files have to be
// read, they are saved for good, and once.
func (k *Keeper) startLightly(ctx context.Context, state StateOf) (tree, repository string, err error) {
	k.recall()
	kept := k.kept
	k.light = true
	defer func() {
		if name := k.tree.name(); k.light && name != "" && !isHead(name) && !k.store.Has(name) {
			unnamed := *k.tree
			unnamed.chain, unnamed.full, unnamed.added = nil, 0, 0
			k.tree, k.kept = &unnamed, kept
		}
		k.light = false
	}()
	return k.start(ctx, state)
}

func (k *Keeper) start(ctx context.Context, state StateOf) (tree, repository string, err error) {
	if tree, err = k.keepTree(ctx); err != nil {
		return "", "", err
	}
	data, err := state(k.saveIgnored(ctx), func() map[string]bool { return k.committed(ctx) })
	if err == nil {
		repository, err = k.put(stateFile, bytes.NewReader(data))
	}
	if err != nil {
		k.warn(fmt.Sprintf("the state of the repository was not saved, so the session may not run again as it did: %v", err))
		repository = ""
	}
	if k.light {
		return tree, repository, k.store.starts.Commit()
	}
	return tree, repository, k.commit()
}

// Bounds of the ignored files that are saved: what a program built or downloaded is not.
const (
	maxIgnored      = 500
	maxIgnoredFile  = 64 << 10
	maxIgnoredBytes = 4 << 20
	maxIgnoredIn    = 50 // files of a folder that is ignored as a whole; a larger one is left out
)

// saveIgnored saves small files that git ignores, but for those that may hold secrets.
func (k *Keeper) saveIgnored(ctx context.Context) (list []event.FileState) {
	size := int64(0)
	slices.Sort(k.ignored)
	for _, name := range k.ignored {
		if base := path.Base(name); base == ".git" || base == ".coder" {
			continue
		}
		var in []string
		for e := range k.ws.Walk(ctx, name, 0) {
			if e.Err == nil && !e.IsDir() {
				in = append(in, e.Path)
			}
			if len(in) > maxIgnoredIn {
				break
			}
		}
		if len(in) > maxIgnoredIn {
			continue
		}
		if len(in) == 0 {
			in = []string{name}
		}
		for _, file := range in {
			info, err := k.ws.Lstat(file)
			if err != nil || !info.Mode().IsRegular() || info.Size() > maxIgnoredFile || size+info.Size() > maxIgnoredBytes || len(list) == maxIgnored || secret.Is(file) {
				continue
			}
			if s, err := k.save(file); err == nil && s.Hash != "" && !s.Lost {
				list, size = append(list, s), size+info.Size()
			}
		}
	}
	return list
}

// State is the state of a repository that was saved.
func (k *Keeper) State(name string) ([]byte, error) {
	in, err := k.store.Open(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return io.ReadAll(io.LimitReader(in, maxTreeBlob))
}

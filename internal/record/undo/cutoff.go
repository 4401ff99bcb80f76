package undo

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"coder/internal/core/event"
)

// A command is cut off when coder ends before it does. Its changes are then not recorded; they must be
// derived from the files before it and now, without changes known to be from others.

// observe records the file states that a call found: what commands cut off until then had left.
func (h *History) observe(seq uint64, states []event.FileState) {
	for _, c := range h.cut {
		if c.end < seq {
			c.observe(states)
		}
	}
}

// resolveCutOff settles calls without a completion, since undo only starts when no call is running.
func (h *History) resolveCutOff() {
	open := slices.Collect(maps.Values(h.calls))
	slices.SortFunc(open, func(a, b *call) int { return cmp.Compare(a.seq, b.seq) })
	for _, c := range open {
		if c.settled {
			continue
		}
		c.settled = true
		if !slices.ContainsFunc(h.turns, func(t *turn) bool {
			return slices.ContainsFunc(t.calls, func(other *call) bool { return other.seq > c.seq && other.touched() })
		}) {
			h.moved(c)
		}
	}
}

// observe records the first state found of each file after the call.
func (c *call) observe(states []event.FileState) {
	if c.tree == "" {
		return
	}
	if c.found == nil {
		c.found = make(map[string]event.FileState)
	}
	for _, s := range states {
		if _, ok := c.found[s.Path]; !ok {
			c.found[s.Path] = s
		}
	}
}

// expandLink returns the individual changes behind a link that stands for all files.
func (k *Keeper) expandLink(ctx context.Context, l link) (list []link, err error) {
	if !strings.HasPrefix(l.before.Hash, treePrefix) {
		return []link{l}, nil
	}
	var changes []event.FileChange
	if l.known() {
		changes, err = k.expand(ctx, event.FileChange{Before: l.before, After: l.after})
	} else {
		changes, err = k.since(ctx, l.call)
	}
	for _, c := range changes {
		found, ok := l.found[c.Before.Path]
		switch {
		case ok && k.same(ctx, found, c.Before):
			continue // it was changed later
		case ok:
			c.After = found
		}
		list = append(list, link{call: l.call, before: c.Before, after: c.After, doubt: l.doubt, guessed: !l.known()})
	}
	return list, err
}

// since returns what is different now from before a call.
func (k *Keeper) since(ctx context.Context, c *call) ([]event.FileChange, error) {
	t, err := k.loadTree(ctx, c.tree)
	if err != nil {
		return nil, err
	}
	if t.at == 0 {
		t.at = time.UnixMilli(c.at).UnixNano()
	}
	k.recall()
	now, err := k.scan(ctx)
	if err != nil {
		return nil, err
	}
	return k.changed(ctx, t, now), nil
}

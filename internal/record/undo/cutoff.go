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

// recordFound records the file states that a call found: what commands cut off until then had left.
func (h *History) recordFound(seq uint64, states []event.FileState) {
	for _, c := range h.cutOff {
		if c.end < seq {
			c.recordFound(states)
		}
	}
}

// settleCutOff settles calls without a completion, since undo only starts when no call is running.
func (h *History) settleCutOff() {
	open := slices.Collect(maps.Values(h.calls))
	slices.SortFunc(open, func(a, b *call) int { return cmp.Compare(a.seq, b.seq) })
	for _, c := range open {
		if c.isSettled {
			continue
		}
		c.isSettled = true
		if !slices.ContainsFunc(h.turns, func(t *turn) bool {
			return slices.ContainsFunc(t.calls, func(other *call) bool { return other.seq > c.seq && other.mayHaveChanged() })
		}) {
			h.recordChange(c)
		}
	}
}

// recordFound records the first state found of each file after the call.
func (c *call) recordFound(states []event.FileState) {
	if c.tree == "" {
		return
	}
	if c.foundStates == nil {
		c.foundStates = make(map[string]event.FileState)
	}
	for _, s := range states {
		if _, ok := c.foundStates[s.Path]; !ok {
			c.foundStates[s.Path] = s
		}
	}
}

// expandChange returns the individual changes behind a link that stands for all files.
func (k *Keeper) expandChange(ctx context.Context, l turnChange) (list []turnChange, err error) {
	if !strings.HasPrefix(l.before.Hash, treePrefix) {
		return []turnChange{l}, nil
	}
	var changes []event.FileChange
	if l.isKnown() {
		changes, err = k.expand(ctx, event.FileChange{Before: l.before, After: l.after})
	} else {
		changes, err = k.changesSince(ctx, l.call)
	}
	for _, c := range changes {
		found, ok := l.foundStates[c.Before.Path]
		switch {
		case ok && k.isSame(ctx, found, c.Before):
			continue // it was changed later
		case ok:
			c.After = found
		}
		list = append(list, turnChange{call: l.call, before: c.Before, after: c.After, doubt: l.doubt,
			isGuessed: !l.isKnown()})
	}
	return list, err
}

// changesSince returns what is different now from before a call.
func (k *Keeper) changesSince(ctx context.Context, c *call) ([]event.FileChange, error) {
	t, err := k.loadTree(ctx, c.tree)
	if err != nil {
		return nil, err
	}
	if t.scanTime == 0 {
		t.scanTime = time.UnixMilli(c.requestTime).UnixNano()
	}
	k.loadLastTree()
	now, err := k.scan(ctx)
	if err != nil {
		return nil, err
	}
	return k.diffTrees(ctx, t, now), nil
}

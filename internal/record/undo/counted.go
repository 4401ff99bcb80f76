package undo

import (
	"maps"

	"coder/internal/host/workspace"
	"coder/internal/tool"
)

// counted is what all programs did to files, look by look, as the system counted it.
type counted struct {
	looks []map[string]workspace.Ops
	gone  int // looks that are forgotten
	files int // in looks
}

// How much is remembered: a command that ran while more happened is not told apart from
// others that wrote the same files.
const (
	maxLooks   = 256
	maxCounted = 1 << 17
)

// mark is the present moment, for [counted.both]. It is never zero.
func (c *counted) mark() int { return c.gone + len(c.looks) + 1 }

// add takes in what was counted until a look at the files.
func (c *counted) add(ch workspace.Changes) {
	switch {
	case ch.All: // what was counted before is not all
		c.gone, c.looks, c.files = c.gone+len(c.looks)+1, nil, 0
	case len(ch.Ops) > 0:
		c.looks, c.files = append(c.looks, ch.Ops), c.files+len(ch.Ops)
	}
	for len(c.looks) > maxLooks || c.files > maxCounted {
		c.files -= len(c.looks[0])
		c.gone, c.looks = c.gone+1, c.looks[1:]
	}
}

// both tells of a file, by its names, whether more was done to it since a moment than
// commands can have done, by what they touched: then another program wrote it, too. Where
// nothing is known it is false.
func (c *counted) both(since int, by func(rel string) tool.Touch) func(names ...string) bool {
	all := make(map[string]workspace.Ops)
	if at := since - 1 - c.gone; since > 0 && at >= 0 {
		for _, look := range c.looks[min(at, len(c.looks)):] {
			if len(all) == 0 {
				all = maps.Clone(look)
				continue
			}
			for name, o := range look {
				all[name] = all[name].Then(o)
			}
		}
	}
	return func(names ...string) bool {
		closed, may, open, held := 0, 0, false, false
		for _, rel := range names {
			o, t := all[rel], by(rel)
			if o.Moved > t.Moved || o.Removed > t.Removed {
				return true
			}
			open, held = open || o.Open, held || t.Held
			closed, may = closed+o.Closed, min(may+closes(rel, all, by, mostMoves), manyCloses)
		}
		return open && !held || closed > may
	}
}

// mostMoves is how often a file may have been moved while it was open.
const mostMoves = 4

// closes is how often commands can have closed a file at most: as often as they opened it,
// under this name or under one that it had while it was open.
func closes(rel string, all map[string]workspace.Ops, by func(string) tool.Touch, moves int) int {
	n := by(rel).Opened
	for _, from := range all[rel].From {
		if from == "" || moves == 0 {
			return manyCloses
		}
		if open := closes(from, all, by, moves-1) - all[from].Closed; open > 0 {
			n = min(n+open, manyCloses)
		}
	}
	return n
}

const manyCloses = 1 << 30

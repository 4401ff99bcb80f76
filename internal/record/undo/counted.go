package undo

import (
	"maps"

	"coder/internal/host/workspace"
	"coder/internal/tool"
)

// counted holds the operations of all programs on files, as reported by the system, per scan.
type counted struct {
	looks []map[string]workspace.Ops
	gone  int // number of dropped scans
	files int // total entries in looks
}

// Limits of the memory: if more happened while a command ran, it cannot be distinguished from others
// that wrote the same files.
const (
	maxLooks   = 256
	maxCounted = 1 << 17
)

// mark returns the current position, for [counted.both]. It is never zero.
func (c *counted) mark() int { return c.gone + len(c.looks) + 1 }

// add adds the operations counted up to a scan.
func (c *counted) add(ch workspace.Changes) {
	switch {
	case ch.All: // earlier counts are incomplete
		c.gone, c.looks, c.files = c.gone+len(c.looks)+1, nil, 0
	case len(ch.Ops) > 0:
		c.looks, c.files = append(c.looks, ch.Ops), c.files+len(ch.Ops)
	}
	for len(c.looks) > maxLooks || c.files > maxCounted {
		c.files -= len(c.looks[0])
		c.gone, c.looks = c.gone+1, c.looks[1:]
	}
}

// both returns a function that reports whether the operations on a file, under any of its names, exceed
// what commands can have done according to by: then another program wrote it, too. If this is unknown,
// it returns false.
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

// mostMoves limits the moves of a file while it was open.
const mostMoves = 4

// closes returns how often commands can have closed a file at most: as often as they opened it, under
// this name or another one that it had meanwhile.
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

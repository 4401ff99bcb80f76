package undo

import (
	"maps"

	"coder/internal/host/workspace"
	"coder/internal/tool"
)

// opCounts holds the operations of all programs on files, as reported by the system, per scan.
type opCounts struct {
	scans   []map[string]workspace.Ops
	dropped int // number of dropped scans
	files   int // total entries in looks
}

// Limits of the memory: if more happened while a command ran, it cannot be distinguished from others
// that wrote the same files.
const (
	maxScans   = 256
	maxCounted = 1 << 17
)

// position returns the current position, for [counted.newExcessTest]. It is never zero.
func (c *opCounts) position() int { return c.dropped + len(c.scans) + 1 }

// add adds the operations counted up to a scan.
func (c *opCounts) add(ch workspace.Changes) {
	switch {
	case ch.All: // earlier counts are incomplete
		c.dropped, c.scans, c.files = c.dropped+len(c.scans)+1, nil, 0
	case len(ch.Ops) > 0:
		c.scans, c.files = append(c.scans, ch.Ops), c.files+len(ch.Ops)
	}
	for len(c.scans) > maxScans || c.files > maxCounted {
		c.files -= len(c.scans[0])
		c.dropped, c.scans = c.dropped+1, c.scans[1:]
	}
}

// newExcessTest returns a function that reports whether the operations on a file, under any of its names, exceed
// what commands can have done according to by: then another program wrote it, too. If this is unknown,
// it returns false.
func (c *opCounts) newExcessTest(since int, by func(rel string) tool.Touch) func(names ...string) bool {
	all := make(map[string]workspace.Ops)
	if at := since - 1 - c.dropped; since > 0 && at >= 0 {
		for _, look := range c.scans[min(at, len(c.scans)):] {
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
			open, held = open || o.StillOpen, held || t.StillOpen
			closed, may = closed+o.Closed, min(may+maxCloses(rel, all, by, maxMoves), closesLimit)
		}
		return open && !held || closed > may
	}
}

// maxMoves limits the moves of a file while it was open.
const maxMoves = 4

// maxCloses returns how often commands can have closed a file at most: as often as they opened it, under
// this name or another one that it had meanwhile.
func maxCloses(rel string, all map[string]workspace.Ops, by func(string) tool.Touch, moves int) int {
	n := by(rel).Opened
	for _, from := range all[rel].MovedFrom {
		if from == "" || moves == 0 {
			return closesLimit
		}
		if open := maxCloses(from, all, by, moves-1) - all[from].Closed; open > 0 {
			n = min(n+open, closesLimit)
		}
	}
	return n
}

const closesLimit = 1 << 30

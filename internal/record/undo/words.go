package undo

import (
	"fmt"
	"slices"
	"strings"
)

// Plan is what undoing, redoing, rewinding or restoring will do to files, or has done.
// Paths are as people are shown them; those of directories end in a slash.
type Plan struct {
	Turn     Turn     `json:"turn"`
	Skipped  []Turn   `json:"skipped,omitempty"` // later ones that changed no file
	Own      []Turn   `json:"own,omitempty"`     // and those that are commands of the person's own
	DryRun   bool     `json:"dryRun,omitempty"`
	Restored []string `json:"restored,omitempty"` // have the content and mode they had
	Removed  []string `json:"removed,omitempty"`  // were made by the turn and are gone
	// Partly names those of Restored that someone else changed while the turn
	// ran: they have what that person made of them, not what the turn began with.
	// CutOff names those of them where that may be the work of a command that was cut
	// off.
	Partly []string `json:"partly,omitempty"`
	CutOff []string `json:"cutOff,omitempty"`
	// Shared names those of Restored and Removed into which commands of the turn wrote
	// after its tools: that goes with them, though only the tools' changes were asked for.
	Shared []string `json:"shared,omitempty"`
	Forced []Note   `json:"forced,omitempty"` // changed though they may be someone else's
	Kept   []Note   `json:"kept,omitempty"`   // left alone, unless forced
	Lost   []Note   `json:"lost,omitempty"`   // cannot be brought back
	Failed []Note   `json:"failed,omitempty"` // could not be written
	// NotUndone names what commands changed and that was not asked for.
	NotUndone []string `json:"notUndone,omitempty"`
	// Commands are those the turn ran. What they did outside the workspace, to
	// ignored files or to git itself is beyond our reach.
	Commands []string `json:"commands,omitempty"`
}

// Note is a path and what is to be said about it.
type Note struct {
	Path  string `json:"path"`
	Why   string `json:"why"`
	Force Force  `json:"force,omitempty"`
}

// Force is what [Call.Force] does to a file that would stay otherwise; empty if nothing.
type Force string

// What there is of [Force].
const (
	Overwrites Force = "overwrites"
	Removes    Force = "removes"
	Restores   Force = "restores" // it is not there now
)

// Join is what several plans, carried out in this order, do together. The first has the
// turn. A file is listed once: what the last of them does to it counts, and one that only
// the first of them can bring back comes back in part.
func Join(plans ...Plan) (all Plan) {
	for i, p := range plans {
		if i == 0 {
			all.Turn, all.Skipped, all.Own, all.DryRun = p.Turn, p.Skipped, p.Own, p.DryRun
		}
		changes := slices.Concat(p.Restored, p.Removed)
		for _, list := range []*[]string{&all.Restored, &all.Removed, &all.Partly, &all.CutOff, &all.Shared} {
			*list = slices.DeleteFunc(*list, func(path string) bool { return slices.Contains(changes, path) })
		}
		for _, n := range p.Kept {
			switch {
			case slices.Contains(all.Restored, n.Path) && !slices.Contains(all.Partly, n.Path):
				all.Partly = append(all.Partly, n.Path)
			case !slices.Contains(all.Restored, n.Path) && !slices.ContainsFunc(all.Kept, func(k Note) bool { return k.Path == n.Path }):
				all.Kept = append(all.Kept, n)
			}
		}
		all.Restored, all.Removed = append(all.Restored, p.Restored...), append(all.Removed, p.Removed...)
		all.Partly, all.CutOff = append(all.Partly, p.Partly...), append(all.CutOff, p.CutOff...)
		all.Shared, all.Forced = append(all.Shared, p.Shared...), withNew(all.Forced, p.Forced)
		all.Lost, all.Failed = withNew(all.Lost, p.Lost), withNew(all.Failed, p.Failed)
		all.NotUndone, all.Commands = withNew(all.NotUndone, p.NotUndone), withNew(all.Commands, p.Commands)
	}
	slices.Sort(all.Restored)
	slices.Sort(all.Removed)
	return all
}

// withNew adds what is not in a list yet.
func withNew[T comparable](list, more []T) []T {
	for _, v := range more {
		if !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list
}

// Changes reports whether any file is changed, or would be.
func (p Plan) Changes() bool { return len(p.Restored)+len(p.Removed) > 0 }

// Left lists the files that stay as they are, each with the reason.
func (p Plan) Left() []Note { return slices.Concat(p.Kept, p.Lost, p.Failed) }

// Lines tell what becomes of files, or became of them, a fact a line. Force is the
// command that also changes what is left.
func (p Plan) Lines(force string) (lines []string) {
	add := func(format string, paths []string) {
		if len(paths) > 0 {
			lines = append(lines, fmt.Sprintf(format, strings.Join(paths, ", ")))
		}
	}
	note := func(format string, notes []Note) {
		for _, n := range notes {
			lines = append(lines, fmt.Sprintf(format, n.Path, n.Why))
		}
	}
	whole := slices.DeleteFunc(slices.Clone(p.Restored), func(s string) bool { return slices.Contains(p.Partly, s) })
	partly := slices.DeleteFunc(slices.Clone(p.Partly), func(s string) bool { return slices.Contains(p.CutOff, s) })
	if p.DryRun {
		add("to restore: %s", whole)
		add("to restore to someone else's later version: %s", partly)
		add("to restore to what a cut-off command may have written: %s", p.CutOff)
		add("to remove: %s", p.Removed)
	} else {
		add("restored: %s", whole)
		add("restored to someone else's later version: %s", partly)
		add("restored to what a cut-off command may have written: %s", p.CutOff)
		add("removed: %s", p.Removed)
	}
	if len(p.CutOff) > 0 && force != "" {
		add("%s also undoes the command that was cut off", []string{force})
	}
	add("includes files written by commands in the turn: %s", p.Shared)
	note("forced: %s (%s)", p.Forced)
	note("unchanged: %s (%s)", p.Kept)
	if force != "" {
		lines = append(lines, p.forcible(force)...)
	}
	note("lost: %s (%s)", p.Lost)
	note("could not be written: %s (%s)", p.Failed)
	add("changed by commands, not restored (all includes them): %s", p.NotUndone)
	return lines
}

// forcible tells what the command force would do to the files that stay.
func (p Plan) forcible(force string) (lines []string) {
	for _, does := range []struct {
		what   Force
		format string
	}{{Overwrites, "%s overwrites: %s"}, {Removes, "%s removes: %s"}, {Restores, "%s restores: %s"}} {
		var paths []string
		for _, n := range p.Kept {
			if n.Force == does.what {
				paths = append(paths, n.Path)
			}
		}
		if len(paths) > 0 {
			lines = append(lines, fmt.Sprintf(does.format, force, strings.Join(paths, ", ")))
		}
	}
	return lines
}

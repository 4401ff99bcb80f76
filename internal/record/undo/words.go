package undo

import (
	"fmt"
	"slices"
	"strings"
)

// Plan is what an undo, redo, rewind or restore will do to files, or has done. Paths are in shown form;
// those of directories end in a slash.
type Plan struct {
	Turn        Turn     `json:"turn"`
	Skipped     []Turn   `json:"skipped,omitempty"` // later turns that changed no file
	OwnCommands []Turn   `json:"own,omitempty"`     // later turns that are the user's own commands
	DryRun      bool     `json:"dryRun,omitempty"`
	Restored    []string `json:"restored,omitempty"` // have their previous content and mode again
	Removed     []string `json:"removed,omitempty"`  // created by the turn and now removed
	// PartlyRestored names those of Restored that someone else changed while the turn ran: they have that version,
	// not the one from before the turn. CutOff names those of them where that may be the work of a command
	// that was cut off.
	PartlyRestored []string `json:"partly,omitempty"`
	Interrupted    []string `json:"cutOff,omitempty"`
	// Shared names those of Restored and Removed that commands of the turn wrote after its tools: these
	// changes go too, though only the tools' changes were selected.
	Shared    []string `json:"shared,omitempty"`
	Forced    []Note   `json:"forced,omitempty"` // changed though they may be someone else's
	Unchanged []Note   `json:"kept,omitempty"`   // unchanged unless forced
	Lost      []Note   `json:"lost,omitempty"`   // cannot be restored
	Failed    []Note   `json:"failed,omitempty"` // could not be written
	// NotUndone names changes by commands, which were not selected.
	NotUndone []string `json:"notUndone,omitempty"`
	// Commands are those that the turn ran. Their effects outside the workspace, on ignored files or on git
	// itself cannot be undone.
	Commands []string `json:"commands,omitempty"`
}

// Note is a path with a reason.
type Note struct {
	Path  string `json:"path"`
	Why   string `json:"why"`
	Force Force  `json:"force,omitempty"`
}

// Force is what [Call.Force] would do to a file that stays otherwise, or "".
type Force string

// The values of [Force].
const (
	ForceOverwrite Force = "overwrites"
	ForceRemove    Force = "removes"
	ForceRestore   Force = "restores" // it does not exist now
)

// MergePlans combines plans executed in this order. The first plan's turn is used. Each file is listed once,
// with the last plan's effect; if only an earlier plan could restore it, it counts as partly restored.
func MergePlans(plans ...Plan) (all Plan) {
	for i, p := range plans {
		if i == 0 {
			all.Turn, all.Skipped, all.OwnCommands, all.DryRun = p.Turn, p.Skipped, p.OwnCommands, p.DryRun
		}
		changes := slices.Concat(p.Restored, p.Removed)
		for _, list := range []*[]string{&all.Restored, &all.Removed, &all.PartlyRestored, &all.Interrupted, &all.Shared} {
			*list = slices.DeleteFunc(*list, func(path string) bool { return slices.Contains(changes, path) })
		}
		for _, n := range p.Unchanged {
			switch {
			case slices.Contains(all.Restored, n.Path) && !slices.Contains(all.PartlyRestored, n.Path):
				all.PartlyRestored = append(all.PartlyRestored, n.Path)
			case !slices.Contains(all.Restored, n.Path) && !slices.ContainsFunc(all.Unchanged,
				func(k Note) bool { return k.Path == n.Path }):
				all.Unchanged = append(all.Unchanged, n)
			}
		}
		all.Restored, all.Removed = append(all.Restored, p.Restored...), append(all.Removed, p.Removed...)
		all.PartlyRestored, all.Interrupted = append(all.PartlyRestored, p.PartlyRestored...),
			append(all.Interrupted, p.Interrupted...)
		all.Shared, all.Forced = append(all.Shared, p.Shared...), appendNew(all.Forced, p.Forced)
		all.Lost, all.Failed = appendNew(all.Lost, p.Lost), appendNew(all.Failed, p.Failed)
		all.NotUndone, all.Commands = appendNew(all.NotUndone, p.NotUndone), appendNew(all.Commands, p.Commands)
	}
	slices.Sort(all.Restored)
	slices.Sort(all.Removed)
	return all
}

// appendNew appends items that a list does not have yet.
func appendNew[T comparable](list, more []T) []T {
	for _, v := range more {
		if !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list
}

// HasChanges reports whether the plan changes any file.
func (p Plan) HasChanges() bool { return len(p.Restored)+len(p.Removed) > 0 }

// UnchangedFiles returns the files that stay unchanged, with reasons.
func (p Plan) UnchangedFiles() []Note { return slices.Concat(p.Unchanged, p.Lost, p.Failed) }

// Describe describes what happens or happened to files, one fact per line. force is the command that would
// also change what is left.
func (p Plan) Describe(force string) (lines []string) {
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
	whole := slices.DeleteFunc(slices.Clone(p.Restored),
		func(s string) bool { return slices.Contains(p.PartlyRestored, s) })
	partly := slices.DeleteFunc(slices.Clone(p.PartlyRestored),
		func(s string) bool { return slices.Contains(p.Interrupted, s) })
	if p.DryRun {
		add("to restore: %s", whole)
		add("to restore to someone else's later version: %s", partly)
		add("to restore to what an interrupted command may have written: %s", p.Interrupted)
		add("to remove: %s", p.Removed)
	} else {
		add("restored: %s", whole)
		add("restored to someone else's later version: %s", partly)
		add("restored to what an interrupted command may have written: %s", p.Interrupted)
		add("removed: %s", p.Removed)
	}
	if len(p.Interrupted) > 0 && force != "" {
		add("%s also undoes the interrupted command", []string{force})
	}
	add("includes files written by commands in the turn: %s", p.Shared)
	note("forced: %s (%s)", p.Forced)
	note("unchanged: %s (%s)", p.Unchanged)
	if force != "" {
		lines = append(lines, p.describeForcible(force)...)
	}
	note("lost: %s (%s)", p.Lost)
	note("could not be written: %s (%s)", p.Failed)
	add("changed by commands, not restored (all includes them): %s", p.NotUndone)
	return lines
}

// describeForcible describes what the command force would do to the files that stay.
func (p Plan) describeForcible(force string) (lines []string) {
	for _, does := range []struct {
		what   Force
		format string
	}{{ForceOverwrite, "%s overwrites: %s"}, {ForceRemove, "%s removes: %s"}, {ForceRestore, "%s restores: %s"}} {
		var paths []string
		for _, n := range p.Unchanged {
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
